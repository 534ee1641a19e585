#include "assay/program/language/lexer.h"

#include <fmt/format.h>

#include "assay/base/text.h"

namespace assay::language {
namespace {

constexpr std::size_t most_text = 64 * 1024;
constexpr std::string_view double_symbols[] = {"->", "..", "==", "<=", ">="};
constexpr std::string_view single_symbols = "[](){},=+-*/%<>";

bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool begins_word(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }

class Lexer {
 public:
  explicit Lexer(const Source& source) : source_(source), text_(source.text) {}

  Result<std::vector<Token>> run() {
    if (text_.size() > most_text) return source_.error(0, "the program is longer than 64 KiB", "split it");
    while (at_ < text_.size()) {
      const char c = text_[at_];
      if (c == '#') {
        while (at_ < text_.size() && text_[at_] != '\n') ++at_;
      } else if (c == '\n' || c == ';') {
        if (open_ == 0 || c == ';')
          add(Token::Kind::end_of_line, 1);
        else
          ++at_;
      } else if (c == ' ' || c == '\t' || c == '\r') {
        ++at_;
      } else if (begins_word(c)) {
        std::size_t n = 1;
        while (at_ + n < text_.size() &&
               (begins_word(text_[at_ + n]) || is_digit(text_[at_ + n]) || text_[at_ + n] == '_'))
          ++n;
        add(Token::Kind::word, n);
      } else if (is_digit(c)) {
        ASSAY_CHECK(number());
      } else {
        ASSAY_CHECK(symbol());
      }
    }
    add(Token::Kind::end_of_line, 0);
    add(Token::Kind::end, 0);
    return std::move(tokens_);
  }

 private:
  void add(Token::Kind kind, std::size_t size) {
    tokens_.push_back({kind, text_.substr(at_, size), at_});
    at_ += size;
  }

  Result<void> number() {
    std::size_t n = 0;
    const auto digits = [&] {
      while (at_ + n < text_.size() && is_digit(text_[at_ + n])) ++n;
    };
    const auto here = [&](std::size_t k) { return at_ + k < text_.size() ? text_[at_ + k] : '\0'; };
    digits();
    if (here(n) == '.' && is_digit(here(n + 1))) {  // 0..4 is a range
      ++n;
      digits();
    }
    if ((here(n) == 'e' || here(n) == 'E') &&
        (is_digit(here(n + 1)) || ((here(n + 1) == '-' || here(n + 1) == '+') && is_digit(here(n + 2))))) {
      n += 2;
      digits();
    }
    const auto value = parse_number(text_.substr(at_, n));
    if (!value || begins_word(here(n)) || here(n) == '_')
      return source_.error(at_, fmt::format("{} is not a number", in_quotes(text_.substr(at_, n + 1))),
                           "write 8, 0.5 or 1e-6; names begin with a letter");
    add(Token::Kind::number, n);
    tokens_.back().value = *value;
    return {};
  }

  Result<void> symbol() {
    for (std::string_view pair : double_symbols)
      if (text_.substr(at_).starts_with(pair)) {
        add(Token::Kind::symbol, pair.size());
        return {};
      }
    const char c = text_[at_];
    if (single_symbols.find(c) == std::string_view::npos)
      return source_.error(at_, fmt::format("unexpected character {}", in_quotes(text_.substr(at_, 1))),
                           static_cast<unsigned char>(c) < 128
                               ? "a statement is such as h[B, F] = gelu(x * w), and ends at a line break or a ;"
                               : "programs are plain ASCII; # begins a comment");
    if (c == '(' || c == '[') ++open_;
    if ((c == ')' || c == ']') && open_ > 0) --open_;
    add(Token::Kind::symbol, 1);
    return {};
  }

  const Source& source_;
  std::string_view text_;
  std::size_t at_ = 0;
  int open_ = 0;
  std::vector<Token> tokens_;
};

}  // namespace

Result<std::vector<Token>> tokens_of(const Source& source) { return Lexer(source).run(); }

}  // namespace assay::language

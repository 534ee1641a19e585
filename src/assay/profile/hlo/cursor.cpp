#include "assay/profile/hlo/cursor.h"

#include <fmt/format.h>

#include <algorithm>

#include "assay/base/text.h"

namespace assay::hlo {
namespace {

bool is_blank(char c) { return c == ' ' || c == '\t' || c == '\n' || c == '\r'; }

bool is_name_sign(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' || c == '_' ||
         c == '-' || c == '$';
}

/// Nested deeper than any program: a limit, since readers recurse.
constexpr int most_brackets = 200;

}  // namespace

void Cursor::skip_blanks() {
  while (!done()) {
    if (is_blank(text_[at_])) {
      ++at_;
    } else if (sees("/*")) {
      const std::size_t end = text_.find("*/", at_ + 2);
      at_ = end == std::string_view::npos ? text_.size() : end + 2;
    } else if (sees("//")) {
      skip_line();
    } else {
      return;
    }
  }
}

void Cursor::skip_spaces() {
  while (!done() && (text_[at_] == ' ' || text_[at_] == '\t' || text_[at_] == '\r')) ++at_;
}

void Cursor::skip_line() {
  const std::size_t end = text_.find('\n', at_);
  at_ = end == std::string_view::npos ? text_.size() : end + 1;
}

bool Cursor::take(std::string_view sign) {
  skip_blanks();
  if (!sees(sign)) return false;
  at_ += sign.size();
  return true;
}

Result<void> Cursor::expect(std::string_view sign, std::string_view of) {
  if (take(sign)) return {};
  return fault(fmt::format("expected {} {}", in_quotes(sign), of),
               done() ? "the text ends here: write the whole module" : "write the module as XLA prints it");
}

std::string_view Cursor::name() {
  skip_blanks();
  const std::size_t start = at_;
  while (!done() && is_name_sign(text_[at_])) ++at_;
  return text_.substr(start, at_ - start);
}

std::optional<std::int64_t> Cursor::integer() {
  skip_blanks();
  const std::size_t start = at_;
  std::size_t end = at_;
  if (end < text_.size() && text_[end] == '-') ++end;
  const std::size_t digits = end;
  std::int64_t value = 0;
  while (end < text_.size() && text_[end] >= '0' && text_[end] <= '9') {
    if (end - digits >= 18) return std::nullopt;
    value = value * 10 + (text_[end++] - '0');
  }
  if (end == digits) return std::nullopt;
  at_ = end;
  return text_[start] == '-' ? -value : value;
}

Result<std::string_view> Cursor::balanced() { return balanced(false); }
Result<std::string_view> Cursor::value() { return balanced(true); }

Result<std::string_view> Cursor::balanced(bool to_blank) {
  const std::size_t start = at_;
  int depth = 0;
  for (; !done(); ++at_) {
    const char c = text_[at_];
    if (c == '"') {
      for (++at_; !done() && text_[at_] != '"'; ++at_)
        if (text_[at_] == '\\') ++at_;
      if (done()) return fault_at(start, "a quote is not closed", "write the whole module");
    } else if (c == '(' || c == '[' || c == '{') {
      if (++depth > most_brackets)
        return fault(fmt::format("brackets nest deeper than {}", most_brackets), "write the module as XLA prints it");
    } else if (c == ')' || c == ']' || c == '}') {
      if (depth-- == 0) break;
    } else if (depth == 0 && (c == ',' || c == '\n')) {
      break;
    } else if (depth == 0 && to_blank && is_blank(c) && at_ > start && !text_.substr(at_ + 1).starts_with("{")) {
      break;
    }
  }
  if (depth > 0) return fault_at(start, "a bracket is not closed", "write the whole module");
  return text_.substr(start, std::min(at_, text_.size()) - start);
}

Result<std::string_view> Cursor::bracketed() {
  const std::size_t open = at_;
  if (peek() != '(' && peek() != '[' && peek() != '{')
    return fault("expected a bracket", "write the module as XLA prints it");
  ++at_;
  const std::size_t start = at_;
  while (true) {
    ASSAY_CHECK(balanced());
    if (done()) return fault_at(open, "a bracket is not closed", "write the whole module");
    const char c = text_[at_];
    ++at_;
    if (c == ')' || c == ']' || c == '}') return text_.substr(start, at_ - 1 - start);
  }
}

std::string Cursor::where(std::size_t at) const { return place_in(file_, text_, at); }

tl::unexpected<Error> Cursor::fault_at(std::size_t at, std::string what, std::string hint) const {
  return fail(where(at), std::move(what), std::move(hint));
}

}  // namespace assay::hlo

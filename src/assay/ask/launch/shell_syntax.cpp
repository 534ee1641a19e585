#include "assay/ask/launch/shell_syntax.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>

#include "assay/base/text.h"

namespace assay::launch {
namespace {

constexpr int deepest_shell = 64;
using Kind = ShellCommand::Kind;

bool is_blank(char c) { return c == ' ' || c == '\t' || c == '\r'; }

/// The place after a closing sign, where quotes and what is nested are passed over; the end where it does not close.
std::size_t after_closing(std::string_view text, std::size_t at, char open, char close) {
  int depth = 1;
  while (at < text.size() && depth > 0) {
    const char c = text[at];
    if (c == '\\') {
      at += 2;
    } else if (c == '\'' || c == unknown_open) {
      at = text.find(c == unknown_open ? unknown_close : c, at + 1);
      at = at == std::string_view::npos ? text.size() : at + 1;
    } else if (c == '"') {
      for (++at; at < text.size() && text[at] != '"';)
        at = text[at] == '\\' ? at + 2 : text[at] == '$' ? end_of_expansion(text, at) : at + 1;
      ++at;
    } else {
      depth += c == open ? 1 : c == close ? -1 : 0;
      ++at;
    }
  }
  return std::min(at, text.size());
}

class ShellParser {
 public:
  ShellParser(std::string_view text, std::string_view where) : text_(text), where_(where) {}

  Result<ShellTree> read() {
    while (at_ < text_.size() && failed_.empty()) {
      ShellBody more = body();
      out_.body.insert(out_.body.end(), std::make_move_iterator(more.begin()), std::make_move_iterator(more.end()));
      if (at_ < text_.size()) ++at_;  // a closing sign that nothing opened
    }
    if (!failed_.empty()) return fail(where_, failed_, "close it");
    return std::move(out_);
  }

  Result<std::vector<std::string>> words() {
    std::vector<std::string> out;
    for (skip_lines(); at_ < text_.size() && failed_.empty(); skip_lines()) {
      const std::size_t start = at_;
      std::string word = raw_word();
      if (at_ == start) ++at_;  // a sign that ends words elsewhere means nothing here
      if (!word.empty()) out.push_back(std::move(word));
    }
    if (!failed_.empty()) return fail(where_, failed_, "close it");
    return out;
  }

 private:
  char peek(std::size_t ahead = 0) const { return at_ + ahead < text_.size() ? text_[at_ + ahead] : '\0'; }
  bool starts(std::string_view with) const { return text_.substr(at_).starts_with(with); }

  /// The place after a backslash that continues the line, behind which prose has comments; 0 where it is none.
  std::size_t continuation() const {
    if (peek() != '\\') return 0;
    std::size_t end = at_ + 1;
    while (end < text_.size() && is_blank(text_[end])) ++end;
    if (end < text_.size() && text_[end] == '#' && end > at_ + 1) end = std::min(text_.find('\n', end), text_.size());
    return end >= text_.size() ? end : text_[end] == '\n' ? end + 1 : 0;
  }

  void skip_blanks() {
    while (at_ < text_.size()) {
      if (is_blank(peek()))
        ++at_;
      else if (const std::size_t next = continuation())
        at_ = next;
      else if (peek() == '#')
        at_ = std::min(text_.find('\n', at_), text_.size());
      else
        break;
    }
  }

  void skip_lines() {
    for (skip_blanks(); peek() == '\n'; skip_blanks()) new_line();
  }

  void new_line() {
    ++at_;
    for (const auto& [place, end] : pending_) {
      while (at_ < text_.size()) {
        const std::size_t stop = std::min(text_.find('\n', at_), text_.size());
        const std::string_view line = text_.substr(at_, stop - at_);
        at_ = std::min(stop + 1, text_.size());
        if (trim(line) == end) break;
        out_.documents[place].text += std::string(line) + "\n";
      }
    }
    pending_.clear();
  }

  /// One word as written; empty where none starts here.
  std::string raw_word() {
    const std::size_t start = at_;
    while (at_ < text_.size()) {
      const char c = peek();
      if (c == '\'') {
        const std::size_t end = text_.find('\'', at_ + 1);
        if (end == std::string_view::npos) return unclosed("a single quote");
        at_ = end + 1;
      } else if (c == unknown_open) {
        at_ = std::min(text_.find(unknown_close, at_), text_.size() - 1) + 1;
      } else if (c == '"') {
        const std::size_t open = at_++;
        while (at_ < text_.size() && peek() != '"')
          at_ = peek() == '\\' ? at_ + 2 : peek() == '$' ? expansion() : at_ + 1;
        if (at_ >= text_.size()) return at_ = open, unclosed("a double quote");
        ++at_;
      } else if (c == '\\') {
        if (continuation()) break;
        at_ = std::min(at_ + 2, text_.size());
      } else if (c == '$' || c == '`') {
        at_ = expansion();
      } else if (c == '(' && at_ > start && text_[at_ - 1] == '=') {  // NAME=( ... )
        ++at_;
        if (!close(')')) return unclosed("a list");
      } else if (c == '<' && at_ == start && placeholder()) {
        at_ = text_.find('>', at_) + 1;
      } else if (is_blank(c) || std::string_view("\n;&|<>()").find(c) != std::string_view::npos) {
        break;
      } else {
        ++at_;
      }
    }
    return std::string(text_.substr(start, at_ - start));
  }

  std::size_t expansion() const { return end_of_expansion(text_, at_); }

  /// To the place after a list, in which comments may stand.
  bool close(char sign) {
    for (skip_lines(); at_ < text_.size() && peek() != sign && failed_.empty(); skip_lines()) {
      const std::size_t before = at_;
      raw_word();
      if (at_ == before) ++at_;
    }
    return at_ < text_.size() && ++at_ > 0;
  }

  /// <NAME>: what people put where a value belongs.
  bool placeholder() const {
    std::size_t end = at_ + 1;
    while (end < text_.size() && (is_name_character(text_[end]) || text_[end] == '-' || text_[end] == ' ')) ++end;
    return end > at_ + 1 && end < text_.size() && text_[end] == '>' && text_[at_ + 1] != ' ' && text_[end - 1] != ' ';
  }

  std::string unclosed(std::string_view what) {
    if (failed_.empty()) failed_ = fmt::format("{} is not closed", what);
    at_ = text_.size();
    return {};
  }

  /// Commands up to a word that ends them, which is left.
  ShellBody body(std::initializer_list<std::string_view> ends = {}) {
    ShellBody out;
    std::string link;
    if (++depth_ > deepest_shell) unclosed("a command");
    while (failed_.empty()) {
      skip_lines();
      if (at_ >= text_.size() || peek() == ')' || starts(";;")) break;
      if (peek() == ';' || peek() == '&') {
        ++at_;
        continue;
      }
      if (std::any_of(ends.begin(), ends.end(), [&](std::string_view end) { return at_word(end); })) break;
      const std::size_t start = at_;
      ShellCommand one = command();
      one.link = std::exchange(link, {});
      out.push_back(std::move(one));
      skip_blanks();
      for (const std::string_view sign : {"&&", "||", "|"})
        if (starts(sign)) {
          link = sign;
          at_ += sign.size() + (sign == "|" && peek(1) == '&' ? 1 : 0);
          break;
        }
      if (at_ == start) ++at_;
    }
    --depth_;
    return out;
  }

  bool at_word(std::string_view word) const {
    if (!starts(word)) return false;
    const char next = peek(word.size());
    return next == '\0' || next == '\n' || is_blank(next) ||
           std::string_view(";&|()<>").find(next) != std::string_view::npos;
  }

  bool take(std::string_view word) {
    skip_lines();
    if (!at_word(word)) return false;
    at_ += word.size();
    return true;
  }

  ShellBody until(std::string_view end) {
    ShellBody out = body({end});
    take(end);
    return out;
  }

  ShellCommand command() {
    ShellCommand out;
    while (take("!")) out.negated = !out.negated;
    skip_blanks();
    if (starts("((")) {
      out.kind = Kind::arithmetic;
      out.words = {in_parentheses()};
    } else if (peek() == '(') {
      ++at_;
      out.kind = Kind::group;
      out.bodies.push_back(body());
      if (peek() == ')') ++at_;
    } else if (take("{")) {
      out.kind = Kind::group;
      out.bodies.push_back(until("}"));
    } else if (take("[[")) {
      test(out);
    } else if (take("if")) {
      condition(out);
    } else if (at_word("while") || at_word("until")) {
      out.negated = raw_word() == "until";
      out.kind = Kind::repeat;
      out.bodies.push_back(until("do"));
      out.bodies.push_back(until("done"));
    } else if (take("for") || take("select")) {
      loop(out);
    } else if (take("case")) {
      choice(out);
    } else {
      simple(out);
    }
    if (out.kind != Kind::simple && out.kind != Kind::function)
      while (skip_blanks(), redirect(out)) {
      }
    return out;
  }

  /// ((...)): its text.
  std::string in_parentheses() {
    const std::size_t start = at_ + 2, end = after_closing(text_, at_ + 1, '(', ')');
    at_ = end;
    const std::size_t last = end > start ? end - 1 : start;
    if (after_closing(text_, at_, '(', ')') > at_ && peek() == ')') ++at_;
    return std::string(text_.substr(start, last - start));
  }

  void test(ShellCommand& out) {
    out.kind = Kind::test;
    for (skip_lines(); at_ < text_.size() && !at_word("]]"); skip_lines()) {
      std::string word;
      for (const std::string_view sign : {"&&", "||", "(", ")", "<", ">"})
        if (word.empty() && starts(sign)) word = sign;
      if (!word.empty())
        at_ += word.size();
      else
        word = test_word(!out.words.empty() && out.words.back() == "=~");
      out.words.push_back(std::move(word));
    }
    take("]]");
  }

  /// A word, or a regular expression, in which signs of the shell mean themselves.
  std::string test_word(bool is_expression) {
    const std::size_t start = at_;
    if (is_expression)
      while (at_ < text_.size() && !is_blank(peek()) && peek() != '\n') ++at_;
    else
      raw_word();
    if (at_ == start) ++at_;
    return std::string(text_.substr(start, at_ - start));
  }

  void condition(ShellCommand& out) {
    out.kind = Kind::condition;
    out.bodies.push_back(until("then"));
    while (at_ < text_.size() && failed_.empty()) {
      out.bodies.push_back(body({"elif", "else", "fi"}));
      if (take("elif")) {
        out.bodies.push_back(until("then"));
      } else if (take("else")) {
        out.bodies.push_back(until("fi"));
        return;
      } else {
        take("fi");
        return;
      }
    }
  }

  void loop(ShellCommand& out) {
    out.kind = Kind::loop;
    skip_blanks();
    if (starts("((")) {
      in_parentheses();
    } else {
      out.name = raw_word();
      if (take("in"))
        for (skip_blanks(); at_ < text_.size() && peek() != ';' && peek() != '\n'; skip_blanks()) {
          const std::size_t start = at_;
          out.words.push_back(raw_word());
          if (at_ == start) ++at_;
        }
    }
    body({"do"});
    take("do");
    out.bodies.push_back(until("done"));
  }

  void choice(ShellCommand& out) {
    out.kind = Kind::choice;
    skip_blanks();
    out.words = {raw_word()};
    take("in");
    for (skip_lines(); at_ < text_.size() && !at_word("esac") && failed_.empty(); skip_lines()) {
      std::vector<std::string>& patterns = out.patterns.emplace_back();
      const std::size_t start = at_;
      while (at_ < text_.size() && peek() != ')') {
        if (peek() == '(' || peek() == '|') ++at_;
        skip_lines();
        const std::size_t before = at_;
        patterns.push_back(raw_word());
        skip_lines();
        if (at_ == before) ++at_;
      }
      at_ = std::min(at_ + 1, text_.size());
      out.bodies.push_back(body({"esac"}));
      while (peek() == ';' || peek() == '&') ++at_;
      if (at_ == start) ++at_;
    }
    take("esac");
  }

  bool redirect(ShellCommand& out) {
    std::size_t start = at_;
    while (std::isdigit(static_cast<unsigned char>(peek())) != 0) ++at_;
    if (peek() == '&' && peek(1) == '>') ++at_;
    if ((peek() != '<' && peek() != '>') || placeholder()) return at_ = start, false;
    start = at_;
    while (peek() == '<' || peek() == '>' || peek() == '&' || peek() == '-' || peek() == '|') ++at_;
    Redirect one{std::string(text_.substr(start, at_ - start)), {}, -1};
    skip_blanks();
    if (peek() == '(') {  // <( ... )
      at_ = after_closing(text_, at_ + 1, '(', ')');
      return true;
    }
    one.target = raw_word();
    if (one.sign.starts_with("<<") && !one.sign.starts_with("<<<")) {
      std::string end;
      for (const char c : one.target)
        if (c != '\'' && c != '"' && c != '\\') end += c;
      one.document = static_cast<int>(out_.documents.size());
      out_.documents.push_back({{}, end == one.target});
      pending_.emplace_back(out_.documents.size() - 1, std::move(end));
    }
    out.redirects.push_back(std::move(one));
    return true;
  }

  void simple(ShellCommand& out) {
    const bool named = take("function");
    for (skip_blanks(); at_ < text_.size() && failed_.empty(); skip_blanks()) {
      if (redirect(out)) continue;
      std::string word = raw_word();
      if (word.empty()) break;
      out.words.push_back(std::move(word));
      if (out.words.size() == 1) {
        skip_blanks();
        const bool defines = peek() == '(' && text_.substr(at_ + 1, 1) == ")";
        if (defines) at_ += 2;
        if (!defines && !named) continue;
        out.kind = Kind::function;
        out.name = out.words.front();
        skip_lines();
        if (++depth_ > deepest_shell) unclosed("a command");
        out.bodies.push_back({command()});
        --depth_;
        return;
      }
    }
  }

  std::string_view text_;
  std::string where_;
  std::size_t at_ = 0;
  int depth_ = 0;
  std::vector<std::pair<std::size_t, std::string>> pending_;  ///< documents of this line, and the lines that end them
  std::string failed_;
  ShellTree out_;
};

}  // namespace

bool is_name_character(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_'; }

std::size_t end_of_expansion(std::string_view text, std::size_t at) {
  if (text[at] == '`') {
    const std::size_t end = text.find('`', at + 1);
    return end == std::string_view::npos ? text.size() : end + 1;
  }
  ++at;
  if (at >= text.size()) return at;
  if (text[at] == '(') return after_closing(text, at + 1, '(', ')');
  if (text[at] == '{') return after_closing(text, at + 1, '{', '}');
  if (is_name_character(text[at]) && std::isdigit(static_cast<unsigned char>(text[at])) == 0) {
    while (at < text.size() && is_name_character(text[at])) ++at;
    return at;
  }
  return std::string_view("@*#?$!-0123456789").find(text[at]) == std::string_view::npos ? at : at + 1;
}

Result<ShellTree> parse_shell(std::string_view text, std::string_view where) { return ShellParser(text, where).read(); }

Result<std::vector<std::string>> shell_list(std::string_view text, std::string_view where) {
  return ShellParser(text, where).words();
}

}  // namespace assay::launch

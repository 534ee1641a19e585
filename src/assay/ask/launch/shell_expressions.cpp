#include "assay/ask/launch/shell_expressions.h"

#include <algorithm>
#include <cctype>
#include <cmath>
#include <limits>
#include <regex>

#include "assay/ask/launch/shell_syntax.h"
#include "assay/base/text.h"

namespace assay::launch {
namespace {

constexpr int deepest_expression = 64;

std::optional<std::int64_t> whole(std::string_view text) {
  const auto number = parse_number(trim(text));
  if (!number || std::abs(*number) > 9e15) return std::nullopt;
  return static_cast<std::int64_t>(*number);
}

/// A condition, read from left to right: or, and, not, primary.
class Condition {
 public:
  Condition(const std::vector<std::string>& words, const std::function<bool(const std::string&)>& known)
      : words_(words), known_(known) {}

  std::optional<bool> any() {
    auto out = all();
    while (take("||") || take("-o")) {
      const auto other = all();
      out = out == true || other == true ? std::optional(true) : out && other ? std::optional(false) : std::nullopt;
    }
    return out;
  }

 private:
  bool take(std::string_view word) {
    if (at_ >= words_.size() || words_[at_] != word) return false;
    ++at_;
    return true;
  }

  std::optional<bool> all() {
    auto out = one();
    while (take("&&") || take("-a")) {
      const auto other = one();
      out = out == false || other == false ? std::optional(false) : out && other ? std::optional(true) : std::nullopt;
    }
    return out;
  }

  std::optional<bool> one() {
    if (++depth_ > deepest_expression || at_ >= words_.size()) return std::nullopt;
    if (take("!")) {
      const auto out = one();
      return out ? std::optional(!*out) : std::nullopt;
    }
    if (take("(")) {
      const auto out = any();
      take(")");
      return out;
    }
    const bool unary = words_[at_].size() == 2 && words_[at_][0] == '-' &&
                       std::isalpha(static_cast<unsigned char>(words_[at_][1])) != 0;
    if (unary && at_ + 1 < words_.size() && !is_binary(at_ + 1)) {
      const char what = words_[at_][1];
      const std::string& word = words_[at_ + 1];
      at_ += 2;
      if (what == 'n' || what == 'z') return known_(word) ? std::optional(word.empty() == (what == 'z')) : std::nullopt;
      if (what == 'v') return std::nullopt;
      return what == 'L' || what == 'h' ? false : !word.empty();  // files exist
    }
    if (!is_binary(at_ + 1)) return known_(words_[at_]) ? std::optional(!words_[at_++].empty()) : (++at_, std::nullopt);
    const std::string &left = words_[at_], &sign = words_[at_ + 1], &right = words_[at_ + 2];
    at_ += 3;
    return compared(left, sign, right);
  }

  bool is_binary(std::size_t at) const {
    constexpr std::string_view signs[] = {"=", "==", "!=", "=~", "<", ">", "-eq", "-ne", "-lt", "-le", "-gt", "-ge"};
    return at + 1 < words_.size() && std::find(std::begin(signs), std::end(signs), words_[at]) != std::end(signs);
  }

  std::optional<bool> compared(const std::string& left, const std::string& sign, const std::string& right) const {
    if (!known_(left) || !known_(right)) return std::nullopt;
    if (sign == "=" || sign == "==") return matches_glob(right, left);
    if (sign == "!=") return !matches_glob(right, left);
    if (sign == "<") return left < right;
    if (sign == ">") return left > right;
    if (sign == "=~") {
      if (left.size() > 1024 || right.size() > 128) return std::nullopt;
      try {
        return std::regex_search(left, std::regex(right, std::regex::extended));
      } catch (const std::regex_error&) {
        return std::nullopt;
      }
    }
    const auto a = whole(left), b = whole(right);
    if (!a || !b) return std::nullopt;
    return sign == "-eq"   ? *a == *b
           : sign == "-ne" ? *a != *b
           : sign == "-lt" ? *a < *b
           : sign == "-le" ? *a <= *b
           : sign == "-gt" ? *a > *b
                           : *a >= *b;
  }

  const std::vector<std::string>& words_;
  const std::function<bool(const std::string&)>& known_;
  std::size_t at_ = 0;
  int depth_ = 0;
};

struct Sign {
  std::string_view text;
  int rank;
};
/// Longer signs stand before their beginnings.
constexpr Sign signs[] = {{"||", 1}, {"&&", 2}, {"==", 5}, {"!=", 5}, {"<=", 6}, {">=", 6},
                          {"<<", 7}, {">>", 7}, {"|", 3},  {"^", 3},  {"&", 4},  {"<", 6},
                          {">", 6},  {"+", 8},  {"-", 8},  {"*", 9},  {"/", 9},  {"%", 9}};

class Arithmetic {
 public:
  using Lookup = std::function<std::optional<std::string>(std::string_view)>;
  using Assign = std::function<void(std::string_view, std::int64_t)>;

  Arithmetic(std::string_view text, const Lookup& variable, const Assign& assign, int depth)
      : text_(text), variable_(variable), assign_(assign), depth_(depth) {}

  std::optional<std::int64_t> read() {
    auto out = choice();
    skip();
    return at_ == text_.size() ? out : std::nullopt;
  }

 private:
  void skip() {
    while (at_ < text_.size() && std::isspace(static_cast<unsigned char>(text_[at_])) != 0) ++at_;
  }
  bool take(std::string_view sign) {
    skip();
    if (!text_.substr(at_).starts_with(sign)) return false;
    at_ += sign.size();
    return true;
  }

  std::optional<std::int64_t> choice() {
    if (++depth_ > deepest_expression) return std::nullopt;
    auto out = binary(1);
    if (take("?")) {
      const auto yes = choice();
      if (!take(":")) return std::nullopt;
      const auto no = choice();
      out = !out ? std::nullopt : *out != 0 ? yes : no;
    }
    --depth_;
    return out;
  }

  std::optional<std::int64_t> binary(int rank) {
    if (rank > 9) return unary();
    auto out = binary(rank + 1);
    while (true) {
      skip();
      const Sign* found = nullptr;
      for (const Sign& sign : signs)
        if (!found && text_.substr(at_).starts_with(sign.text)) found = &sign;
      if (!found || found->rank != rank) return out;
      at_ += found->text.size();
      const auto right = binary(rank + 1);
      out = out && right ? result(*out, found->text, *right) : std::nullopt;
    }
  }

  static std::optional<std::int64_t> result(std::int64_t a, std::string_view sign, std::int64_t b) {
    const auto u = [](std::int64_t x) { return static_cast<std::uint64_t>(x); };
    const auto s = [](std::uint64_t x) { return static_cast<std::int64_t>(x); };
    if (sign == "+") return s(u(a) + u(b));
    if (sign == "-") return s(u(a) - u(b));
    if (sign == "*") return s(u(a) * u(b));
    if (sign == "/" || sign == "%") {
      if (b == 0 || (a == std::numeric_limits<std::int64_t>::min() && b == -1)) return std::nullopt;
      return sign == "/" ? a / b : a % b;
    }
    if (sign == "<<" || sign == ">>")
      return b < 0 || b > 62 ? std::nullopt : std::optional(sign == "<<" ? s(u(a) << b) : a >> b);
    if (sign == "&") return a & b;
    if (sign == "|") return a | b;
    if (sign == "^") return a ^ b;
    const bool holds = sign == "=="   ? a == b
                       : sign == "!=" ? a != b
                       : sign == "<=" ? a <= b
                       : sign == ">=" ? a >= b
                       : sign == "<"  ? a < b
                       : sign == ">"  ? a > b
                       : sign == "&&" ? a != 0 && b != 0
                                      : a != 0 || b != 0;
    return holds ? 1 : 0;
  }

  std::optional<std::int64_t> unary() {
    if (++depth_ > deepest_expression) return std::nullopt;
    std::optional<std::int64_t> out;
    skip();
    if (take("++") || take("--")) {
      out = name(text_[at_ - 1] == '+' ? 1 : -1, true);
    } else if (take("!")) {
      out = unary();
      if (out) out = *out == 0 ? 1 : 0;
    } else if (take("-")) {
      out = unary();
      if (out) out = result(0, "-", *out);
    } else if (take("+")) {
      out = unary();
    } else if (take("(")) {
      out = choice();
      if (!take(")")) out.reset();
    } else if (at_ < text_.size() && std::isdigit(static_cast<unsigned char>(text_[at_])) != 0) {
      const std::size_t start = at_;
      while (at_ < text_.size() && std::isdigit(static_cast<unsigned char>(text_[at_])) != 0) ++at_;
      out = whole(text_.substr(start, at_ - start));
    } else {
      out = name(0, false);
    }
    --depth_;
    return out;
  }

  /// A variable, with what is added to it before, and what is done to it behind.
  std::optional<std::int64_t> name(std::int64_t step, bool before) {
    skip();
    const std::size_t start = at_;
    while (at_ < text_.size() && is_name_character(text_[at_])) ++at_;
    const std::string_view who = text_.substr(start, at_ - start);
    if (who.empty()) return std::nullopt;
    const auto text = variable_(who);
    std::optional<std::int64_t> value;
    if (text)
      value = text->empty() ? std::optional<std::int64_t>(0) : Arithmetic(*text, variable_, assign_, depth_ + 1).read();
    if (before) {
      if (value) assign_(who, *value + step);
      return value ? std::optional(*value + step) : std::nullopt;
    }
    if (take("++") || take("--")) {
      if (value) assign_(who, *value + (text_[at_ - 1] == '+' ? 1 : -1));
      return value;
    }
    for (const std::string_view sign : {"+=", "-=", "*=", "/=", "%="})
      if (take(sign)) {
        const auto other = choice();
        const auto out = value && other ? result(*value, sign.substr(0, 1), *other) : std::nullopt;
        if (out) assign_(who, *out);
        return out;
      }
    skip();
    if (text_.substr(at_, 1) == "=" && text_.substr(at_, 2) != "==") {
      ++at_;
      const auto out = choice();
      if (out) assign_(who, *out);
      return out;
    }
    return value;
  }

  std::string_view text_;
  const Lookup& variable_;
  const Assign& assign_;
  std::size_t at_ = 0;
  int depth_ = 0;
};

}  // namespace

bool matches_glob(std::string_view pattern, std::string_view text) {
  std::size_t p = 0, t = 0, star = std::string_view::npos, mark = 0;
  while (t < text.size()) {
    if (p < pattern.size() && pattern[p] == '*') {
      star = p++;
      mark = t;
    } else if (p < pattern.size() && (pattern[p] == '?' || pattern[p] == text[t])) {
      ++p;
      ++t;
    } else if (star != std::string_view::npos) {
      p = star + 1;
      t = ++mark;
    } else {
      return false;
    }
  }
  while (p < pattern.size() && pattern[p] == '*') ++p;
  return p == pattern.size();
}

std::string changed(std::string value, std::string_view rest,
                    const std::function<std::string(std::string_view)>& expand) {
  if (value.size() > 4096) return value;
  const auto cased = [&](bool upper, bool all) {
    for (std::size_t i = 0; i < (all ? value.size() : std::min<std::size_t>(1, value.size())); ++i) {
      const auto c = static_cast<unsigned char>(value[i]);
      value[i] = static_cast<char>(upper ? std::toupper(c) : std::tolower(c));
    }
    return value;
  };
  if (rest.starts_with('^') || rest.starts_with(',')) return cased(rest[0] == '^', rest.size() > 1);
  if (rest.starts_with('%') || rest.starts_with('#')) {
    const bool longest = rest.size() > 1 && rest[1] == rest[0];
    const std::string pattern = expand(rest.substr(longest ? 2 : 1));
    for (std::size_t i = 0; i <= value.size(); ++i) {
      const std::size_t n = longest ? value.size() - i : i;
      if (rest[0] == '%' && matches_glob(pattern, std::string_view(value).substr(value.size() - n)))
        return value.substr(0, value.size() - n);
      if (rest[0] == '#' && matches_glob(pattern, std::string_view(value).substr(0, n))) return value.substr(n);
    }
    return value;
  }
  if (!rest.starts_with('/')) return value;
  const bool all = rest.starts_with("//");
  rest.remove_prefix(all ? 2 : 1);
  const std::size_t slash = std::min(rest.find('/'), rest.size());
  const std::string from = expand(rest.substr(0, slash)),
                    to = slash < rest.size() ? expand(rest.substr(slash + 1)) : "";
  if (from.empty() || from.find_first_of("*?[") != std::string::npos) return value;
  for (std::size_t at = value.find(from); at != std::string::npos && value.size() < 65'536;
       at = value.find(from, at + to.size())) {
    value.replace(at, from.size(), to);
    if (!all) break;
  }
  return value;
}

std::optional<bool> test_holds(const std::vector<std::string>& words,
                               const std::function<bool(const std::string&)>& known) {
  return Condition(words, known).any();
}

std::optional<std::int64_t> calculated(std::string_view text,
                                       const std::function<std::optional<std::string>(std::string_view)>& variable,
                                       const std::function<void(std::string_view, std::int64_t)>& assign) {
  return Arithmetic(text, variable, assign, 0).read();
}

}  // namespace assay::launch

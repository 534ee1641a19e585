#include "assay/model/import/expression.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "assay/base/text.h"

namespace assay::model {
namespace {

// Sums of two such numbers still fit.
constexpr std::int64_t value_limit = std::int64_t{1} << 61;

std::int64_t bounded(double number) {
  const auto most = static_cast<double>(value_limit);
  return std::isnan(number) ? 0 : static_cast<std::int64_t>(std::clamp(number, -most, most));
}

Value truth(bool value) { return {std::int64_t{value}}; }

bool is_name_part(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '.';
}

}  // namespace

std::int64_t Value::whole() const {
  if (const auto* whole = std::get_if<std::int64_t>(&held)) return *whole;
  return bounded(number());
}

double Value::number() const {
  if (const auto* whole = std::get_if<std::int64_t>(&held)) return static_cast<double>(*whole);
  const auto* number = std::get_if<double>(&held);
  return number ? *number : 0.0;
}

const std::string& Value::text() const {
  static const std::string none;
  const auto* text = std::get_if<std::string>(&held);
  return text ? *text : none;
}

const std::vector<Value>& Value::list() const {
  static const std::vector<Value> none;
  const auto* list = std::get_if<List>(&held);
  return list ? **list : none;
}

bool operator==(const Value& a, const Value& b) {
  if (a.is_text() || b.is_text()) return a.is_text() && b.is_text() && a.text() == b.text();
  return a.number() == b.number();
}

namespace {

using Arguments = std::vector<Value>;

/// A truth about what a configuration says at a key; false where it says nothing.
struct KeyTest {
  std::string_view name;
  bool (*holds)(const Json& given);
};
constexpr KeyTest key_tests[] = {
    {"has", [](const Json& given) { return given.kind != Json::Kind::null; }},
    {"is_text", [](const Json& given) { return given.kind == Json::Kind::text; }},
    {"is_list", [](const Json& given) { return given.kind == Json::Kind::list; }},
    {"is_negative", [](const Json& given) { return given.kind == Json::Kind::integer && given.integer < 0; }},
    {"is_false",
     [](const Json& given) {
       return (given.kind == Json::Kind::boolean && !given.boolean) ||
              (given.kind == Json::Kind::integer && given.integer == 0);
     }},
};

struct Function {
  std::string_view name;
  std::size_t least, most;  ///< arguments
  Value (*value)(const Arguments& of);
};

Value list_at(const Arguments& of) {
  const std::int64_t index = of[1].whole();
  const std::vector<Value>& list = of[0].list();
  return index >= 0 && index < std::ssize(list) ? list[static_cast<std::size_t>(index)] : Value{};
}

Value list_count(const Arguments& of) {
  const std::vector<Value>& list = of[0].list();
  return {of.size() == 1 ? std::int64_t{std::ssize(list)} : std::count(list.begin(), list.end(), of[1])};
}

Value list_contains(const Arguments& of) {
  const std::vector<Value>& list = of[0].list();
  return truth(std::find(list.begin(), list.end(), of[1]) != list.end());
}

Value list_largest(const Arguments& of) {
  std::int64_t found = -1;
  for (const Value& item : of[0].list()) found = std::max(found, item.whole());
  return {found};
}

Value list_common(const Arguments& of) {
  const std::vector<Value>&list = of[0].list(), &other = of[1].list();
  const auto found = std::find_first_of(list.begin(), list.end(), other.begin(), other.end());
  return found == list.end() ? Value{std::int64_t{-1}} : *found;
}

Value list_other(const Arguments& of) {
  for (const Value& item : of[0].list())
    if (std::find(of.begin() + 1, of.end(), item) == of.end()) return item;
  return {std::string()};
}

Value list_letters(const Arguments& of) {
  std::vector<Value> out;
  for (const char c : of[0].text())
    if (of.size() == 1 || of[1].text().find(c) == std::string::npos) out.push_back({std::string(1, c)});
  return Value::of(std::move(out));
}

constexpr Function expression_functions[] = {
    {"min", 2, 2, [](const Arguments& of) { return of[0].number() <= of[1].number() ? of[0] : of[1]; }},
    {"max", 2, 2, [](const Arguments& of) { return of[0].number() >= of[1].number() ? of[0] : of[1]; }},
    {"floor", 1, 1, [](const Arguments& of) { return Value{bounded(std::floor(of[0].number()))}; }},
    {"round", 1, 1, [](const Arguments& of) { return Value{bounded(std::round(of[0].number()))}; }},
    {"sqrt", 1, 1, [](const Arguments& of) { return Value{std::sqrt(std::max(of[0].number(), 0.0))}; }},
    {"count", 1, 2, &list_count},
    {"contains", 2, 2, &list_contains},
    {"largest", 1, 1, &list_largest},
    {"common", 2, 2, &list_common},
    {"other", 2, 12, &list_other},
    {"letters", 1, 2, &list_letters},
    {"one_of", 2, 12,
     [](const Arguments& of) { return truth(std::find(of.begin() + 1, of.end(), of[0]) != of.end()); }},
    {"starts_with", 2, 2, [](const Arguments& of) { return truth(of[0].text().starts_with(of[1].text())); }},
    {"ends_with", 2, 2, [](const Arguments& of) { return truth(of[0].text().ends_with(of[1].text())); }},
    {"quoted", 1, 1, [](const Arguments& of) { return Value{in_quotes(of[0].text())}; }},
};

bool are_whole(const Arguments& of) { return of[0].is_whole() && of[1].is_whole(); }

Value value_sum(const Arguments& of, std::int64_t sign) {
  if (!are_whole(of)) return {of[0].number() + static_cast<double>(sign) * of[1].number()};
  return {std::clamp(of[0].whole() + sign * of[1].whole(), -value_limit, value_limit)};
}

Value value_product(const Arguments& of) {
  const double rounded = of[0].number() * of[1].number();
  std::int64_t exact = 0;
  if (!are_whole(of)) return {rounded};
  if (__builtin_mul_overflow(of[0].whole(), of[1].whole(), &exact)) return {bounded(rounded)};
  return {std::clamp(exact, -value_limit, value_limit)};
}

Value value_quotient(const Arguments& of) {
  if (of[1].number() == 0.0) return {};
  return are_whole(of) ? Value{of[0].whole() / of[1].whole()} : Value{of[0].number() / of[1].number()};
}

Value value_remainder(const Arguments& of) {
  return {of[1].whole() == 0 ? std::int64_t{0} : of[0].whole() % of[1].whole()};
}

/// A sign between two operands; those of a higher rank bind more tightly.
struct Sign {
  std::string_view sign;
  int rank;
  Value (*value)(const Arguments& of);
};
constexpr Sign expression_signs[] = {
    {"||", 1, [](const Arguments& of) { return truth(of[0].truth() || of[1].truth()); }},
    {"&&", 2, [](const Arguments& of) { return truth(of[0].truth() && of[1].truth()); }},
    {"==", 3, [](const Arguments& of) { return truth(of[0] == of[1]); }},
    {"!=", 3, [](const Arguments& of) { return truth(!(of[0] == of[1])); }},
    {"<=", 4, [](const Arguments& of) { return truth(of[0].number() <= of[1].number()); }},
    {">=", 4, [](const Arguments& of) { return truth(of[0].number() >= of[1].number()); }},
    {"<", 4, [](const Arguments& of) { return truth(of[0].number() < of[1].number()); }},
    {">", 4, [](const Arguments& of) { return truth(of[0].number() > of[1].number()); }},
    {"+", 5, [](const Arguments& of) { return value_sum(of, 1); }},
    {"-", 5, [](const Arguments& of) { return value_sum(of, -1); }},
    {"*", 6, &value_product},
    {"/", 6, &value_quotient},
    {"%", 6, &value_remainder},
};

}  // namespace

/// Reads an expression from left to right; the first fault stops it.
class ExpressionParser {
 public:
  explicit ExpressionParser(std::string_view text) : rest_(text) {}

  Result<Expression> whole() {
    Expression out = choice();
    if (fault_.empty() && !trim(rest_).empty()) fail_with(fmt::format("{} is left over", in_quotes(trim(rest_))));
    if (!fault_.empty()) return fail("", fault_, "docs/catalogue.md has what an expression may say");
    return out;
  }

 private:
  void fail_with(std::string what) {
    if (fault_.empty()) fault_ = std::move(what);
    rest_ = {};
  }
  bool take(std::string_view sign) {
    rest_ = trim(rest_);
    if (!rest_.starts_with(sign)) return false;
    rest_.remove_prefix(sign.size());
    return true;
  }
  void expect(std::string_view sign) {
    if (!take(sign))
      fail_with(fmt::format("expected {} before {}", sign, rest_.empty() ? "the end" : in_quotes(rest_)));
  }
  void enter() {
    constexpr int deepest = 40;
    if (++depth_ > deepest) fail_with("is nested too deep");
  }
  static Expression make(Value (*function)(const Arguments&), std::vector<Expression> parts) {
    Expression out;
    out.kind_ = Expression::Kind::function;
    out.function_ = function;
    out.parts_ = std::move(parts);
    return out;
  }
  static Expression make_choice(Expression that, Expression yes, Expression no) {
    Expression out = make(nullptr, {std::move(that), std::move(yes), std::move(no)});
    out.kind_ = Expression::Kind::choice;
    return out;
  }
  static Expression make_name(std::string name) {
    Expression out;
    out.kind_ = Expression::Kind::name;
    out.name_ = std::move(name);
    return out;
  }

  Expression choice() {
    enter();
    Expression out = binary(1);
    if (take("?")) {
      Expression yes = choice();
      expect(":");
      out = make_choice(std::move(out), std::move(yes), choice());
    }
    --depth_;
    return out;
  }
  Expression binary(int rank) {
    Expression left = operand();
    while (true) {
      const auto* const found =
          std::find_if(std::begin(expression_signs), std::end(expression_signs),
                       [&](const Sign& sign) { return sign.rank >= rank && trim(rest_).starts_with(sign.sign); });
      if (found == std::end(expression_signs)) return left;
      take(found->sign);
      left = make(found->value, {std::move(left), binary(found->rank + 1)});
    }
  }
  Expression operand() {
    if (const bool negates = take("!"); negates || take("-")) {
      enter();
      Expression inner = operand();
      --depth_;
      if (negates) return make([](const Arguments& of) { return truth(!of[0].truth()); }, {std::move(inner)});
      return make([](const Arguments& of) { return value_sum({Value{}, of[0]}, -1); }, {std::move(inner)});
    }
    Expression out = plain();
    while (take("[")) {
      out = make(&list_at, {std::move(out), choice()});
      expect("]");
    }
    return out;
  }
  Expression plain() {
    if (take("(")) {
      Expression out = choice();
      expect(")");
      return out;
    }
    if (take("'")) {
      const std::size_t end = rest_.find('\'');
      if (end == std::string_view::npos) fail_with("a text has no end");
      Expression out{Value{std::string(rest_.substr(0, end))}};
      rest_.remove_prefix(std::min(end + 1, rest_.size()));
      return out;
    }
    const auto* const end = std::find_if(rest_.begin(), rest_.end(), [](char c) { return !is_name_part(c); });
    std::string word(rest_.begin(), end);
    rest_.remove_prefix(word.size());
    if (word.empty()) {
      fail_with(fmt::format("expected a name or a number before {}", rest_.empty() ? "the end" : in_quotes(rest_)));
      return {};
    }
    if (word == "true" || word == "false") return Expression(truth(word == "true"));
    if (word.front() >= '0' && word.front() <= '9') return number(word);
    return take("(") ? call(word) : make_name(std::move(word));
  }
  Expression number(const std::string& word) {
    const auto parsed = parse_number(word);
    if (!parsed) fail_with(fmt::format("{} is not a number", in_quotes(word)));
    const double value = parsed.value_or(0.0);
    return word.find('.') == std::string::npos ? Expression(Value{bounded(value)}) : Expression(Value{value});
  }
  Expression call(const std::string& word) {
    std::vector<Expression> arguments;
    do arguments.push_back(choice());
    while (take(","));
    expect(")");
    if (word == "listed" && arguments.size() == 3) {  // a list[i] == text, or what stands in where the list is empty
      Expression given = make(&list_count, {arguments[0]});
      Expression here = make(&list_at, {arguments[0], make_name("i")});
      return make_choice(std::move(given), make(expression_signs[2].value, {std::move(here), arguments[1]}),
                         arguments[2]);
    }
    for (const KeyTest& test : key_tests)
      if (test.name == word) {
        Expression out = arguments.front();
        if (out.kind_ != Expression::Kind::name) fail_with(fmt::format("{} takes the name of a key", word));
        out.kind_ = Expression::Kind::test;
        out.test_ = test.holds;
        return out;
      }
    for (const Function& function : expression_functions)
      if (function.name == word) {
        if (arguments.size() < function.least || arguments.size() > function.most)
          fail_with(fmt::format("{} has {} arguments", word, arguments.size()));
        return make(function.value, std::move(arguments));
      }
    fail_with(fmt::format("unknown function {}", in_quotes(word)));
    return {};
  }

  std::string_view rest_;
  std::string fault_;
  int depth_ = 0;
};

Result<Expression> Expression::parse(std::string_view text) { return ExpressionParser(text).whole(); }

void Expression::add_names(std::vector<std::string_view>& found) const {
  if (kind_ == Kind::name) found.push_back(name_);
  for (const Expression& part : parts_) part.add_names(found);
}

std::vector<std::string_view> Expression::names() const {
  std::vector<std::string_view> found;
  add_names(found);
  return found;
}

Value Expression::value(Names& names) const {
  switch (kind_) {
    case Kind::literal:
      return literal_;
    case Kind::name:
      return names.value(name_);
    case Kind::choice:
      return parts_[parts_[0].value(names).truth() ? 1 : 2].value(names);
    case Kind::test: {
      const Json* given = names.given(name_);
      return truth(given && test_(*given));
    }
    case Kind::function:
      break;
  }
  Arguments arguments;
  arguments.reserve(parts_.size());
  for (const Expression& part : parts_) arguments.push_back(part.value(names));
  return function_(arguments);
}

Result<MessageText> MessageText::parse(std::string_view text) {
  MessageText out;
  while (true) {
    const std::size_t open = text.find('{'), close = text.find('}');
    out.plain_.emplace_back(text.substr(0, open));
    if (open == std::string_view::npos) return out;
    if (close == std::string_view::npos || close < open) return fail("", "a brace is not closed");
    ASSAY_TRY(value, Expression::parse(text.substr(open + 1, close - open - 1)));
    out.values_.push_back(std::move(value));
    text.remove_prefix(close + 1);
  }
}

std::string MessageText::text(Names& names) const {
  if (plain_.empty()) return {};
  std::string out = plain_.front();
  for (std::size_t i = 0; i < values_.size(); ++i) {
    const Value value = values_[i].value(names);
    if (value.is_text())
      out += value.text();
    else
      out += value.is_whole() ? fmt::format("{}", value.whole()) : fmt::format("{}", value.number());
    out += plain_[i + 1];
  }
  return out;
}

}  // namespace assay::model

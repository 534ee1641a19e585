// Expressions in the files of catalogue/architectures: "num_attention_heads * head_dim", "i % 2 == 0 ? window : 0".
#pragma once
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "assay/base/result.h"
#include "assay/model/checkpoint/json_reader.h"

namespace assay::model {

/// A number, a text or a list. A truth is 1 or 0.
struct Value {
  /// Lists are shared: expressions take one for each layer, and nobody changes it.
  using List = std::shared_ptr<const std::vector<Value>>;
  std::variant<std::int64_t, double, std::string, List> held = std::int64_t{0};

  bool is_text() const { return std::holds_alternative<std::string>(held); }
  bool is_whole() const { return std::holds_alternative<std::int64_t>(held); }
  bool truth() const { return number() != 0.0; }
  /// A fraction is cut off; what is no number is 0.
  std::int64_t whole() const;
  double number() const;
  const std::string& text() const;
  const std::vector<Value>& list() const;
  static Value of(std::vector<Value> list) { return {std::make_shared<const std::vector<Value>>(std::move(list))}; }
  friend bool operator==(const Value& a, const Value& b);
};

/// What the names of an expression stand for.
class Names {
 public:
  virtual ~Names() = default;
  virtual Value value(std::string_view name) = 0;
  /// What a configuration says at a key; nullptr where it says nothing.
  virtual const Json* given(std::string_view key) = 0;
};

/// Operators as in C; `x ? a : b`, `list[i]`, 'text', and functions: docs/catalogue.md lists them. No value is an
/// error: an index out of range, a division by 0 and a function of the wrong kind of value give 0.
class Expression {
 public:
  Expression() = default;
  explicit Expression(Value value) : literal_(std::move(value)) {}
  /// Fails with what is wrong; the caller knows the place.
  static Result<Expression> parse(std::string_view text);

  Value value(Names& names) const;
  /// All names in it whose values it takes, in its order.
  std::vector<std::string_view> names() const;

 private:
  friend class ExpressionParser;
  enum class Kind { literal, name, choice, test, function };

  void add_names(std::vector<std::string_view>& found) const;

  Kind kind_ = Kind::literal;
  Value literal_;
  std::string name_;
  std::vector<Expression> parts_;
  bool (*test_)(const Json& given) = nullptr;
  Value (*function_)(const std::vector<Value>& arguments) = nullptr;
};

/// Text with expressions in braces: "must divide the {num_attention_heads} heads".
class MessageText {
 public:
  static Result<MessageText> parse(std::string_view text);
  std::string text(Names& names) const;
  const std::vector<Expression>& expressions() const { return values_; }

 private:
  std::vector<std::string> plain_;  ///< one more than values
  std::vector<Expression> values_;
};

}  // namespace assay::model

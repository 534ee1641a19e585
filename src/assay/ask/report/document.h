// Results as a tree of named values. Every renderer (table, tree, JSON, CSV, Markdown) walks the same tree.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "assay/base/explain.h"
#include "assay/base/result.h"
#include "assay/base/text.h"
#include "assay/base/units.h"

namespace assay::report {

class Value;
using Members = std::vector<std::pair<std::string, Value>>;
using Items = std::vector<Value>;

/// A quantity with where it comes from; only what is known is set.
struct QuantityValue {
  AnyQuantity quantity;
  std::string source{}, note{};
  std::vector<std::pair<AnyQuantity, std::string>> also{};
};

/// One value of a result: nothing, a truth, a count, a ratio, text, a quantity, a list, or an object with keys in
/// order.
class Value {
 public:
  using Variant = std::variant<std::monostate, bool, std::int64_t, double, std::string, QuantityValue, Items, Members>;

  // Out of line, so that not every file that fills a table instantiates a variant of eight types.
  Value();
  Value(const Value&);
  Value(Value&&) noexcept;
  Value& operator=(const Value&);
  Value& operator=(Value&&) noexcept;
  ~Value();
  Value(bool v);
  Value(std::int64_t v);
  Value(int v);
  Value(double v);
  Value(std::string v);
  Value(std::string_view v);
  Value(const char* v);
  Value(QuantityValue v);
  Value(AnyQuantity v);
  template <Dim D>
  Value(Quantity<D> v) : Value(AnyQuantity(v)) {}
  Value(Items v);
  Value(Members v);
  template <class T>
  Value(const Sourced<T>& v);
  /// Nothing where there is none.
  template <class T>
  Value(const std::optional<T>& v) {
    if (v) *this = Value(*v);
  }

  const Variant& data() const { return data_; }
  bool is_null() const { return std::holds_alternative<std::monostate>(data_); }
  const Members* members() const { return std::get_if<Members>(&data_); }
  const Items* items() const { return std::get_if<Items>(&data_); }
  Members& make_members() {
    if (!members()) data_ = Members{};
    return std::get<Members>(data_);
  }

  /// The member of that key, or null.
  const Value* find(std::string_view key) const;

 private:
  Variant data_;
};

/// A value by its path, "memory.hbm.capacity" or "levels[0].chips"; "peak.bf16.also[book]" is the additional value from
/// that source, "peak.bf16.also[0]" the first of them. Nothing if there is no such value.
std::optional<Value> find_path(const Value& root, std::string_view path);

/// The number behind a value (count, ratio, quantity in base units), if it is one.
std::optional<double> numeric(const Value& value);

/// A row for each element: what `row` makes of it.
template <class Range, class Row>
Items rows_of(const Range& range, Row row) {
  Items out;
  for (const auto& one : range) out.emplace_back(row(one));
  return out;
}

/// Adds a member that may fail.
template <class T>
Result<void> put(Members& out, std::string_view key, Result<T> value) {
  if (!value) return tl::unexpected<Error>(std::move(value).error());
  out.emplace_back(key, *std::move(value));
  return {};
}

/// {"lower": q, "estimate": q, "upper": q}
Members range(AnyQuantity lower, AnyQuantity estimate, AnyQuantity upper);

/// One line of text for a scalar: "3.35 TB/s", "yes", "1,024"; empty for lists and objects.
std::string scalar_text(const Value& value, BytePrefix bytes = BytePrefix::binary_if_exact);

template <class T>
Value::Value(const Sourced<T>& v) {
  const auto any = [](const T& x) {
    if constexpr (requires { x.value(); })
      return AnyQuantity(x);
    else
      return AnyQuantity(static_cast<double>(x), Dim{});
  };
  QuantityValue q{any(v.value), v.source, v.note, {}};
  for (const auto& other : v.also) q.also.emplace_back(any(other.value), other.source);
  *this = Value(std::move(q));
}

}  // namespace assay::report

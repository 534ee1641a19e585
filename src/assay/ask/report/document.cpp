#include "assay/ask/report/document.h"

#include <algorithm>

#include "assay/base/text.h"

namespace assay::report {

Value::Value() = default;
Value::Value(const Value&) = default;
Value::Value(Value&&) noexcept = default;
Value& Value::operator=(const Value&) = default;
Value& Value::operator=(Value&&) noexcept = default;
Value::~Value() = default;
Value::Value(bool v) : data_(v) {}
Value::Value(std::int64_t v) : data_(v) {}
Value::Value(int v) : data_(static_cast<std::int64_t>(v)) {}
Value::Value(double v) : data_(v) {}
Value::Value(std::string v) : data_(std::move(v)) {}
Value::Value(std::string_view v) : data_(std::string(v)) {}
Value::Value(const char* v) : data_(std::string(v)) {}
Value::Value(QuantityValue v) : data_(std::move(v)) {}
Value::Value(AnyQuantity v) : data_(QuantityValue{v}) {}
Value::Value(Items v) : data_(std::move(v)) {}
Value::Value(Members v) : data_(std::move(v)) {}

const Value* Value::find(std::string_view key) const {
  if (const Members* all = members())
    for (const auto& [name, value] : *all)
      if (name == key) return &value;
  return nullptr;
}

namespace {

/// Whether `text` is an index into a list of `size`, and which.
std::optional<std::size_t> place_in(std::string_view text, std::size_t size) {
  std::size_t index = 0;
  for (char c : text) {
    if (c < '0' || c > '9') return std::nullopt;
    index =
        std::min(10 * index + static_cast<std::size_t>(c - '0'), size);  // never past the first place that is not there
  }
  return !text.empty() && index < size ? std::optional(index) : std::nullopt;
}

/// The value from another source: by the key of the source, or by its index.
std::optional<Value> find_also(const QuantityValue& value, std::string_view which) {
  for (const auto& [quantity, source] : value.also)
    if (source == which) return Value(quantity);
  const auto index = place_in(which, value.also.size());
  if (!index) return std::nullopt;
  return Value(value.also[*index].first);
}

}  // namespace

std::optional<Value> find_path(const Value& root, std::string_view path) {
  const Value* at = &root;
  const auto parts = split(path, '.');
  for (std::size_t i = 0; i < parts.size(); ++i) {
    const std::string_view part = parts[i];
    const auto* quantity = std::get_if<QuantityValue>(&at->data());
    if (quantity && i + 1 == parts.size() && part.starts_with("also[") && part.ends_with("]"))
      return find_also(*quantity, part.substr(5, part.size() - 6));
    const std::size_t bracket = part.find('[');
    at = at->find(part.substr(0, bracket));
    if (!at) return std::nullopt;
    std::string_view rest = bracket == std::string_view::npos ? std::string_view{} : part.substr(bracket);
    while (!rest.empty()) {
      const std::size_t close = rest.find(']');
      const Items* items = at->items();
      if (rest.front() != '[' || close == std::string_view::npos || !items) return std::nullopt;
      const auto index = place_in(rest.substr(1, close - 1), items->size());
      if (!index) return std::nullopt;
      at = &(*items)[*index];
      rest = rest.substr(close + 1);
    }
  }
  return *at;
}

std::optional<double> numeric(const Value& value) {
  if (const auto* count = std::get_if<std::int64_t>(&value.data())) return static_cast<double>(*count);
  if (const auto* ratio = std::get_if<double>(&value.data())) return *ratio;
  if (const auto* quantity = std::get_if<QuantityValue>(&value.data())) return quantity->quantity.value;
  return std::nullopt;
}

Members range(AnyQuantity lower, AnyQuantity estimate, AnyQuantity upper) {
  return {{"lower", lower}, {"estimate", estimate}, {"upper", upper}};
}

std::string scalar_text(const Value& value, BytePrefix bytes) {
  const Value::Variant& data = value.data();
  if (const auto* truth = std::get_if<bool>(&data)) return *truth ? "yes" : "no";
  if (const auto* count = std::get_if<std::int64_t>(&data)) return human_count(*count);
  if (const auto* ratio = std::get_if<double>(&data)) return human_number(*ratio);
  if (const auto* text = std::get_if<std::string>(&data)) return printable(*text);
  if (const auto* quantity = std::get_if<QuantityValue>(&data)) return human(quantity->quantity, bytes);
  if (value.is_null()) return "-";
  return "";
}

}  // namespace assay::report

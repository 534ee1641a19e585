#include "assay/report/document.h"

#include "assay/base/text.h"

namespace assay {

const Value* Value::find(std::string_view key) const {
  if (const Members* all = members())
    for (const auto& [name, value] : *all)
      if (name == key) return &value;
  return nullptr;
}

const Value* find_path(const Value& root, std::string_view path) {
  const Value* at = &root;
  for (const std::string& part : split(path, '.')) {
    const std::size_t bracket = part.find('[');
    at = at->find(std::string_view(part).substr(0, bracket));
    if (!at) return nullptr;
    std::string_view rest = bracket == std::string::npos ? std::string_view{} : std::string_view(part).substr(bracket);
    while (!rest.empty()) {
      const std::size_t close = rest.find(']');
      if (rest.front() != '[' || close == std::string_view::npos) return nullptr;
      const auto index = parse_number(rest.substr(1, close - 1));
      const Items* items = at->items();
      if (!index || !items || *index < 0 || *index >= static_cast<double>(items->size())) return nullptr;
      at = &(*items)[static_cast<std::size_t>(*index)];
      rest = rest.substr(close + 1);
    }
  }
  return at;
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

std::string scalar_text(const Value& value) {
  const Value::Variant& data = value.data();
  if (const auto* truth = std::get_if<bool>(&data)) return *truth ? "yes" : "no";
  if (const auto* count = std::get_if<std::int64_t>(&data)) return human_count(*count);
  if (const auto* ratio = std::get_if<double>(&data)) return human_number(*ratio);
  if (const auto* text = std::get_if<std::string>(&data)) return *text;
  if (const auto* quantity = std::get_if<QuantityValue>(&data)) return human(quantity->quantity);
  if (value.is_null()) return "-";
  return "";
}

}  // namespace assay

#include "assay/ask/report/reader.h"

#include "assay/ask/report/figures.h"
#include "assay/base/text.h"

namespace assay::report {

const Value* Reader::at(std::string_view path) const {
  const Value* value = nullptr;
  while (true) {
    const std::size_t dot = path.find('.');
    const std::string_view key = path.substr(0, dot);
    if (value) {
      value = value->find(key);
    } else {
      for (const auto& [name, member] : *members_)
        if (name == key) value = &member;
    }
    if (!value || dot == std::string_view::npos) return value;
    path.remove_prefix(dot + 1);
  }
}

bool Reader::has(std::string_view path) const {
  const Value* value = at(path);
  return value && !value->is_null();
}

double Reader::number(std::string_view path) const {
  const Value* value = at(path);
  return value ? numeric(*value).value_or(0.0) : 0.0;
}

std::optional<AnyQuantity> Reader::quantity(std::string_view path) const {
  const Value* value = at(path);
  const auto* found = value ? std::get_if<QuantityValue>(&value->data()) : nullptr;
  return found ? std::optional(found->quantity) : std::nullopt;
}

bool Reader::truth(std::string_view path) const {
  const Value* value = at(path);
  const auto* found = value ? std::get_if<bool>(&value->data()) : nullptr;
  return found && *found;
}

std::string Reader::text(std::string_view path) const {
  const Value* value = at(path);
  return value ? short_text(*value) : "";
}

const Items& Reader::rows(std::string_view path) const {
  static const Items none;
  const Value* value = at(path);
  return value && value->items() ? *value->items() : none;
}

std::string short_text(const Value& value) {
  if (const auto* ratio = std::get_if<double>(&value.data())) return short_number(*ratio);
  if (const auto* quantity = std::get_if<QuantityValue>(&value.data())) return short_quantity(quantity->quantity);
  if (const Items* items = value.items()) {
    std::string all;
    for (const Value& item : *items) all += (all.empty() ? "" : ", ") + short_text(item);
    return all;
  }
  return scalar_text(value);
}

}  // namespace assay::report

#include "assay/ask/report/reader.h"

#include <algorithm>

#include "assay/ask/report/figures.h"
#include "assay/base/text.h"

namespace assay::report {

const Value* Reader::at(std::string_view path) const {
  const Members* members = members_;
  if (path.starts_with("--")) {
    members = asked_;
    path.remove_prefix(2);
  }
  while (members) {
    const std::size_t dot = path.find('.'), bracket = path.substr(0, dot).find('[');
    const auto found = std::find_if(members->begin(), members->end(), [&](const auto& member) {
      return member.first == path.substr(0, std::min(dot, bracket));
    });
    if (found == members->end()) return nullptr;
    const Value* value = &found->second;
    if (bracket != std::string_view::npos) {
      const Items* items = value->items();
      if (!items || items->empty()) return nullptr;
      value = path.substr(bracket, dot - bracket) == "[0]" ? &items->front() : &items->back();
    }
    if (dot == std::string_view::npos) return value;
    members = value->members();
    path.remove_prefix(dot + 1);
  }
  return nullptr;
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

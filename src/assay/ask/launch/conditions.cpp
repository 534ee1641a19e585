#include "assay/ask/launch/conditions.h"

#include <algorithm>

#include "assay/base/text.h"

namespace assay::launch {
namespace {

/// Whether a list is another one with some items left out.
bool is_within(std::string_view list, std::string_view whole) {
  const std::vector<std::string> items = split(list, ','), all = split(whole, ',');
  std::size_t at = 0;
  for (const std::string& item : items) {
    if (item.empty()) continue;
    while (at < all.size() && all[at] != item) ++at;
    if (at++ == all.size()) return false;
  }
  return true;
}

bool holds(std::string_view condition, std::string_view value, const Settings& plan) {
  if (condition.starts_with(equal_word)) {
    const auto product = parse_product(condition.substr(equal_word.size()));
    const auto wanted = product ? value_of(*product, plan) : std::nullopt;
    return wanted && parse_number(value) == wanted;
  }
  if (condition.starts_with('>')) {
    const auto limit = parse_number(condition.substr(1)), number = parse_number(value);
    return limit && number && *number > *limit;
  }
  if (condition.starts_with(not_word)) return condition.substr(not_word.size()) != value;
  if (condition.starts_with(within_word)) return is_within(value, condition.substr(within_word.size()));
  return condition == value;
}

}  // namespace

std::optional<double> number_of(const Settings& plan, std::string_view field) {
  const auto found = plan.find(field);
  return found == plan.end() ? std::nullopt : parse_number(found->second);
}

std::optional<double> value_of(const Product& product, const Settings& plan) {
  double value = 1.0;
  for (const Factor& factor : product) {
    const auto number = factor.field.empty() ? std::optional(factor.number) : number_of(plan, factor.field);
    if (!number || *number == 0.0) return std::nullopt;
    value = factor.power > 0 ? value * *number : value / *number;
  }
  return value;
}

bool hold(const Pairs& when, const Settings& plan) {
  return std::all_of(when.begin(), when.end(), [&](const auto& condition) {
    const auto found = plan.find(condition.first);
    return found != plan.end() && holds(condition.second, found->second, plan);
  });
}

bool may_hold(const Pairs& when, const Settings& plan) {
  return std::all_of(when.begin(), when.end(), [&](const auto& condition) {
    const auto found = plan.find(condition.first);
    return found == plan.end() || holds(condition.second, found->second, plan);
  });
}

std::vector<std::string> names_of(const Choice& choice) {
  std::vector<std::string> names;
  for (const Case& one : choice.cases)
    for (const auto& [name, value] : one.options)
      if (std::find(names.begin(), names.end(), name) == names.end()) names.push_back(name);
  return names;
}

}  // namespace assay::launch

#include "assay/ask/report/figures.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "assay/base/larger_unit.h"
#include "assay/base/text.h"

namespace assay::report {
namespace {

constexpr int digits = 3;

/// Decimals with which a number shows `digits` significant digits.
int decimals_of(double value) {
  const double size = std::abs(value);
  if (!(size > 0.0) || !std::isfinite(size)) return 0;
  return std::clamp(digits - 1 - static_cast<int>(std::floor(std::log10(size) + 1e-12)), 0, 15);
}

std::string with_separators(std::string text) {
  const std::size_t start = text.starts_with('-') ? 1 : 0;
  for (std::size_t i = std::min(text.find('.'), text.size()); i > start + 3; i -= 3) text.insert(i - 3, ",");
  return text;
}

/// The number with at most that many decimals; zeros at its end say nothing.
std::string fixed(double value, int decimals) {
  std::string text = fmt::format("{:.{}f}", value, decimals);
  if (text.find('.') != std::string::npos) {
    while (text.ends_with('0')) text.pop_back();
    if (text.ends_with('.')) text.pop_back();
  }
  return with_separators(std::move(text));
}

struct ScaledUnit {
  std::string unit;
  double scale;
};

/// Rounding may carry into the next prefix: 999.9 MB are 1 GB.
constexpr double nearly = 1.0 - 5e-4;

ScaledUnit prefixed(double size, std::span<const Prefix> prefixes, std::string_view between, std::string_view unit) {
  const auto found =
      std::find_if(prefixes.begin(), prefixes.end(), [&](const Prefix& p) { return size >= nearly * p.scale; });
  const Prefix& chosen = size > 0.0 && found == prefixes.end() ? prefixes.back() : size > 0.0 ? *found : Prefix{"", 1};
  const std::string_view name = chosen.name == "u" ? "\u00b5" : chosen.name;
  return {fmt::format("{}{}{}", name, name.empty() ? "" : between, unit), chosen.scale};
}

/// Large counts in thousands, millions and billions, which the field writes B.
ScaledUnit scaled_count(double size) {
  constexpr double large = 1e5;
  if (size < large) return {"", 1.0};
  const ScaledUnit scaled = prefixed(size, decimal_prefixes, "", "");
  return {scaled.unit == "G" ? "B" : scaled.unit, scaled.scale};
}

/// Bytes that someone counted in kB, MB or GB (a datasheet, or whoever asks): few digits there, many in binary units.
bool is_round_in_decimal(double bytes) {
  const auto few_digits = [&](std::span<const Prefix> prefixes) {
    const double thousandths = 1e3 * bytes / prefixed(bytes, prefixes, "", "").scale;
    return thousandths == std::round(thousandths);
  };
  return few_digits(decimal_prefixes) && !few_digits(binary_prefixes);
}

ScaledUnit scaled_unit(AnyQuantity quantity) {
  const std::span<const Prefix> decimal = decimal_prefixes, binary = binary_prefixes;
  const double size = std::isfinite(quantity.value) ? std::abs(quantity.value) : 0.0;
  const std::string unit = base_unit(quantity.dim);
  if (unit.empty()) return scaled_count(size);
  if (const auto larger = larger_unit({size, quantity.dim})) {
    const std::string name(larger->name);
    if (!larger->decimal) return {name, larger->scale};
    const ScaledUnit prefix = prefixed(size / larger->scale, decimal_prefixes, "", name);
    return {prefix.unit, prefix.scale * larger->scale};
  }
  if (quantity.dim == Dim{.sec = 1}) return prefixed(std::min(size, 1.0), decimal_prefixes, "", unit);
  if (quantity.dim == Dim{.byte = 1}) return prefixed(size, is_round_in_decimal(size) ? decimal : binary, "", unit);
  if (quantity.dim == Dim{.flop = 1, .byte = -1} || quantity.dim.area != 0) return {unit, 1.0};
  if (quantity.dim == Dim{.sec = -1, .usd = 1}) {
    const ScaledUnit an_hour = prefixed(std::max(size * (1_h).value(), 1.0), decimal_prefixes, " ", "USD/h");
    return {an_hour.unit, an_hour.scale / (1_h).value()};
  }
  if (unit.starts_with("USD") || unit.starts_with("tokens")) {  // a thousand of these is still read at a glance
    const double thousand = decimal_prefixes[5].scale;
    return prefixed(size < nearly * 10.0 * thousand ? 1.0 : size, decimal_prefixes, " ", unit);
  }
  return prefixed(size, decimal_prefixes, "", unit);
}

}  // namespace

std::string short_number(double value) {
  if (!std::isfinite(value)) return human_number(value);
  const ScaledUnit scaled = scaled_count(std::abs(value));
  const double number = value / scaled.scale;
  return fixed(number, decimals_of(number)) + (scaled.unit.empty() ? "" : " " + scaled.unit);
}

std::string short_quantity(AnyQuantity quantity) {
  if (base_unit(quantity.dim).empty() || !std::isfinite(quantity.value)) return short_number(quantity.value);
  const ScaledUnit scaled = scaled_unit(quantity);
  const double number = quantity.value / scaled.scale;
  constexpr double with_cents = 1e3;
  if (scaled.unit.starts_with("USD") && std::abs(number) < with_cents) return human(quantity);
  return fmt::format("{} {}", fixed(number, decimals_of(number)), scaled.unit);
}

std::string short_binary(Bytes bytes) {
  const ScaledUnit scaled = prefixed(bytes.value(), binary_prefixes, "", "B");
  const double number = bytes.value() / scaled.scale;
  return fmt::format("{} {}", fixed(number, decimals_of(number)), scaled.unit);
}

std::string percent(double share) {
  const double number = 100.0 * share;
  return fmt::format("{} %", fixed(number, std::abs(number) < 1.0 ? 2 : 1));
}

std::string signed_percent(double share) { return (share < 0.0 ? "" : "+") + percent(share); }

std::string SharedUnit::number(double value) const {
  return with_separators(fmt::format("{:.{}f}", value / scale, decimals));
}

std::string SharedUnit::text(double value) const { return unit.empty() ? number(value) : number(value) + " " + unit; }

bool SharedUnit::shows(double value) const { return std::abs(value / scale) >= 0.5 * std::pow(10.0, -decimals); }

SharedUnit shared_unit(AnyQuantity largest) {
  const ScaledUnit scaled = scaled_unit(largest);
  return {scaled.unit, scaled.scale, decimals_of(largest.value / scaled.scale)};
}

}  // namespace assay::report

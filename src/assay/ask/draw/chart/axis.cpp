#include "assay/ask/draw/chart/axis.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdlib>
#include <limits>
#include <string_view>
#include <utility>

namespace assay::draw {
namespace {

constexpr std::string_view minus_sign = "\u2212";

// SI prefixes from 10^-30 to 10^30.
constexpr std::array<std::string_view, 21> prefixes = {"q", "r", "y", "z", "a", "f", "p", "n", "\u00b5", "m", "",
                                                       "k", "M", "G", "T", "P", "E", "Z", "Y", "R",      "Q"};
constexpr int largest_prefix = 10;

// Sums and differences of values within this limit cannot overflow.
constexpr double largest_value = std::numeric_limits<double>::max() / 16.0;
constexpr double smallest_positive = std::numeric_limits<double>::min();

// Far outside of any drawing, and small enough to compute with.
constexpr double largest_position = 1e7;

double power_of_ten(int exponent) { return std::pow(10.0, exponent); }

int decimal_exponent(double value) {
  if (value == 0.0) return 0;
  // The small addition keeps 999.9999999, which is 1000 after rounding, from counting as three digits.
  return static_cast<int>(std::floor(std::log10(std::abs(value)) + 1e-9));
}

int prefix_index(int exponent) {
  return std::clamp(static_cast<int>(std::floor(exponent / 3.0)), -largest_prefix, largest_prefix);
}

std::string fixed(double value, int decimals) {
  std::string text = fmt::format("{:.{}f}", std::abs(value), std::clamp(decimals, 0, 12));
  const bool zero = text.find_first_not_of("0.") == std::string::npos;
  return value < 0.0 && !zero ? std::string(minus_sign) + text : text;
}

// Writes `value` in the notation that suits a number of decimal exponent `exponent`, exactly to the digit that stands
// for 10^last.
std::string written(double value, NumberStyle style, int exponent, int last) {
  if (value == 0.0 && style != NumberStyle::percent) return "0";
  if (style == NumberStyle::percent) return fixed(value * 100.0, -last - 2) + "%";
  const bool beyond = exponent >= 3 * (largest_prefix + 1) || exponent < -3 * largest_prefix;
  const bool small = style == NumberStyle::compact && exponent < -4;
  if (beyond || small) {
    std::string text = fixed(value / power_of_ten(exponent), exponent - last);
    const std::string power =
        exponent < 0 ? std::string(minus_sign) + std::to_string(-exponent) : std::to_string(exponent);
    return text + "e" + power;
  }
  // Without a unit behind it, a fraction reads better than a prefix.
  const int prefix = style == NumberStyle::compact && exponent < 3 ? 0 : prefix_index(exponent);
  const std::string digits = fixed(value / power_of_ten(3 * prefix), 3 * prefix - last);
  const std::string_view name = prefixes[static_cast<std::size_t>(prefix + largest_prefix)];
  if (name.empty()) return digits;
  return style == NumberStyle::si ? digits + " " + std::string(name) : digits + std::string(name);
}

// A round step of 1, 2 or 5 times a power of ten: its value and that power.
std::pair<double, int> round_step(double extent, int count) {
  const double raw = extent / std::max(count, 1);
  const int exponent = decimal_exponent(raw);
  const double unit = power_of_ten(exponent);
  for (const double factor : {1.0, 2.0, 5.0}) {
    if (factor * unit >= raw * (1.0 - 1e-9)) return {factor * unit, exponent};
  }
  return {10.0 * unit, exponent + 1};
}

std::vector<AxisTick> linear_ticks(AxisRange range, NumberStyle style, int count) {
  const auto [step, last] = round_step(range.to - range.from, count);
  std::vector<AxisTick> marks;
  if (!(step > 0.0)) return marks;
  const double slack = 1e-6 * step;
  const double first = std::ceil((range.from - slack) / step);
  const int limit = 2 * count + 4;
  for (int i = 0; i < limit; ++i) {
    const double value = (first + i) * step;
    if (value > range.to + slack) break;
    marks.push_back({std::abs(value) < slack ? 0.0 : value, "", false});
  }
  double largest = 0.0;
  for (const AxisTick& tick : marks) largest = std::max(largest, std::abs(tick.value));
  int exponent = decimal_exponent(largest);
  // Four digits are still easy to read, and a prefix would only add digits after the point.
  const bool plain = exponent == 3 || (exponent > 3 && exponent < 6 && last < 1);
  if (style == NumberStyle::compact && plain) exponent = 0;
  for (AxisTick& tick : marks) tick.text = written(tick.value, style, exponent, last);
  return marks;
}

std::vector<AxisTick> log_ticks(AxisRange range, NumberStyle style, int count) {
  const double low = std::log10(range.from);
  const double high = std::log10(range.to);
  const double extent = high - low;
  if (extent < 0.8) return linear_ticks(range, style, count);
  // With few decades the powers of ten alone would leave the axis nearly bare.
  const bool with_2_and_5 = extent * 3.0 <= 2.0 * std::max(count, 2) && extent < 3.0;
  int stride = 1;
  for (const int candidate : {1, 2, 3, 6, 12, 24, 48, 96, 192}) {
    stride = candidate;
    if (extent / candidate <= std::max(count, 3)) break;
  }
  constexpr double slack = 1e-9;
  std::vector<AxisTick> marks;
  for (int e = static_cast<int>(std::floor(low)); e <= static_cast<int>(std::ceil(high)); ++e) {
    for (int digit = 1; digit <= 9; ++digit) {
      const double place = e + std::log10(digit);
      if (place < low - slack || place > high + slack) continue;
      if (digit > 1 && (stride > 1 || extent > 12.0)) break;
      const double value = digit * power_of_ten(e);
      if (extent > 40.0 && e % stride != 0) break;
      const bool major = digit == 1 ? e % stride == 0 : with_2_and_5 && (digit == 2 || digit == 5);
      marks.push_back({value, major ? written(value, style, e, e) : "", !major});
    }
  }
  return marks;
}

}  // namespace

bool placeable(ScaleKind kind, double value) {
  if (!std::isfinite(value) || std::abs(value) > largest_value) return false;
  return kind == ScaleKind::linear || value >= smallest_positive;
}

double position(const AxisScale& scale, double value) {
  const auto [from, to] = scale.range;
  const double fraction = scale.kind == ScaleKind::log
                              ? (std::log10(value) - std::log10(from)) / (std::log10(to) - std::log10(from))
                              : (value - from) / (to - from);
  const double place = scale.start + fraction * (scale.end - scale.start);
  return std::clamp(place, -largest_position, largest_position);
}

AxisRange drawable(ScaleKind kind, AxisRange range) {
  if (!placeable(kind, range.from) || !placeable(kind, range.to)) {
    return kind == ScaleKind::log ? AxisRange{1.0, 10.0} : AxisRange{0.0, 1.0};
  }
  if (range.from > range.to) std::swap(range.from, range.to);
  if (kind == ScaleKind::log) {
    if (range.to / range.from < 1.0 + 1e-6) {
      return {std::max(range.from / 10.0, smallest_positive), std::min(range.to * 10.0, largest_value)};
    }
    return range;
  }
  const double magnitude = std::max(std::abs(range.from), std::abs(range.to));
  if (magnitude == 0.0) return {0.0, 1.0};
  // Ticks need a few more digits than the extent itself, and a double has less than sixteen.
  if (range.to - range.from > 1e-11 * magnitude) return range;
  const double half = 0.5 * magnitude;
  return {range.from - half, range.to + half};
}

AxisRange widened(ScaleKind kind, AxisRange range, double margin) {
  if (kind == ScaleKind::linear) {
    const double extra = margin * (range.to - range.from);
    return {std::max(range.from - extra, -largest_value), std::min(range.to + extra, largest_value)};
  }
  const double extra = margin * (std::log10(range.to) - std::log10(range.from));
  return {std::max(range.from * std::pow(10.0, -extra), smallest_positive),
          std::min(range.to * std::pow(10.0, extra), largest_value)};
}

std::vector<AxisTick> ticks(ScaleKind kind, AxisRange range, NumberStyle style, int count) {
  return kind == ScaleKind::log ? log_ticks(range, style, count) : linear_ticks(range, style, count);
}

std::string number_text(double value, NumberStyle style) {
  if (!std::isfinite(value)) return std::isnan(value) ? "not a number" : value < 0.0 ? "\u2212\u221e" : "\u221e";
  if (std::abs(value) < smallest_positive) return written(0.0, style, 0, 0);
  int exponent = decimal_exponent(value);
  int last = exponent - 2;
  long long digits = std::llround(value / power_of_ten(last));
  if (std::llabs(digits) >= 1000) ++exponent;
  while (last < exponent && digits % 10 == 0) {
    digits /= 10;
    ++last;
  }
  return written(static_cast<double>(digits) * power_of_ten(last), style, exponent, last);
}

}  // namespace assay::draw

#include "assay/ask/verbs/interval_members.h"

#include <fmt/format.h>

#include <algorithm>

#include "assay/hardware/calibration.h"

namespace assay::verbs {

report::Members interval_members(AnyQuantity lower, AnyQuantity estimate, const numbers::IntervalClass& of,
                                 std::span<const numbers::Coordinate> at, std::string_view architecture,
                                 std::string_view file) {
  const double low = std::max(lower.value, estimate.value / (1.0 + of.spread));
  report::Members out{{"low", AnyQuantity(low, estimate.dim)},
                      {"high", AnyQuantity(estimate.value * (1.0 + of.spread), estimate.dim)},
                      {"coverage", hardware::spread_coverage},
                      {"basis", fmt::format("{}: {}", file, of.name)},
                      {"rows", of.rows},
                      {"groups", of.groups}};
  report::Items outside;
  for (const std::string& name : of.beyond(at, architecture)) outside.emplace_back(name);
  out.emplace_back("extrapolates", !outside.empty());
  if (!outside.empty()) out.emplace_back("extrapolates_in", std::move(outside));
  return out;
}

}  // namespace assay::verbs

#include "assay/ask/verbs/interval_members.h"

#include <fmt/format.h>

#include <algorithm>

#include "assay/hardware/calibration.h"

namespace assay::verbs {

report::Members spread_interval(AnyQuantity lower, AnyQuantity estimate, double spread, const std::string& basis) {
  return {{"low", AnyQuantity(std::max(lower.value, estimate.value / (1.0 + spread)), estimate.dim)},
          {"high", AnyQuantity(estimate.value * (1.0 + spread), estimate.dim)},
          {"coverage", hardware::spread_coverage},
          {"basis", basis}};
}

report::Members interval_members(AnyQuantity lower, AnyQuantity estimate, std::span<const numbers::Coordinate> at,
                                 std::string_view architecture, const numbers::IntervalBasis& basis) {
  const numbers::IntervalClass& of = basis.of;
  report::Members out = spread_interval(lower, estimate, of.spread, fmt::format("{}: {}", basis.file, of.name));
  out.emplace_back("rows", of.rows);
  out.emplace_back("groups", of.groups);
  report::Items outside;
  for (const std::string& name : of.beyond(at, architecture)) outside.emplace_back(name);
  for (const std::string& name : basis.beyond) outside.emplace_back(name);
  out.emplace_back("extrapolates", !outside.empty());
  if (!outside.empty()) out.emplace_back("extrapolates_in", std::move(outside));
  return out;
}

}  // namespace assay::verbs

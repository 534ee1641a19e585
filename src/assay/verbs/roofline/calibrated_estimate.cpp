#include "assay/verbs/roofline/calibrated_estimate.h"

#include <fmt/format.h>

#include <algorithm>

namespace assay::verbs::roofline {

Result<std::optional<estimate::OperationEstimate>> calibrated_estimate(const Request& request, const Context& context,
                                                                       const RooflineQuery& query) {
  const std::optional<estimate::OperationEstimate> none;
  const auto sets = request.values("set");
  const bool own_shares =
      std::any_of(sets.begin(), sets.end(), [](const std::string& set) { return set.starts_with("efficiency."); });
  const bool products = std::any_of(query.operations.begin(), query.operations.end(),
                                    [](const assay::roofline::Operation& operation) { return operation.is_matmul(); });
  const bool plain = query.roof.chips == 1.0 && query.roof.level == "hbm" && !query.counting.tile &&
                     query.counting.split_chips == 1.0 && !query.pad &&
                     (!products || query.unit.starts_with("matrix unit"));
  if (own_shares || query.operations.empty() || !plain) return none;
  ASSAY_TRY(found, hardware::calibration_of(query.cluster.chip, context.catalogue));
  if (!found) return none;
  const estimate::OperationSetting setting{query.compute, query.roof.peak, query.roof.bandwidth,
                                           request.value("regime").value_or("burst")};
  return estimate::OperationEstimate::make(query.cluster.chip, std::move(*found), query.operations, setting);
}

report::Members estimate_range(const estimate::OperationEstimate& estimate, const assay::roofline::Bound<Plain>& bound,
                               const assay::roofline::Operation& operation) {
  const Seconds time = estimate.time(operation, bound);
  const double spread = estimate.spread(operation);
  report::Members members = report::range(bound.lower, time, bound.upper);
  if (spread > 0.0)
    members.emplace_back("interval", report::Members{{"low", std::max(bound.lower, time / (1.0 + spread))},
                                                     {"high", time * (1.0 + spread)},
                                                     {"coverage", hardware::spread_coverage},
                                                     {"basis", estimate.calibration().basis}});
  return members;
}

report::Members estimate_details(const estimate::OperationEstimate& estimate,
                                 const assay::roofline::Operation& operation) {
  const Seconds launch = estimate.regime().launch;
  report::Members members{{"basis", estimate.calibration().basis},
                          {"own_measurement", estimate.calibration().own},
                          {"regime", estimate.regime_name()}};
  if (!operation.is_matmul()) {
    members.emplace_back("memory", estimate.fitted(operation) - launch);
    members.emplace_back("launch", launch);
    return members;
  }
  const estimate::MatmulTime time = estimate.product(operation);
  members.emplace_back("arithmetic", time.sustained);
  members.emplace_back("memory", time.memory);
  members.emplace_back("launch", launch);
  if (time.tile.cores > 0.0) members.emplace_back("cores", time.tile.cores);
  if (time.tile.m > 0.0)
    members.emplace_back(
        "tile", report::Members{
                    {"m", time.tile.m}, {"n", time.tile.n}, {"split_k", time.tile.split}, {"waves", time.tile.waves}});
  if (time.adding > Seconds(0)) members.emplace_back("adding", time.adding);
  return members;
}

std::string estimate_note(const estimate::OperationEstimate& estimate) {
  return fmt::format("the estimate uses {}{}", estimate.calibration().basis,
                     estimate.regime_name() == "burst"
                         ? ", for an isolated kernel; --regime sustained for kernels back to back"
                         : ", for kernels back to back that keep the chip at its power limit");
}

}  // namespace assay::verbs::roofline

#include "assay/ask/verbs/roofline/query.h"

#include <fmt/format.h>

#include <algorithm>
#include <tuple>

#include "assay/ask/verbs/interval_members.h"
#include "assay/ask/verbs/verbs.h"
#include "assay/base/text.h"

namespace assay::verbs::roofline_verb {

namespace {

/// Without regard to the way of measuring.
bool can_be_calibrated(const Request& request, const RooflineQuery& query) {
  const bool products = std::any_of(query.operations.begin(), query.operations.end(),
                                    [](const roofline::Operation& operation) { return !operation.function(); });
  const bool plain = query.roof.chips == 1.0 && query.roof.level == "hbm" && !query.counting.tile &&
                     query.counting.split_chips == 1.0 && !query.pad &&
                     (!products || query.unit.starts_with("matrix unit"));
  return !sets_efficiency(request) && !query.operations.empty() && plain;
}

}  // namespace

Result<std::optional<kernel::OperationEstimate>> calibrated_estimate(const Request& request, const Context& context,
                                                                     const RooflineQuery& query) {
  const hardware::Chip& chip = query.cluster.chip;
  std::optional<kernel::OperationEstimate> found;
  ASSAY_TRY(calibration, hardware::calibration_of(chip, context.catalogue));
  if (calibration && can_be_calibrated(request, query)) {
    ASSAY_TRY(way, kernel::measured_way(query.measured, calibration->values, context.catalogue, "--measured"));
    if (way)
      found = kernel::OperationEstimate::make(
          chip, std::move(*calibration), query.operations,
          {query.compute, query.roof.peak, query.roof.bandwidth, std::move(*way), query.attention});
  }
  for (const char* option : {"measured", "attention-kernel"})
    if (!found && request.has(option))
      return fail(fmt::format("--{}", option), fmt::format("{} has no calibration for this", chip.id),
                  "it changes an estimate that a calibration makes: of one chip, from main memory");
  return found;
}

report::Members estimate_range(const kernel::OperationEstimate& estimate, const roofline::Bound<Plain>& bound,
                               const roofline::Operation& operation) {
  const Seconds time = estimate.time(operation, bound);
  const double spread = estimate.spread(operation);
  report::Members members = report::range(bound.lower, time, bound.upper);
  if (spread > 0.0)
    members.emplace_back("interval", spread_interval(bound.lower, time, spread, estimate.calibration().basis));
  return members;
}

report::Members estimate_details(const kernel::OperationEstimate& estimate, const roofline::Operation& operation) {
  const kernel::MeasuredTime time = estimate.parts(operation);
  const kernel::Harness& harness = estimate.way().harness;
  report::Members members{{"basis", estimate.calibration().basis},
                          {"own_measurement", estimate.calibration().own},
                          {"regime", estimate.way().sustained ? "sustained" : "burst"},
                          {"measured", estimate.way().name}};
  if (harness.dirty > Bytes(0)) members.emplace_back("dirty_cache", harness.dirty);
  if (!operation.is_matmul()) {
    if (time.arithmetic > Seconds(0)) members.emplace_back("arithmetic", time.arithmetic);
    members.emplace_back("memory", time.memory);
    members.emplace_back("launch", time.launch);
    return members;
  }
  const kernel::MatmulTime& product = time.product;
  members.emplace_back("arithmetic", product.sustained);
  members.emplace_back("memory", product.memory);
  members.emplace_back("launch", time.launch);
  if (product.tile.cores > 0.0) members.emplace_back("cores", product.tile.cores);
  if (product.tile.m > 0.0)
    members.emplace_back("tile", report::Members{{"m", product.tile.m},
                                                 {"n", product.tile.n},
                                                 {"split_k", product.tile.split},
                                                 {"waves", product.tile.waves}});
  if (product.adding > Seconds(0)) members.emplace_back("adding", product.adding);
  if (time.casting > Seconds(0)) members.emplace_back("casting", time.casting);
  return members;
}

std::string padding_note(const kernel::OperationEstimate& estimate, const roofline::Operation& operation) {
  const auto padded = estimate.padded(operation);
  if (!padded) return "";
  const roofline::Matmul m = operation.matmul();
  std::string sizes;
  for (const auto& [letter, from, to] : {std::tuple("n", m.n, padded->n), std::tuple("k", m.k, padded->k)})
    if (from != to)
      sizes += fmt::format("{}{} padded from {} to {}", sizes.empty() ? "" : " and ", letter, human_number(from),
                           human_number(to));
  const Seconds now = estimate.fitted(operation);
  return fmt::format(
      "rows that are not a multiple of 16 bytes run on slow kernels: with {} (whole cache lines) it would take {} "
      "instead "
      "of {}, {:.1f} times as fast",
      sizes, human(padded->time), human(now), now / padded->time);
}

std::string estimate_note(const kernel::OperationEstimate& estimate, const RooflineQuery& query) {
  const kernel::MeasuredWay& way = estimate.way();
  std::string how = fmt::format("for a kernel measured as in the table {}", way.name);
  if (way.name == "in-a-stream") how = "for one of many kernels back to back, at the chip's power limit";
  if (way.name == "flushed" && way.harness.dirty > Bytes(0))
    how = "for a kernel timed by itself after the cache was overwritten";
  if (way.name == "flushed" && !(way.harness.dirty > Bytes(0)))
    how = "for a kernel timed by itself; flushing its cache was not measured on this family and adds nothing";
  if (way.name == "cold") how = "for a kernel timed by itself with a cold cache";
  if (way.name == "alone") how = "for a kernel timed by itself; what it finds in the cache is not modelled";
  return fmt::format("the estimate uses {}, {}{}", estimate.calibration().basis, how,
                     query.measured_given ? "" : " (--measured flushed, the default)");
}

}  // namespace assay::verbs::roofline_verb

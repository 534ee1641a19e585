#include "assay/verbs/roofline/calibrated_estimate.h"

#include <fmt/format.h>

#include <algorithm>

#include "assay/base/text.h"
#include "assay/estimate/kernels.h"

namespace assay::verbs::roofline {
namespace {

estimate::MatmulShape shape_of(const assay::roofline::Matmul& matmul) {
  const Bytes bytes = storage(matmul.a, matmul.batch * matmul.m * matmul.k) +
                      storage(matmul.b, matmul.batch * matmul.k * matmul.n) +
                      storage(matmul.out, matmul.batch * matmul.m * matmul.n);
  return {matmul.batch, matmul.m, matmul.n, matmul.k, bytes};
}

/// The format itself was measured, or its twin that runs at the same rate.
bool was_measured(const hardware::MatmulCalibration& fit, Dtype dtype) {
  const auto has = [&](Dtype d) { return fit.share[static_cast<std::size_t>(d)] > 0.0; };
  return has(dtype) || (dtype == Dtype::fp16 && has(Dtype::bf16)) || (dtype == Dtype::int8 && has(Dtype::fp8));
}

/// What an element-wise function reads and writes, once each.
Bytes bytes_of(const assay::roofline::Operation& operation) {
  return assay::roofline::operation_work(Plain{}, operation, {}).bytes;
}

/// Of the bandwidth that a function's kernel reaches.
double share_of(const hardware::PointwiseCalibration& fit, const assay::roofline::PointwiseFunction& function) {
  if (function.name == "softmax") return fit.softmax;
  return function.name == "rmsnorm" || function.name == "layernorm" ? fit.norm : fit.stream;
}

}  // namespace

Result<CalibratedEstimate> CalibratedEstimate::make(const Request& request, const Context& context,
                                                    const RooflineQuery& query) {
  CalibratedEstimate estimate;
  const hardware::Chip& chip = query.cluster.chip;
  const auto sets = request.values("set");
  const bool own_shares =
      std::any_of(sets.begin(), sets.end(), [](const std::string& set) { return set.starts_with("efficiency."); });
  const auto is_matmul = [](const assay::roofline::Operation& operation) { return operation.is_matmul(); };
  const bool products = std::any_of(query.operations.begin(), query.operations.end(), is_matmul);
  const bool functions = !std::all_of(query.operations.begin(), query.operations.end(), is_matmul);
  const bool plain = query.roof.chips == 1.0 && query.roof.level == "hbm" && !query.counting.tile &&
                     query.counting.split_chips == 1.0 && !query.pad &&
                     (!products || query.unit.starts_with("matrix unit"));
  if (own_shares || query.operations.empty() || !plain) return estimate;
  ASSAY_TRY(found, hardware::calibration_of(chip, context.catalogue));
  const std::string regime = request.value("regime").value_or("burst");
  if (!found || (functions && !found->values.pointwise)) return estimate;
  if (products && (!found->values.matmul || !was_measured(*found->values.matmul, query.compute))) return estimate;
  const auto& chosen = regime == "burst" ? found->values.burst : found->values.sustained;
  if (!chosen) return estimate;
  estimate.regime_ = *chosen, estimate.regime_name_ = regime, estimate.chip_ = chip.id;
  estimate.cores_ = estimate::core_rates(chip);
  estimate.cores_.hbm = query.roof.bandwidth.value;
  estimate.peak_ = query.roof.peak, estimate.hbm_ = query.roof.bandwidth;
  if (products) estimate.share_ = estimate::matmul_share(*found->values.matmul, query.compute);
  estimate.calibration_ = std::move(found);
  return estimate;
}

estimate::MatmulTime CalibratedEstimate::product(const assay::roofline::Matmul& matmul) const {
  return estimate::matmul_time({*calibration_->values.matmul, cores_, peak_.value, share_}, shape_of(matmul), regime_);
}

Seconds CalibratedEstimate::of(const assay::roofline::Operation& operation,
                               const assay::roofline::Bound<Plain>& bound) const {
  return std::max(bound.lower, unbounded(operation));
}

Seconds CalibratedEstimate::unbounded(const assay::roofline::Operation& operation) const {
  if (operation.is_matmul()) return product(operation.matmul()).total;
  const hardware::PointwiseCalibration& fit = *calibration_->values.pointwise;
  return regime_.launch + estimate::stream_time(hbm_.value, share_of(fit, *operation.pointwise().function), fit.ramp,
                                                bytes_of(operation));
}

report::Members CalibratedEstimate::range(const assay::roofline::Bound<Plain>& bound,
                                          const assay::roofline::Operation& operation) const {
  const Seconds estimate = of(operation, bound);
  report::Members members = assay::report::range(bound.lower, estimate, bound.upper);
  const auto& spreads = calibration_->values.spread;
  const double spread = !spreads ? 0.0 : operation.is_matmul() ? spreads->matmul : spreads->pointwise;
  if (spread > 0.0)
    members.emplace_back("interval", report::Members{{"low", std::max(bound.lower, estimate / (1.0 + spread))},
                                                     {"high", estimate * (1.0 + spread)},
                                                     {"coverage", hardware::spread_coverage},
                                                     {"basis", calibration_->basis}});
  return members;
}

report::Members CalibratedEstimate::details(const assay::roofline::Operation& operation) const {
  if (!operation.is_matmul())
    return {{"basis", calibration_->basis},
            {"own_measurement", calibration_->own},
            {"regime", regime_name_},
            {"memory", unbounded(operation) - regime_.launch},
            {"launch", regime_.launch}};
  const estimate::MatmulTime time = product(operation.matmul());
  report::Members members{{"basis", calibration_->basis}, {"own_measurement", calibration_->own},
                          {"regime", regime_name_},       {"arithmetic", time.sustained},
                          {"memory", time.memory},        {"launch", regime_.launch}};
  if (time.tile.cores > 0.0) members.emplace_back("cores", time.tile.cores);
  if (time.tile.m > 0.0)
    members.emplace_back(
        "tile", report::Members{
                    {"m", time.tile.m}, {"n", time.tile.n}, {"split_k", time.tile.split}, {"waves", time.tile.waves}});
  if (time.adding > Seconds(0)) members.emplace_back("adding", time.adding);
  return members;
}

std::string CalibratedEstimate::note() const {
  return fmt::format("the estimate is that of {}{}", calibration_->basis,
                     regime_name_ == "burst" ? ", for a kernel that runs alone; --regime sustained for one among others"
                                             : ", for a kernel among others that keep the chip at its power limit");
}

Traced::Number<Dim{.sec = 1}> CalibratedEstimate::traced(const Traced& num,
                                                         const assay::roofline::Operation& operation) const {
  if (operation.is_matmul()) return traced_product(num, operation.matmul());
  const hardware::PointwiseCalibration& fit = *calibration_->values.pointwise;
  const double share = share_of(fit, *operation.pointwise().function);
  const std::string source = calibration_->values.origin("pointwise");
  const Bytes moved = bytes_of(operation);
  const auto stream = num.named("reached bandwidth", num.given("memory share", share, source) * num.given("hbm", hbm_));
  const auto flat = num.given("bytes", moved, "operands and result, once each") / stream;
  const double ramp = estimate::stream_time(hbm_.value, share, fit.ramp, moved) / (moved / (share * hbm_.value));
  const auto streaming = num.named("streaming", num.given("slowdown by ramp", ramp, source) * flat);
  return num.named("estimate",
                   num.given("launch", regime_.launch, calibration_->values.origin(regime_name_)) + streaming);
}

Traced::Number<Dim{.sec = 1}> CalibratedEstimate::traced_product(const Traced& num,
                                                                 const assay::roofline::Matmul& matmul) const {
  const estimate::MatmulTime time = product(matmul);
  const estimate::MatmulShape shape = shape_of(matmul);
  const std::string source = calibration_->values.origin("matmul"), regime = calibration_->values.origin(regime_name_);
  const auto peak = num.given("peak", peak_);
  const auto hbm = num.given("hbm", hbm_);
  const auto rate = num.named("reached rate", num.given("matrix share", share_, source) * peak);
  const FlopsPerSecond plain_rate = share_ * peak_.value;
  // What the search over tiles chose, as the arithmetic of all waves, padding and fill counted.
  const std::string tile =
      time.tile.m > 0.0 ? fmt::format("{} waves of {} x {} tiles on {} cores{}", human_number(time.tile.waves),
                                      time.tile.m, time.tile.n, cores_.cores,
                                      time.tile.split > 1.0 ? fmt::format(", k in {} parts", time.tile.split) : "")
      : time.tile.cores > 0.0
          ? fmt::format("on {} of {} cores, whose rates it has a part of", time.tile.cores, cores_.cores)
          : "sizes rounded up to the systolic array";
  const auto occupied = num.given("occupied flops", time.arithmetic * plain_rate, tile);
  const auto clock = num.given("slowdown by power", time.sustained / time.arithmetic, source);
  const auto arithmetic = num.named("arithmetic", clock * (occupied / rate));
  const auto bytes = num.given("bytes", shape.bytes, "operands and result, once each");
  const auto stream = num.named("reached bandwidth",
                                num.given("memory share", calibration_->values.matmul->memory_share, source) * hbm);
  const Seconds flat = shape.bytes / (calibration_->values.matmul->memory_share * hbm_.value);
  const auto memory =
      num.named("streaming", num.given("slowdown by ramp", time.memory / flat, regime) * (bytes / stream));
  if (time.tile.cores > 0.0) {  // operands are copied before they are multiplied
    const Seconds fork = time.tile.cores > 1.0 ? *calibration_->values.matmul->fork : Seconds(0);
    const auto start = num.given("launch", regime_.launch, regime) + num.given("fork", fork, source);
    return num.named("estimate", start + arithmetic + memory);
  }
  const auto longer = num.named("longer", max(arithmetic, memory));
  const Seconds most = std::max(time.sustained, time.memory);
  const auto overlap = num.given("imperfect overlap", (time.total - regime_.launch - time.adding) / most,
                                 "fourth root of the sum of fourth powers over the larger");
  const auto start = num.given("launch", regime_.launch, regime);
  if (!(time.adding > Seconds(0))) return num.named("estimate", start + overlap * longer);
  return num.named("estimate",
                   start + overlap * longer + num.given("adding", time.adding, "a kernel that adds up the parts of k"));
}

}  // namespace assay::verbs::roofline

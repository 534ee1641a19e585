#include "assay/estimate/operation_estimate.h"

#include <fmt/format.h>

#include <algorithm>

#include "assay/base/text.h"
#include "assay/estimate/kernels.h"

namespace assay::estimate {
namespace {

MatmulShape matmul_shape(const roofline::Matmul& matmul) {
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

/// What a function reads and writes, once each.
Bytes streamed_bytes(const roofline::Operation& operation) {
  return roofline::operation_work(Plain{}, operation, {}).bytes;
}

/// The share of the bandwidth that a function's kernel reaches.
double function_share(const hardware::PointwiseCalibration& fit, const roofline::PointwiseFunction& function) {
  if (function.name == "softmax") return fit.softmax;
  return function.name == "rmsnorm" || function.name == "layernorm" ? fit.norm : fit.stream;
}

}  // namespace

std::optional<OperationEstimate> OperationEstimate::make(const hardware::Chip& chip,
                                                         hardware::ChipCalibration calibration,
                                                         std::span<const roofline::Operation> operations,
                                                         const OperationSetting& setting) {
  const auto is_matmul = [](const roofline::Operation& operation) { return operation.is_matmul(); };
  const bool products = std::any_of(operations.begin(), operations.end(), is_matmul);
  const bool functions = !std::all_of(operations.begin(), operations.end(), is_matmul);
  const hardware::Calibration& fits = calibration.values;
  if (functions && !fits.pointwise) return std::nullopt;
  if (products && (!fits.matmul || !was_measured(*fits.matmul, setting.compute))) return std::nullopt;
  const auto& regime = setting.regime == "burst" ? fits.burst : fits.sustained;
  if (!regime) return std::nullopt;
  OperationEstimate estimate;
  estimate.setting_ = setting;
  estimate.regime_ = *regime;
  estimate.cores_ = core_rates(chip);
  estimate.cores_.hbm = setting.hbm.value;
  if (products) estimate.matrix_share_ = matmul_share(*fits.matmul, setting.compute);
  estimate.calibration_ = std::move(calibration);
  return estimate;
}

MatmulTime OperationEstimate::product(const roofline::Matmul& matmul) const {
  return matmul_time({*calibration_.values.matmul, cores_, setting_.peak.value, matrix_share_}, matmul_shape(matmul),
                     regime_);
}

Seconds OperationEstimate::fitted(const roofline::Operation& operation) const {
  if (operation.is_matmul()) return product(operation.matmul()).total;
  const hardware::PointwiseCalibration& fit = *calibration_.values.pointwise;
  return regime_.launch + stream_time(setting_.hbm.value, function_share(fit, *operation.pointwise().function),
                                      fit.ramp, streamed_bytes(operation));
}

Seconds OperationEstimate::time(const roofline::Operation& operation, const roofline::Bound<Plain>& bound) const {
  return std::max(bound.lower, fitted(operation));
}

double OperationEstimate::spread(const roofline::Operation& operation) const {
  const auto& spreads = calibration_.values.spread;
  if (!spreads) return 0.0;
  return operation.is_matmul() ? spreads->matmul : spreads->pointwise;
}

Traced::Number<Dim{.sec = 1}> OperationEstimate::traced(const Traced& num, const roofline::Operation& operation) const {
  return operation.is_matmul() ? traced_product(num, operation.matmul()) : traced_stream(num, operation);
}

Traced::Number<Dim{.sec = 1}> OperationEstimate::traced_stream(const Traced& num,
                                                               const roofline::Operation& operation) const {
  const hardware::PointwiseCalibration& fit = *calibration_.values.pointwise;
  const double share = function_share(fit, *operation.pointwise().function);
  const std::string source = calibration_.values.origin("pointwise");
  const Bytes moved = streamed_bytes(operation);
  const auto stream =
      num.named("reached bandwidth", num.given("memory share", share, source) * num.given("hbm", setting_.hbm));
  const auto flat = num.given("bytes", moved, "operands and result, once each") / stream;
  const double ramp = stream_time(setting_.hbm.value, share, fit.ramp, moved) / (moved / (share * setting_.hbm.value));
  const auto streaming = num.named("streaming", num.given("slowdown by ramp", ramp, source) * flat);
  return num.named("estimate",
                   num.given("launch", regime_.launch, calibration_.values.origin(setting_.regime)) + streaming);
}

Traced::Number<Dim{.sec = 1}> OperationEstimate::traced_product(const Traced& num,
                                                                const roofline::Matmul& matmul) const {
  const MatmulTime time = product(matmul);
  const MatmulShape shape = matmul_shape(matmul);
  const std::string source = calibration_.values.origin("matmul"), regime = calibration_.values.origin(setting_.regime);
  const auto peak = num.given("peak", setting_.peak);
  const auto hbm = num.given("hbm", setting_.hbm);
  const auto rate = num.named("reached rate", num.given("matrix share", matrix_share_, source) * peak);
  const FlopsPerSecond plain_rate = matrix_share_ * setting_.peak.value;
  // What the search over tiles chose, as the arithmetic of all waves, padding and fill counted.
  const std::string tile =
      time.tile.m > 0.0 ? fmt::format("{} waves of {} x {} tiles on {} cores{}", human_number(time.tile.waves),
                                      time.tile.m, time.tile.n, cores_.cores,
                                      time.tile.split > 1.0 ? fmt::format(", k in {} parts", time.tile.split) : "")
      : time.tile.cores > 0.0
          ? fmt::format("on {} of {} cores, with their share of the rates", time.tile.cores, cores_.cores)
          : "sizes rounded up to the systolic array";
  const auto occupied = num.given("occupied flops", time.arithmetic * plain_rate, tile);
  const auto clock = num.given("slowdown by power", time.sustained / time.arithmetic, source);
  const auto arithmetic = num.named("arithmetic", clock * (occupied / rate));
  const auto bytes = num.given("bytes", shape.bytes, "operands and result, once each");
  const auto stream =
      num.named("reached bandwidth", num.given("memory share", calibration_.values.matmul->memory_share, source) * hbm);
  const Seconds flat = shape.bytes / (calibration_.values.matmul->memory_share * setting_.hbm.value);
  const auto memory =
      num.named("streaming", num.given("slowdown by ramp", time.memory / flat, regime) * (bytes / stream));
  if (time.tile.cores > 0.0) {  // operands are copied before they are multiplied
    const Seconds fork = time.tile.cores > 1.0 ? *calibration_.values.matmul->fork : Seconds(0);
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
                   start + overlap * longer + num.given("adding", time.adding, "a kernel that sums the parts of k"));
}

}  // namespace assay::estimate

#include "assay/estimate/operation_estimate.h"

#include <fmt/format.h>

#include <algorithm>

#include "assay/base/text.h"
#include "assay/estimate/kernels.h"

namespace assay::estimate {

std::optional<OperationEstimate> OperationEstimate::make(const hardware::Chip& chip,
                                                         hardware::ChipCalibration calibration,
                                                         std::span<const roofline::Operation> operations,
                                                         const OperationSetting& setting) {
  OperationEstimate estimate;
  estimate.setting_ = setting;
  estimate.cores_ = core_rates(chip);
  estimate.cores_.hbm = setting.hbm.value;
  estimate.architecture_ = chip.architecture;
  estimate.calibration_ = std::move(calibration);
  for (const roofline::Operation& operation : operations)
    if (!estimate.place().has(estimate.kernel(operation))) return std::nullopt;
  return estimate;
}

Kernel OperationEstimate::kernel(const roofline::Operation& operation) const {
  return kernel_of(operation, setting_.compute, setting_.attention);
}

MeasuredTime OperationEstimate::parts(const roofline::Operation& operation) const {
  return measured_time(kernel(operation), place(), setting_.way.harness);
}

Seconds OperationEstimate::fitted(const roofline::Operation& operation) const { return parts(operation).total; }

Seconds OperationEstimate::time(const roofline::Operation& operation, const roofline::Bound<Plain>& bound) const {
  return std::max(bound.lower, fitted(operation));
}

double OperationEstimate::spread(const roofline::Operation& operation) const {
  const auto& spreads = calibration_.values.spread;
  return spreads ? spread_of(*spreads, kernel(operation).kind) : 0.0;
}

Traced::Number<Dim{.sec = 1}> OperationEstimate::traced(const Traced& num, const roofline::Operation& operation) const {
  const Kernel one = kernel(operation);
  if (operation.is_matmul()) return traced_product(num, one);
  return operation.is_attention() ? traced_attention(num, one) : traced_stream(num, one);
}

Traced::Number<Dim{.sec = 1}> OperationEstimate::traced_stream(const Traced& num, const Kernel& kernel) const {
  const MeasuredTime time = measured_time(kernel, place(), setting_.way.harness);
  const double share = stream_share(*calibration_.values.pointwise, kernel.kind);
  const std::string source = calibration_.values.origin("pointwise");
  const auto stream =
      num.named("reached bandwidth", num.given("memory share", share, source) * num.given("hbm", setting_.hbm));
  const auto flat = num.given("bytes", kernel.bytes, "operands and results, once each") / stream;
  const double ramp = time.memory / (kernel.bytes / (share * setting_.hbm.value));
  const auto streaming = num.named("streaming", num.given("slowdown by ramp", ramp, source) * flat);
  return num.named("estimate", num.given("launch", time.launch, setting_.way.source) + streaming);
}

Traced::Number<Dim{.sec = 1}> OperationEstimate::traced_attention(const Traced& num, const Kernel& kernel) const {
  const MeasuredTime time = measured_time(kernel, place(), setting_.way.harness);
  const std::string source = calibration_.values.origin("attention");
  const auto start = num.given("launch", time.launch, setting_.way.source);
  if (kernel.kind == KernelKind::decode) {
    const Bytes moved = setting_.way.harness.moved(kernel.bytes);
    const auto cache =
        num.given("bytes", moved, "keys and values, and what they evict") / num.given("hbm", setting_.hbm);
    return num.named("estimate",
                     start + num.given("slowdown of the kernel", time.memory / (moved / cores_.hbm), source) * cache);
  }
  const auto tiles = num.given("tiles of scores", time.arithmetic, source);
  const auto once =
      num.given("bytes", kernel.work.bytes, "queries, keys, values and results") / num.given("hbm", setting_.hbm);
  const auto passes = num.given("passes", time.memory / (kernel.work.bytes / cores_.hbm), source);
  return num.named("estimate", start + tiles + num.named("streaming", passes * once));
}

Traced::Number<Dim{.sec = 1}> OperationEstimate::traced_product(const Traced& num, const Kernel& kernel) const {
  const MeasuredTime all = measured_time(kernel, place(), setting_.way.harness);
  const MatmulTime& time = all.product;
  const hardware::MatmulCalibration& fit = *calibration_.values.matmul;
  const std::string source = calibration_.values.origin("matmul"), &way = setting_.way.source;
  const double matrix_share = matmul_share(fit, setting_.compute);
  const double memory_share = fit.memory_share * (kernel.matmul.grouped ? fit.grouped : 1.0);
  const auto peak = num.given("peak", setting_.peak);
  const auto hbm = num.given("hbm", setting_.hbm);
  const auto rate = num.named("reached rate", num.given("matrix share", matrix_share, source) * peak);
  const FlopsPerSecond plain_rate = matrix_share * setting_.peak.value;
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
  const Bytes moved = setting_.way.harness.moved(kernel.matmul.bytes);
  const auto bytes =
      num.given("bytes", moved,
                moved > kernel.matmul.bytes ? "operands and result, once each, and dirty lines they evict"
                                            : "operands and result, once each");
  const auto stream = num.named("reached bandwidth", num.given("memory share", memory_share, source) * hbm);
  const Seconds flat = moved / (memory_share * setting_.hbm.value);
  const auto memory = num.named("streaming", num.given("slowdown by ramp", time.memory / flat, way) * (bytes / stream));
  if (time.tile.cores > 0.0) {  // operands are copied before they are multiplied
    const Seconds fork = time.tile.cores > 1.0 ? *fit.fork : Seconds(0);
    const auto start = num.given("launch", all.launch, way) + num.given("fork", fork, source);
    return num.named("estimate", start + arithmetic + memory);
  }
  const auto longer = num.named("longer", max(arithmetic, memory));
  const Seconds most = std::max(time.sustained, time.memory);
  const auto overlap = num.given("imperfect overlap", (time.total - all.launch - time.adding) / most,
                                 "fourth root of the sum of fourth powers over the larger");
  auto sum = num.given("launch", all.launch, way) + overlap * longer;
  if (time.adding > Seconds(0)) sum = sum + num.given("adding", time.adding, "a kernel that sums the parts of k");
  if (all.casting > Seconds(0)) sum = sum + num.given("casting", all.casting, way);
  return num.named("estimate", sum);
}

}  // namespace assay::estimate

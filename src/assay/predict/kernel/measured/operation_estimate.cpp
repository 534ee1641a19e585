#include "assay/predict/kernel/measured/operation_estimate.h"

#include <algorithm>

#include "assay/predict/kernel/kernels.h"

namespace assay::kernel {

std::optional<OperationEstimate> OperationEstimate::make(const hardware::Chip& chip,
                                                         hardware::ChipCalibration calibration,
                                                         std::span<const roofline::Operation> operations,
                                                         const OperationSetting& setting) {
  OperationEstimate estimate;
  estimate.setting_ = setting;
  estimate.cores_ = core_rates(chip);
  estimate.cores_.hbm = setting.hbm.value;
  estimate.architecture_ = chip.architecture;
  SourceTable& sources = estimate.sources_;  // the first one of a key counts
  sources.add("peak." + std::string(name(setting.compute)), setting.peak.source);
  sources.add("hbm", setting.hbm.source);
  for (const char* of_way : {"way", "regime", "launch"}) sources.add(of_way, setting.way.source);
  add_chip_sources(chip, sources);
  const hardware::Calibration& fits = calibration.values;
  const bool flash2 = fits.attention && fits.attention->flash2 &&
                      attention_kernel(*fits.attention, setting.attention) == &*fits.attention->flash2;
  add_calibration_sources(fits, "way", sources, flash2 ? "flash2" : "cudnn");
  estimate.calibration_ = std::move(calibration);
  for (const roofline::Operation& operation : operations)
    if (!estimate.place().has(estimate.kernel(operation))) return std::nullopt;
  return estimate;
}

Kernel OperationEstimate::kernel(const roofline::Operation& operation) const {
  return kernel_of(operation, setting_.compute, setting_.attention);
}

MeasuredTime OperationEstimate::parts(const roofline::Operation& operation) const {
  return measured_time(Plain{}, kernel(operation), place(), setting_.way.harness);
}

Seconds OperationEstimate::fitted(const roofline::Operation& operation) const { return parts(operation).total; }

Seconds OperationEstimate::time(const roofline::Operation& operation, const roofline::Bound<Plain>& bound) const {
  return std::max(bound.lower, fitted(operation));
}

double OperationEstimate::spread(const roofline::Operation& operation) const {
  const auto& spreads = calibration_.values.spread;
  return spreads ? spread_of(*spreads, kernel(operation).kind) : 0.0;
}

std::optional<OperationEstimate::Padded> OperationEstimate::padded(const roofline::Operation& operation) const {
  Kernel whole = kernel(operation);
  if (whole.kind != KernelKind::matmul || !loads_narrowly(*calibration_.values.matmul, whole.product))
    return std::nullopt;
  MatmulShape& shape = whole.product;
  const Bytes operand = storage(whole.format, 1.0), result = storage(operation.result().dtype, 1.0);
  const double n = padded_row(shape.n, result), k = padded_row(shape.k, operand);
  const auto moved = [&](double columns, double depth) {
    return shape.batch * ((shape.m + columns) * depth * operand + shape.m * columns * result);
  };
  shape.bytes += moved(n, k) - moved(shape.n, shape.k);
  shape.n = n;
  shape.k = k;
  shape.operand_rows = shape.result_rows = cache_line;
  return Padded{n, k, measured_time(Plain{}, whole, place(), setting_.way.harness).total};
}

NumberOf<Traced, Seconds> OperationEstimate::traced(const Traced& num, const roofline::Operation& operation) const {
  return num.named("estimate", measured_time(num, kernel(operation), place(), setting_.way.harness).total);
}

}  // namespace assay::kernel

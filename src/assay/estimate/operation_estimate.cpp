#include "assay/estimate/operation_estimate.h"

#include <algorithm>

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

/// The share of the bandwidth that a function's kernel reaches.
void set_function_stream(const hardware::PointwiseCalibration& fit, std::string_view function, KernelWork& work) {
  const bool is_norm = function == "rmsnorm" || function == "layernorm";
  work.stream_share = function == "softmax" ? fit.softmax : is_norm ? fit.norm : fit.stream;
  work.stream_key = function == "softmax" ? "pointwise.softmax" : is_norm ? "pointwise.norm" : "pointwise.stream";
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
  KernelRates& rates = estimate.rates_;
  rates.hbm = setting.hbm.value;
  rates.cores = core_rates(chip);
  rates.cores.hbm = setting.hbm.value;
  rates.peak[static_cast<std::size_t>(setting.compute)] = setting.peak.value;
  rates.regime = *regime;
  rates.matmul = fits.matmul;
  rates.pointwise = fits.pointwise;
  rates.sources.add("peak." + std::string(name(setting.compute)), setting.peak.source);
  rates.sources.add("hbm", setting.hbm.source);
  add_chip_sources(chip, rates.sources);
  add_calibration_sources(fits, setting.regime, rates.sources);
  estimate.calibration_ = std::move(calibration);
  return estimate;
}

KernelWork OperationEstimate::work(const roofline::Operation& operation) const {
  KernelWork work;
  if (!operation.is_matmul()) {
    work.model = KernelWork::Model::stream;
    set_function_stream(*rates_.pointwise, operation.pointwise().function->name, work);
    work.bytes = roofline::operation_work(Plain{}, operation, {}).bytes;
    return work;
  }
  work.model = KernelWork::Model::product;
  work.format = setting_.compute;
  work.peak = setting_.peak.value;
  work.share = matmul_share(*rates_.matmul, setting_.compute);
  work.product = matmul_shape(operation.matmul());
  work.bytes = work.product.bytes;
  work.flops = Flops(2.0 * work.product.batch * work.product.m * work.product.n * work.product.k);
  return work;
}

MatmulTime OperationEstimate::product(const roofline::Operation& operation) const {
  const KernelWork asked = work(operation);
  return matmul_time(Plain{}, product_rates(rates_, asked), asked.product, regime_);
}

Seconds OperationEstimate::fitted(const roofline::Operation& operation) const {
  return kernel_time(Plain{}, rates_, work(operation)).estimate;
}

Seconds OperationEstimate::time(const roofline::Operation& operation, const roofline::Bound<Plain>& bound) const {
  return std::max(bound.lower, fitted(operation));
}

double OperationEstimate::spread(const roofline::Operation& operation) const {
  const auto& spreads = calibration_.values.spread;
  if (!spreads) return 0.0;
  return operation.is_matmul() ? spreads->matmul : spreads->pointwise;
}

NumberOf<Traced, Seconds> OperationEstimate::traced(const Traced& num, const roofline::Operation& operation) const {
  return num.named("estimate", kernel_time(num, rates_, work(operation)).estimate);
}

}  // namespace assay::estimate

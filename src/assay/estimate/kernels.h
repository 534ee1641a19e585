// How long the steps of a program take on one chip: bounds from ideal rates, estimates from calibrated models. Chips
// without a calibration use the shares of the ideal rates that good kernels reach.
#pragma once
#include <array>

#include "assay/base/result.h"
#include "assay/estimate/kernel_models.h"
#include "assay/hardware/calibration.h"
#include "assay/hardware/chip.h"
#include "assay/program/program.h"

namespace assay::estimate {

/// The rates of a chip in the form that costing needs: by compute format, without strings.
struct KernelRates {
  static constexpr std::size_t formats = 12;
  std::array<FlopsPerSecond, formats> peak{};  ///< 0 where the chip has no such unit
  BytesPerSecond hbm;
  double matrix_share = 1.0, memory_share = 1.0;

  // What was calibrated; the shares above stand in for what was not.
  CoreRates cores;
  hardware::Regime regime;  ///< sustained: steps follow each other without a pause
  std::optional<hardware::MatmulCalibration> matmul;
  std::optional<hardware::PointwiseCalibration> pointwise;
  std::optional<hardware::AttentionKernelCalibration> attention;

  FlopsPerSecond rate(Dtype dtype) const { return peak[static_cast<std::size_t>(dtype)]; }
};

/// Bandwidth of the optimizer's update.
inline BytesPerSecond optimizer_rate(const KernelRates& rates) {
  return rates.hbm * (rates.pointwise ? rates.pointwise->optimizer : rates.memory_share);
}

/// Which software runs the steps.
struct KernelSoftware {
  hardware::AttentionKernel attention = hardware::AttentionKernel::automatic;
  bool serves = false;  ///< serving kernels: products of experts stream as others do
};

/// `compute` must be a format of the chip; the error names those it has. Without a calibration the estimate uses the
/// chip's efficiencies.
Result<KernelRates> kernel_rates(const hardware::Chip& chip, Dtype compute, std::string_view where,
                                 const hardware::Calibration* calibration = nullptr,
                                 const KernelSoftware& software = {});

/// The share of the peak that products of a format reach in a burst, else the share of the nearest measured format; 0
/// if none was measured.
double matmul_share(const hardware::MatmulCalibration& fit, Dtype dtype);

/// Up to this many queries per sequence are bound by reading the cache.
inline constexpr std::int64_t most_decode_queries = 8;
/// Up to this many queries split the cache over the cores as decoding does, but may be bound by arithmetic: the rows of
/// one tile of scores.
inline constexpr std::int64_t most_split_queries = 64;
inline bool is_split(const program::AttentionShape& shape) {
  return shape.queries > most_decode_queries && shape.queries <= most_split_queries && shape.queries < shape.keys;
}

struct KernelTime {
  Seconds compute;   ///< arithmetic at the peak
  Seconds memory;    ///< bytes at the peak
  Seconds estimate;  ///< as good kernels do it
};
/// Time of a step that is no collective. Wide formats that the chip does not support run at its bf16 rate. The ideal
/// version leaves out the estimate, which takes longer to compute.
KernelTime ideal_kernel_time(const KernelRates& rates, const program::Program& program, const program::Step& step);
KernelTime kernel_time(const KernelRates& rates, const program::Program& program, const program::Step& step);

/// A product's sizes on one device: letters in both operands and the result form the batch, letters in one operand and
/// the result its rows and columns, letters in both operands only are summed over.
MatmulShape product_shape(const program::Program& program, const program::Step& step);

}  // namespace assay::estimate

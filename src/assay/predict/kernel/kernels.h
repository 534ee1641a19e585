// How long the steps of a program take on one chip: bounds from ideal rates, estimates from calibrated models. Chips
// without a calibration use the shares of the ideal rates that good kernels reach. Formulas are written once over a
// number policy.
#pragma once
#include <array>

#include "assay/base/result.h"
#include "assay/hardware/calibration.h"
#include "assay/hardware/chip.h"
#include "assay/predict/kernel/kernel.h"
#include "assay/predict/kernel/kernel_models.h"
#include "assay/program/form/program.h"

namespace assay::kernel {

/// The rates of a chip in the form that costing needs: by compute format, without strings.
struct KernelRates {
  static constexpr std::size_t formats = 12;
  std::array<FlopsPerSecond, formats> peak{};  ///< 0 where the chip has no such unit
  BytesPerSecond hbm;
  double matrix_share = 1.0, memory_share = 1.0;

  // What was calibrated; the shares above stand in for what was not.
  CoreRates cores;
  hardware::Regime regime;  ///< sustained: steps follow each other without a pause
  bool pads_vocabulary = false;
  std::optional<hardware::MatmulCalibration> matmul;
  std::optional<hardware::PointwiseCalibration> pointwise;
  std::optional<hardware::AttentionKernelCalibration> attention;
  SourceTable sources;  ///< of all of the above, by key: "hbm", "peak.bf16", "matmul.droop", "regime.launch"

  FlopsPerSecond rate(Dtype dtype) const { return peak[static_cast<std::size_t>(dtype)]; }
  /// The format that products of a format run at: itself, or else one that the chip has.
  Dtype format_of(Dtype wanted) const;
};

/// Bandwidth of element-wise work and of the optimizer's update.
template <class N>
NumberOf<N, BytesPerSecond> stream_rate(const N& num, const KernelRates& rates) {
  return num.given("hbm", rates.hbm, &rates.sources, "hbm") *
         (rates.pointwise
              ? num.given("share of the bandwidth", rates.pointwise->stream, &rates.sources, "pointwise.stream")
              : num.given("memory efficiency", rates.memory_share, &rates.sources, "efficiency.memory"));
}
template <class N>
NumberOf<N, BytesPerSecond> optimizer_rate(const N& num, const KernelRates& rates) {
  return num.given("hbm", rates.hbm, &rates.sources, "hbm") *
         (rates.pointwise
              ? num.given("share of the bandwidth", rates.pointwise->optimizer, &rates.sources, "pointwise.optimizer")
              : num.given("memory efficiency", rates.memory_share, &rates.sources, "efficiency.memory"));
}

/// Which software runs the steps.
struct KernelSoftware {
  hardware::AttentionKernel attention = hardware::AttentionKernel::automatic;
  bool serves = false;           ///< serving kernels: products of experts stream as others do
  bool pads_vocabulary = false;  ///< rows of logits are whole cache lines
};

/// `compute` must be a format of the chip; the error names those it has. Without a calibration the estimate uses the
/// chip's efficiencies.
Result<KernelRates> kernel_rates(const hardware::Chip& chip, Dtype compute, std::string_view where,
                                 const hardware::Calibration* calibration = nullptr,
                                 const KernelSoftware& software = {});

/// Add the sources of a chip's figures, and of the sections of a calibration, by the keys that models use: `regime` is
/// known as "regime", the attention kernel as "attention". The first source of a key counts.
void add_chip_sources(const hardware::Chip& chip, SourceTable& sources);
void add_calibration_sources(const hardware::Calibration& calibration, std::string_view regime, SourceTable& sources,
                             std::string_view attention = "cudnn");

/// The share of the peak that products of a format reach in a burst, else the share of the nearest measured format; 0
/// if none was measured.
double matmul_share(const hardware::MatmulCalibration& fit, Dtype dtype);

/// How a kernel is priced: by shares of the chip's rates where it has no calibration of such kernels.
enum class Law : std::uint8_t { shares, stream, product, decode, split, attention, scores };
Law law_of(const KernelRates& rates, const Kernel& kernel);
/// The share of the bandwidth that a kernel which streams memory reaches.
double stream_share(const hardware::PointwiseCalibration& fit, KernelKind kind);
/// The key of its source.
std::string_view stream_key(KernelKind kind);

template <class N>
struct KernelTimeOf {
  NumberOf<N, Seconds> compute;   ///< arithmetic at the peak
  NumberOf<N, Seconds> memory;    ///< bytes at the peak
  NumberOf<N, Seconds> estimate;  ///< as good kernels do it
};
using KernelTime = KernelTimeOf<Plain>;
/// One kernel by itself.
template <class N>
KernelTimeOf<N> kernel_time(const N& num, const KernelRates& rates, const Kernel& kernel);
/// A step's time without the estimate, which takes longer to compute.
template <class N>
KernelTimeOf<N> ideal_kernel_time(const N& num, const KernelRates& rates, const program::Program& program,
                                  const program::Step& step);
/// A step under Plain.
KernelTime kernel_time(const KernelRates& rates, const program::Program& program, const program::Step& step);

/// Bytes through memory as element-wise kernels move them, without a launch; at the chip's efficiency where such
/// kernels were not measured.
template <class N>
NumberOf<N, Seconds> streamed(const N& num, const KernelRates& rates, const Kernel& kernel, NumberOf<N, Bytes> bytes);
/// The rates of a kernel's products and of its attention.
ProductRates product_rates(const KernelRates& rates, const Kernel& kernel);
AttentionRates attention_rates(const KernelRates& rates, const Kernel& kernel);
DecodeRates decode_rates(const KernelRates& rates);

}  // namespace assay::kernel

// How long the steps of a program take on one chip: bounds from ideal rates, estimates from calibrated models. Chips
// without a calibration use the shares of the ideal rates that good kernels reach. Formulas are written once over a
// number policy.
#pragma once
#include <array>

#include "assay/base/result.h"
#include "assay/hardware/calibration.h"
#include "assay/hardware/chip.h"
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

/// Up to this many queries per sequence are bound by reading the cache.
inline constexpr std::int64_t most_decode_queries = 8;
/// Up to this many queries split the cache over the cores as decoding does, but may be bound by arithmetic: the rows of
/// one tile of scores.
inline constexpr std::int64_t most_split_queries = 64;
inline bool is_split(const program::AttentionShape& shape) {
  return shape.queries > most_decode_queries && shape.queries <= most_split_queries && shape.queries < shape.keys;
}

/// What a kernel does on one device, and which model prices it.
struct KernelWork {
  /// `shares` where the chip has no calibration of such kernels.
  enum class Model : std::uint8_t { shares, stream, product, decode, split, attention, scores };

  Model model = Model::shares;
  bool backward = false;  ///< of attention
  Dtype format = Dtype::bf16;
  Flops flops;
  Bytes bytes;
  FlopsPerSecond peak;                               ///< of the format; 0 without arithmetic
  double share = 0;                                  ///< of the peak that products of the format reach
  double stream_share = 0;                           ///< of the bandwidth; 0: not calibrated
  std::string_view stream_key = "pointwise.stream";  ///< of its source
  MatmulShape product;
  double load = 1;  ///< arithmetic of a product, over what its shape says: of the fullest expert
  AttentionWork attention;
  double items = 0;       ///< caches that decoding reads: sequences x key-value heads
  double cache_head = 0;  ///< elements of a head of the cache; 0 where all heads share one
};
/// The work of a step that is no collective. Wide formats that the chip does not support run at its bf16 rate.
KernelWork kernel_work(const KernelRates& rates, const program::Program& program, const program::Step& step);

/// Sizes of attention on one device.
template <class N>
struct AttentionSizes {
  NumberOf<N, double> queries;  ///< of a sequence
  NumberOf<N, double> heads;    ///< of all sequences
  NumberOf<N, double> items;    ///< sequences x key-value heads
  NumberOf<N, Bytes> shared;    ///< extra keys and values if every query head had its own
};
template <class N>
AttentionSizes<N> attention_sizes(const N& num, const program::Program& program, const program::Step& step);

template <class N>
struct KernelTimeOf {
  NumberOf<N, Seconds> compute;   ///< arithmetic at the peak
  NumberOf<N, Seconds> memory;    ///< bytes at the peak
  NumberOf<N, Seconds> estimate;  ///< as good kernels do it
};
using KernelTime = KernelTimeOf<Plain>;
/// Time of a kernel by itself.
template <class N>
KernelTimeOf<N> kernel_time(const N& num, const KernelRates& rates, const KernelWork& work);
/// Of a step, without the estimate, which takes longer to compute.
template <class N>
KernelTimeOf<N> ideal_kernel_time(const N& num, const KernelRates& rates, const program::Program& program,
                                  const program::Step& step);
/// Both under Plain.
KernelTime kernel_time(const KernelRates& rates, const program::Program& program, const program::Step& step);

/// Bytes through memory as element-wise kernels move them, without a launch; at the chip's efficiency where such
/// kernels were not measured.
template <class N>
NumberOf<N, Seconds> streamed(const N& num, const KernelRates& rates, const KernelWork& work, NumberOf<N, Bytes> bytes);
/// The rates of a kernel's products and of its attention.
ProductRates product_rates(const KernelRates& rates, const KernelWork& work);
AttentionRates attention_rates(const KernelRates& rates, const KernelWork& work);
DecodeRates decode_rates(const KernelRates& rates);

/// Of a product of experts: what its arithmetic is over what its tensors say, since the fullest expert has more than
/// its part, and the share of the experts that any token picked. Ones for other products.
struct ExpertShares {
  double filled = 1, touched = 1;
};
ExpertShares expert_shares(const program::Program& program, const program::Step& step, Flops of_tensors);

/// The gradient of a weight that a product makes: what software that adds up microbatches in it reads of earlier ones.
/// 0 for other steps.
template <class N>
NumberOf<N, Bytes> gradient_buffer(const N& num, const program::Program& program, const program::Step& step);

/// A product's sizes on one device: letters in both operands and the result form the batch, letters in one operand and
/// the result its rows and columns, letters in both operands only are summed over.
template <class N>
struct ProductSizes {
  NumberOf<N, double> batch, m, n, k;
};
template <class N>
ProductSizes<N> product_sizes(const N& num, const program::Program& program, const program::Step& step);
MatmulShape product_shape(const KernelRates& rates, const program::Program& program, const program::Step& step);

}  // namespace assay::kernel

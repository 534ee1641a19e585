// One kernel on one device: what it computes, its shapes, formats, FLOP and bytes. A step of a program, an operation
// that people write, an instruction of a compiled program (profile/hlo) and a row of a table of measurements are all
// read into it; kernel_time() and measured_time() say how long it takes.
#pragma once
#include <cstdint>
#include <string_view>

#include "assay/base/dtype.h"
#include "assay/hardware/calibration.h"
#include "assay/predict/kernel/kernel_models.h"
#include "assay/predict/roofline/operation.h"
#include "assay/program/form/program.h"

namespace assay::kernel {

struct KernelRates;

/// What a kernel computes. Those before `split_decode` have rows in tables of measurements.
enum class KernelKind : std::uint8_t {
  matmul,
  attention_forward,
  attention_backward,
  attention_both,  ///< forward and backward in one measurement
  decode,          ///< attention of a few queries over a cache, bound by reading it
  stream,
  norm,
  softmax,
  optimizer,
  collective,
  split_decode,  ///< attention of some more queries: the cache is split over the cores, arithmetic may be the bound
  other          ///< arithmetic that is no product and no attention
};
inline constexpr std::size_t kernel_kinds = 10;  ///< that are measured
inline constexpr std::string_view kernel_kind_names[] = {
    "matmul", "attention forward", "attention backward", "attention both", "decode", "stream",
    "norm",   "softmax",           "optimizer",          "collective"};
/// Moves tensors through memory, without arithmetic on matrix units.
constexpr bool is_stream(KernelKind kind) { return kind >= KernelKind::stream && kind <= KernelKind::optimizer; }
/// Attention that reads a cache, in any of its forms.
constexpr bool reads_cache(KernelKind kind) { return kind == KernelKind::decode || kind == KernelKind::split_decode; }
constexpr bool is_attention(KernelKind kind) {
  return (kind > KernelKind::matmul && kind <= KernelKind::decode) || kind == KernelKind::split_decode;
}

/// Up to this many queries per sequence are bound by reading the cache.
inline constexpr std::int64_t most_decode_queries = 8;
/// Up to this many queries split the cache over the cores as decoding does, but may be bound by arithmetic: the rows of
/// one tile of scores.
inline constexpr std::int64_t most_split_queries = 64;

struct Kernel {
  KernelKind kind = KernelKind::other;
  Dtype format = Dtype::bf16;  ///< of its arithmetic
  Flops flops;                 ///< on matrix units
  Bytes bytes;                 ///< through main memory; of a cache that is read, its keys and values
  MatmulShape product;
  double load = 1;  ///< arithmetic of a product, over what its shape says: of the fullest expert
  AttentionWork attention;
  hardware::AttentionKernel library = hardware::AttentionKernel::automatic;  ///< that attention was measured with
  double items = 0;                                                          ///< caches: sequences x key-value heads
  double cache_head = 0;  ///< elements of a head of the cache; 0 where all heads share one

  bool backward() const { return kind == KernelKind::attention_backward; }
};

/// A step that is no collective. Wide formats that the chip does not support run at its bf16 rate.
Kernel kernel_of(const KernelRates& rates, const program::Program& program, const program::Step& step);
/// Attention whose arithmetic runs at a format. That of one query to several keys is a decode.
Kernel kernel_of(const roofline::Attention& attention, Dtype compute);
/// An operation whose sizes are all known.
Kernel kernel_of(const roofline::Operation& operation, Dtype compute,
                 hardware::AttentionKernel library = hardware::AttentionKernel::automatic);
/// Sizes of attention as its models take them. Kernels were fitted with all keys, whatever a window leaves of them.
AttentionWork attention_work(const roofline::Attention& attention);

/// Sizes of a step of attention on one device.
template <class N>
struct AttentionSizes {
  NumberOf<N, double> queries;  ///< of a sequence
  NumberOf<N, double> heads;    ///< of all sequences
  NumberOf<N, double> items;    ///< sequences x key-value heads
  NumberOf<N, Bytes> shared;    ///< extra keys and values if every query head had its own
};
template <class N>
AttentionSizes<N> attention_sizes(const N& num, const program::Program& program, const program::Step& step);

/// Sizes of a product on one device: letters in both operands and the result form the batch, letters in one operand
/// and the result its rows and columns, letters in both operands only are summed over.
template <class N>
struct ProductSizes {
  NumberOf<N, double> batch, m, n, k;
};
template <class N>
ProductSizes<N> product_sizes(const N& num, const program::Program& program, const program::Step& step);
MatmulShape product_shape(const KernelRates& rates, const program::Program& program, const program::Step& step);

/// A product of experts: what its arithmetic is over what its tensors say, since the fullest expert has more than its
/// part, and the share of the experts that any token picked. Ones for other products.
struct ExpertShares {
  double filled = 1, touched = 1;
};
ExpertShares expert_shares(const program::Program& program, const program::Step& step, Flops of_tensors);

/// The gradient of a weight that a product makes: what software that adds up microbatches in it reads of earlier ones.
/// 0 for other steps.
template <class N>
NumberOf<N, Bytes> gradient_buffer(const N& num, const program::Program& program, const program::Step& step);

}  // namespace assay::kernel

// How long real kernels take: the ideal rates of a chip, and the physical effects that good software cannot avoid.
// Matrix products: tiles run in waves over the cores, a tile has to be filled, k may be split, the clock drops under
// sustained power, memory takes time to reach its rate, and a kernel has to be launched. Attention: the same tiles with
// a softmax in between. The rest streams memory. docs/calibration.md has the formulas and their fit. Formulas are
// written once over a number policy; under Plain nothing here allocates except tables of tiles: a search calls them a
// million times.
#pragma once
#include <array>
#include <memory>
#include <vector>

#include "assay/base/explain.h"
#include "assay/base/units.h"
#include "assay/hardware/calibration.h"
#include "assay/hardware/chip.h"
#include "assay/program/form/program.h"

namespace assay::kernel {

/// What the models need to know about a chip in addition to its calibration.
struct CoreRates {
  double cores = 1;
  BytesPerSecond hbm;
  FlopsPerSecond vector;                   ///< if every instruction of a GPU were a multiply-add of 32 lanes
  FlopsPerSecond bf16;                     ///< dense peak in bf16; 0 where it has none
  bool systolic = false;                   ///< products are padded to the array instead of cut into waves of tiles
  double pad_m = 1, pad_k = 1, pad_n = 1;  ///< of a systolic array
};
CoreRates core_rates(const hardware::Chip& chip);

/// Rows that are multiples of a cache line are as good as rows can be.
inline constexpr double cache_line = 128;
/// Bytes: what the addresses and strides of bulk copies are multiples of, which the fast kernels load with.
inline constexpr double bulk_copy = 16;
/// The largest power of two in bytes that divides a row of `elements`, up to a cache line: every row begins at a
/// multiple of it. Libraries take narrow formats only in multiples of 16 bytes, so that who quantises pads.
double row_alignment(Dtype dtype, double elements);
/// The next size whose rows of elements are whole units of so many bytes.
double padded_row(double elements, Bytes element, double unit = cache_line);

/// batch x [m,k] x [k,n]; `bytes` counts the operands and the result.
struct MatmulShape {
  double batch = 1, m = 1, n = 1, k = 1;
  Bytes bytes;
  bool grouped = false;      ///< each of the batch has its own rows: experts
  Bytes added = {};          ///< read besides: a buffer that the result is added to
  bool summed_rows = false;  ///< of experts: k are their rows, as in gradients of weights
  bool even_rows = false;    ///< of experts: each has as many; else they are random
  /// Bytes: see row_alignment. Rows are those of tensors as they lie in memory.
  double operand_rows = cache_line, result_rows = cache_line;
};
/// Whether rows are too odd for the library's fast kernels; false where others were not measured.
bool loads_narrowly(const hardware::MatmulCalibration& fit, const MatmulShape& shape);
/// The same product of operands that a compiler pads until their rows suit those kernels.
void pad_rows(MatmulShape& shape);

/// How a product is tiled: what the search over tiles found.
struct TileChoice {
  double m = 0, n = 0;  ///< of one tile of the result; 0 on a systolic array and on a CPU
  double split = 1;     ///< parts of k that are summed in a second pass
  double waves = 1;     ///< rounds over all cores; a partly full last one counts as a fraction
  double cores = 0;     ///< CPU cores in use; 0 elsewhere
};

/// Parts of a product's time. `arithmetic` is at the clock of a burst; `adding` sums the parts of k after all else.
template <class N>
struct MatmulTimeOf {
  NumberOf<N, Seconds> arithmetic, sustained, memory, adding, total;
  TileChoice tile;
};
using MatmulTime = MatmulTimeOf<Plain>;

/// What a chip does with products of one format. Holds references: for the duration of a call.
struct ProductRates {
  const hardware::MatmulCalibration& fit;
  const CoreRates& chip;
  FlopsPerSecond peak;  ///< dense, of the format
  double share;         ///< calibrated share of the peak
  Dtype format = Dtype::bf16;
  const SourceTable* sources = nullptr;

  FlopsPerSecond rate() const { return share * peak; }
};

/// Whether a product runs in a kernel over experts that was measured.
inline bool runs_grouped(const hardware::MatmulCalibration& fit, const MatmulShape& shape) {
  return shape.grouped && fit.grouped_port && fit.grouped_fill;
}
/// What starting a product takes, of whose kernels each takes `launch`: one before a kernel over experts places their
/// rows.
template <class N>
NumberOf<N, Seconds> product_starts(const N& num, const ProductRates& rates, const MatmulShape& shape,
                                    NumberOf<N, Seconds> launch) {
  return runs_grouped(rates.fit, shape) ? launch * num.given("kernels", 2.0, "one places the rows") : launch;
}

template <class N>
MatmulTimeOf<N> matmul_time(const N& num, const ProductRates& rates, const MatmulShape& shape,
                            const hardware::Regime& regime, bool may_split = true);
/// Arithmetic that takes `work` at the clock of a burst, at the clock that power allows: the lower, the less the chip
/// rests between kernels.
template <class N>
NumberOf<N, Seconds> throttled(NumberOf<N, Seconds> work, NumberOf<N, double> droop, NumberOf<N, Seconds> gap) {
  return work * (1.0 + droop * (work / (work + gap)));
}

/// Streams `bytes` at a share of the memory rate after a ramp: one formula for large and small transfers.
template <class N>
NumberOf<N, Seconds> stream_time(const N& num, NumberOf<N, BytesPerSecond> hbm, NumberOf<N, double> share,
                                 NumberOf<N, Seconds> ramp, NumberOf<N, Bytes> bytes);

/// Attention on one device: `heads` counts the heads of all sequences together.
struct AttentionWork {
  double heads = 1, head_dim = 128;  ///< head_dim: mean over keys and values
  double key_lead = 0;               ///< elements that keys have more than values
  double queries = 1;                ///< of a sequence on this device
  program::AttentionShape shape;     ///< of whole sequences
  Bytes bytes;                       ///< queries, keys, values and results
  Bytes shared;  ///< extra if every query head had its own keys and values: gradients are summed from such
};
/// Where a calibration does not say for which heads kernels exist: FlashAttention's.
inline constexpr double usual_head_step = 32;
/// The smallest head that a GPU kernel exists for and that holds one of `size`.
double kernel_head(double size, double step);
/// What a chip does in attention. Holds references: for the duration of a call.
struct AttentionRates {
  const hardware::AttentionPass& fit;
  const CoreRates& chip;
  FlopsPerSecond peak;
  double head_step = usual_head_step;  ///< kernels exist for heads of its multiples
  const SourceTable* sources = nullptr;
  Dtype format = Dtype::bf16;
};
template <class N>
NumberOf<N, Seconds> attention_time(const N& num, const AttentionRates& rates, const AttentionWork& work,
                                    bool backward);

/// What a chip does in attention over a cache.
struct DecodeRates {
  const hardware::DecodeCalibration& fit;
  const CoreRates& chip;
  const SourceTable* sources = nullptr;
};
/// One query per sequence: `items` are sequences x key-value heads, `bytes` the keys and values. Few items are split
/// along the cache until every core has several parts; many are not split, which may cost bandwidth.
template <class N>
NumberOf<N, Seconds> decode_time(const N& num, const DecodeRates& rates, double items, double head_dim, Bytes bytes);

/// Arithmetic of a few queries per sequence over a cache that is split over the cores, as in verifying drafts: heads
/// that share keys fill tiles together. `items` as above.
template <class N>
NumberOf<N, Seconds> split_attention_time(const N& num, const AttentionRates& rates, const AttentionWork& work,
                                          double items);

/// The calibration of a choice; flash2 stands in where cudnn was not measured, and vice versa.
const hardware::AttentionKernelCalibration* attention_kernel(const hardware::AttentionCalibration& fit,
                                                             hardware::AttentionKernel choice);

}  // namespace assay::kernel

// Rooflines: how long work takes when arithmetic and one stream of bytes are the only limits.
// lower = max(compute, memory) with perfect overlap, upper = their sum without; docs/roofline.md derives all of it.
// Each formula is written once over a number policy (base/explain.h) and instantiated for Plain and Traced.
#pragma once
#include <optional>
#include <string>
#include <string_view>

#include "assay/base/explain.h"
#include "assay/base/units.h"
#include "assay/hardware/chip.h"
#include "assay/predict/roofline/operation.h"

namespace assay::roofline {

/// Work of an operation: arithmetic, and the bytes that cross the roof's memory level.
template <class N>
struct Work {
  typename N::template Number<Dim{.flop = 1}> flops;
  typename N::template Number<Dim{.byte = 1}> bytes;
};

/// The names of a matmul's sizes in a derivation. Views, because the hot loop passes them without reading
/// them.
struct MatmulNames {
  std::string_view batch = "e", m = "m", k = "k", n = "n";
};

/// Output block of a tiled matmul and its step along k.
struct Tile {
  double m = 0, k = 0, n = 0;
};

/// Work of a matrix product: 2 e m k n FLOP; both operands and the result cross the memory level once.
template <class N>
Work<N> matmul_work(const N& num, const Matmul& matmul, const MatmulNames& names);

/// Work of a tiled matrix product: each output block streams its rows and columns of the operands.
template <class N>
Work<N> tiled_matmul_work(const N& num, const Matmul& matmul, const Tile& tile, const MatmulNames& names);

/// Work of one of `chips` chips that split the contracting dimension, and the partial sums that cross its link: a ring
/// all-reduce sends 2 (chips - 1) / chips of the m x n sums, kept in `sums`.
template <class N>
Work<N> split_matmul_work(const N& num, const Matmul& matmul, double chips, Dtype sums, const MatmulNames& names);

template <class N>
Work<N> pointwise_work(const N& num, const Pointwise& pointwise);

/// Work of attention: two products over the scores that the mask leaves; queries, keys, values and results cross the
/// memory level once, and in the backward pass their gradients too.
template <class N>
Work<N> attention_work(const N& num, const Attention& attention);

/// The two rates of a roofline, the share of each that good kernels reach, and the number of chips that share the work
/// evenly.
struct Roof {
  Sourced<FlopsPerSecond> peak;
  Sourced<BytesPerSecond> bandwidth;
  Sourced<double> compute_efficiency{1.0, "ideal", "", {}}, memory_efficiency{1.0, "ideal", "", {}};
  double chips = 1;
  std::string level = "hbm";
};

template <class N>
struct Bound {
  typename N::template Number<Dim{.sec = 1}> compute, memory, lower, upper, estimate;
  typename N::template Number<Dim{.flop = 1, .byte = -1}> intensity, critical_intensity;
  typename N::template Number<Dim{.flop = 1, .sec = -1}> achieved;  ///< FLOP/s of the lower bound
};

template <class N>
Bound<N> roofline_bound(const N& num, const Work<N>& work, const Roof& roof);

/// "compute" or "memory": the larger of the two; equal times count as compute.
std::string_view roofline_limiter(const Bound<Plain>& bound);

/// The size of `letter` at which an operation's arithmetic takes as long as its memory traffic; real, not rounded.
/// Empty if it stays memory-bound (or compute-bound) at any size.
struct Knee {
  std::optional<double> exact;
  /// Ignores the traffic of tensors that grow with the letter: the rule of thumb (C/W for a bf16 matmul).
  std::optional<double> approximate;
  /// Intensity in the limit of a large size; empty if it grows without bound.
  std::optional<FlopsPerByte> limit;
  bool always_compute_bound = false;
};

/// How the traffic of an operation is counted.
struct TrafficCounting {
  std::optional<Tile> tile;
  double split_chips = 1;
  Dtype sums = Dtype::bf16;
};

/// The work of any operation whose sizes are all known.
template <class N>
Work<N> operation_work(const N& num, const Operation& operation, const TrafficCounting& counting);

Knee find_knee(const Operation& operation, std::string_view letter, const TrafficCounting& counting, const Roof& roof);

/// The knee as a formula if the work grows linearly with the letter: fixed bytes over the surplus of compute per
/// unit.
std::optional<Traced::Number<Dim{}>> traced_knee(const Traced& num, const Operation& operation, std::string_view letter,
                                                 const TrafficCounting& counting, const Roof& roof);

/// A matmul whose sizes are rounded up to the matrix unit's tile.
struct Padding {
  double m = 1, k = 1, n = 1;  ///< padded
  Flops flops;                 ///< with padding
  double utilisation = 1;      ///< useful over padded arithmetic
};
std::optional<Padding> pad_to_unit(const Matmul& matmul, const hardware::Chip& chip);

/// Side of the smallest square output tile whose operand streams keep the matrix unit busy: 2 C s / W scaled to dtypes.
double smallest_square_tile(const Matmul& matmul, const Roof& roof);

/// FLOP per byte of a tile without its output store: bm bn / (bm + bn) for two-byte operands.
FlopsPerByte tile_intensity(const Matmul& matmul, const Tile& tile);

}  // namespace assay::roofline

// One kernel of a serving step for any number of sequences: its work is linear in them, and price() prices it. Nothing
// here allocates.
#pragma once
#include <memory>
#include <string>
#include <string_view>

#include "assay/predict/kernel/price.h"
#include "assay/predict/kernel/tile_tables.h"
#include "assay/program/form/program.h"

namespace assay::serving {

/// A quantity that is linear in the sequences: a + b x sequences.
template <class Q>
struct StraightLine {
  Q fixed{}, moving{};
  template <class S>
  Q operator()(const S& sequences) const {
    return fixed + moving * sequences;
  }
  void add(const StraightLine& more) {
    fixed = fixed + more.fixed;
    moving = moving + more.moving;
  }
  friend bool operator==(const StraightLine&, const StraightLine&) = default;
};
/// The line through (x, at_x) and (2x, at_2x).
template <class Q>
StraightLine<Q> line_through(double x, Q at_x, Q at_2x) {
  return {2.0 * at_x - at_2x, (at_2x - at_x) / x};
}

/// What the numbers of a kernel consist of, from the programs that it was read off.
struct KernelOrigin {
  using Number = NumberOf<Traced, double>;
  StraightLine<NumberOf<Traced, Flops>> flops;
  StraightLine<NumberOf<Traced, Bytes>> bytes;
  NumberOf<Traced, Bytes> expert_bytes;
  StraightLine<Number> batch, m, items, heads;
  Number n, k, queries;
  void join(const KernelOrigin& other);
};

struct ServedKernel {
  program::Op op = program::Op::product;
  std::string_view makes;  ///< the output tensor; the first one for fused products
  int fused = 1;           ///< products of the program that are one kernel
  kernel::Kernel kernel;   ///< as lowered for the first number of sequences
  bool attends = false;    ///< its work is per sequence, not per token
  double count = 1;        ///< equal kernels per layer of its block
  StraightLine<Flops> flops;
  StraightLine<Bytes> bytes;     ///< without weights of experts
  Bytes expert_bytes;            ///< weights of all experts; a step reads only experts with tokens
  SecondsPerFlop time_per_flop;  ///< at the peak; zero for kernels that only move bytes
  double stream_share = 0;       ///< of peak bandwidth; zero: not calibrated
  bool quantises = false;        ///< casts to 8 bits or fewer
  /// Casts of stored weights, dense and experts: stored bytes beyond those that the product then reads. A product that
  /// casts on the fly reads them, too.
  Bytes narrowed, narrowed_experts;
  double shared_by = 1;                        ///< of decoding: query heads per KV head
  bool latent = false;                         ///< of decoding: all heads share one compressed cache
  kernel::StreamComposition composition = {};  ///< of eager software
  bool gathers = false;                        ///< products bring the tokens themselves
  /// Blocks of a product of experts, by tokens; and how many tokens have one row for each of its experts.
  numbers::ExpertBlockChoice blocks = {};
  double tokens_of_row = 1;

  StraightLine<double> batch, m;  ///< of a product
  /// Tiles of a product that is priced at many batches, shared by products of equal shape.
  std::shared_ptr<kernel::TileTable> tiles = {};
  // Attention only: heads of all sequences, or the caches that decoding reads.
  StraightLine<double> items;
  StraightLine<double> heads;  ///< decoding only: query heads of all sequences
  StraightLine<double> met;    ///< keys per query on average
  /// Only where it is to be explained. Shared by copies of the kernel, which never change it.
  std::shared_ptr<const KernelOrigin> origin = {};

  /// Chooses the experts of tokens; moves tokens to them or back.
  bool routes() const { return op == program::Op::dispatch; }
  bool moves_tokens() const { return routes() || op == program::Op::combine; }
  /// Arithmetic at the peak on rows that only fill the blocks of a product of experts, or a library's tiles of so many.
  Seconds padding(double sequences, double touched, double tile_rows) const;
  bool same_work(const ServedKernel& other) const;
  /// Whether a product that reads the same tensor can be fused with this one, and the fusion.
  bool joins(const ServedKernel& other) const;
  void join(const ServedKernel& other);
  /// "product up", "product q with 2 more".
  std::string text() const;
  /// Moves nothing: another view of a tensor.
  bool is_view() const { return bytes == StraightLine<Bytes>{} && expert_bytes == Bytes(); }
  /// Kernels launched for it on average: element-wise work may be fused into another.
  double started(const numbers::ServingEffects& effects) const;
};

/// A step as it was lowered for some number of sequences.
struct LoweredStep {
  const program::Program& program;
  const program::Step& step;
  double touched = 1;  ///< share of the experts that its tokens reach
};
/// The kernel of a step, from the same step lowered for `sequences` and for twice as many.
ServedKernel served_kernel(const kernel::KernelRates& rates, const numbers::ServingEffects& effects,
                           const LoweredStep& once, const LoweredStep& twice, double sequences);
KernelOrigin served_origin(const Traced& num, const LoweredStep& once, const LoweredStep& twice, double sequences);

/// Gives a product a table of tiles, where it has one.
void find_tiles(const kernel::KernelRates& rates, kernel::TileTables& tables, ServedKernel& kernel);

/// What a kernel does in one step.
struct KernelLoad {
  double sequences = 1;
  double touched = 1;  ///< share of the experts that have any token
  Seconds arithmetic;  ///< at the peak
  Bytes bytes;
};
/// A kernel at a load, as price() takes it.
struct ServedWork {
  kernel::Kernel kernel;
  kernel::ServedDetails details;
};
ServedWork served_work(const ServedKernel& kernel, const KernelLoad& load);
/// Changes the work of the same kernel to another load.
void set_load(const ServedKernel& kernel, const KernelLoad& load, ServedWork& work);
/// Adds what the work of a kernel consists of.
void add_origins(const Traced& num, const kernel::KernelRates& rates, const ServedKernel& kernel,
                 const KernelLoad& load, Origins& origins);
/// Time of a kernel of good software: what price() gives the step lowered at that many sequences.
template <class N>
NumberOf<N, Seconds> served_estimate(const N& num, const kernel::ServingKernels& kernels, const ServedKernel& kernel,
                                     const KernelLoad& load);

}  // namespace assay::serving

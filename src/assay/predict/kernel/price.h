// The price of a step: how long one kernel of a program takes among the others of a step, and which resource it uses.
// Training, serving, listings and explanations all ask here. Formulas are written once over a number policy: under
// Traced a price goes down to FLOP, bytes, shapes, the chip's figures and each fitted number with its source.
#pragma once
#include <cstdint>

#include "assay/predict/kernel/fused_projections.h"
#include "assay/predict/kernel/kernels.h"
#include "assay/predict/numbers/serving_effects.h"
#include "assay/predict/numbers/training_effects.h"

namespace assay::kernel {

class TileTable;

/// What a kernel keeps busy.
enum class Resource : std::uint8_t { matrix_unit, memory };

template <class N>
struct StepPrice {
  NumberOf<N, Seconds> duration;  ///< among the other kernels of a step
  NumberOf<N, Seconds> compute;   ///< arithmetic at the peak
  NumberOf<N, Seconds> memory;    ///< bytes at the peak
  NumberOf<N, Seconds> slowed;    ///< the part of the duration that the lower clock under sustained power adds
  Resource resource = Resource::memory;
  bool full_power = false;  ///< keeps the matrix units at full power
  double launches = 1;      ///< kernels that the host starts
};

/// What the kernels of a training step run on and with. Holds references: for the duration of a call.
struct TrainingKernels {
  const KernelRates& rates;
  const numbers::StepEffects& effects;
  bool dropout = false;  ///< masks are drawn and stored inside plain attention
};

/// A step of training that is no collective, by itself.
template <class N>
StepPrice<N> price(const N& num, const program::Program& program, const program::Step& step,
                   const TrainingKernels& kernels);
/// Its ideal times only: the product that it is fused into has the duration.
template <class N>
StepPrice<N> fused_part_price(const N& num, const program::Program& program, const program::Step& step,
                              const TrainingKernels& kernels);
/// The duration of a fused product; its parts have the ideal times.
template <class N>
StepPrice<N> price(const N& num, const JoinedProducts::Part& fused, const TrainingKernels& kernels);

/// What software composes a step of that streams tensors through memory.
struct StreamComposition {
  double kernels = 1;
  double traffic = 1;  ///< bytes over the fewest
  double apart = 0;    ///< further kernels, on few numbers
  friend bool operator==(const StreamComposition&, const StreamComposition&) = default;
};
StreamComposition stream_composition(const numbers::StepEffects& effects, const program::Program& program,
                                     const program::Step& step);

/// What the kernels of a serving step run on and with. Holds references: for the duration of a call.
struct ServingKernels {
  const KernelRates& rates;
  const numbers::ServingEffects& effects;
};
/// What a serving kernel does beyond its work.
struct ServedDetails {
  bool is_view = false;    ///< moves nothing: another view of a tensor
  bool quantises = false;  ///< casts to 8 bits or fewer
  double shared_by = 1;    ///< of decoding: query heads per KV head
  double met = 0;          ///< of decoding: keys per query on average
  Seconds arithmetic;      ///< at the peak
  double heads = 0;        ///< of attention over a cache: query heads of all sequences
  StreamComposition composition = {};
  bool moves_tokens = false;  ///< to experts or back
  bool routes = false;        ///< chooses their experts
  bool gathers = false;       ///< products bring the tokens themselves
  /// Blocks that a product of experts may be cut into; none: it is like other products.
  const std::vector<numbers::ExpertBlocks>* blocks = nullptr;
};
/// A kernel of serving by its law. A table of a product's tiles makes this faster and changes no time; derivations take
/// none.
template <class N>
NumberOf<N, Seconds> price(const N& num, Law law, const Kernel& kernel, const ServedDetails& details,
                           const ServingKernels& kernels, TileTable* tiles = nullptr);
template <class N>
NumberOf<N, Seconds> price(const N& num, const Kernel& kernel, const ServedDetails& details,
                           const ServingKernels& kernels, TileTable* tiles = nullptr) {
  return price(num, law_of(kernels.rates, kernel), kernel, details, kernels, tiles);
}

/// Whether attention writes its scores to memory.
bool is_plain_attention(const program::Program& program, const program::Step& step);
/// The probabilities of plain attention, which it writes in addition to its result.
const program::ProgramTensor& attention_scores(const program::Program& program, const program::Step& step);
/// Whether a step casts a wider weight to the 16 bits or more that products read, as opposed to quantising it for them.
bool casts_weight(const program::Program& program, const program::Step& step);

}  // namespace assay::kernel

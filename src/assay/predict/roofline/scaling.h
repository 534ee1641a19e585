// How far a layer scales before the network takes longer than its arithmetic: the closed forms of docs/scaling.md.
// A layer is an MLP of `matrices` weights D x F. Three times describe it: one token's arithmetic on one chip, the
// gather of the weights, and the exchange of one token's activations. Every threshold is a ratio of them. Latency is
// ignored: with a large batch or model, bandwidth is the larger term.
#pragma once

#include "assay/base/explain.h"
#include "assay/predict/collective/collectives.h"

namespace assay::roofline {

/// The MLP of one layer; a mixture of experts if there is more than one.
struct MlpShape {
  double d_model = 1, d_ff = 1;
  double matrices = 2;  ///< 2 for an up and a down projection, 3 with a gate
  double experts = 1, experts_per_token = 1;
  double shared = 0;    ///< experts that every token uses in addition, in widths d_ff
  Bytes element = 2_B;  ///< size of weights, activations and gradients
};

/// Exact counts, with (n - 1) / n and the ends of lines, or the rule of thumb for many participants.
enum class Counting { exact, approximate };

using TokenSeconds = Quantity<Dim{.sec = 1, .token = -1}>;
using TokenFlopCount = Quantity<Dim{.flop = 1, .token = -1}>;

/// Forward FLOP that one token needs: 2 per parameter that it uses.
template <class N>
typename N::template Number<TokenFlopCount::dim> layer_flops_per_token(const N& num, const MlpShape& shape);
/// Bytes of all weights of the layer.
template <class N>
typename N::template Number<Bytes::dim> layer_weight_bytes(const N& num, const MlpShape& shape);

/// The links used by a layer's weights and by its activations.
struct LayerLinks {
  collective::CollectiveGroup weights, activations;
};

/// One layer, forward: all of its arithmetic on one chip, all of its weights gathered (or reduced, as gradients) over
/// the weight links, and one token's activations gathered and scattered over the activation links.
template <class N>
struct LayerRates {
  typename N::template Number<TokenSeconds::dim> arithmetic;  ///< per token
  typename N::template Number<Seconds::dim> gather, reduce;
  typename N::template Number<TokenSeconds::dim> exchange;  ///< per token
};
template <class N>
LayerRates<N> layer_rates(const N& num, const MlpShape& shape, const Sourced<FlopsPerSecond>& peak,
                          const LayerLinks& links, Counting counting,
                          const collective::CollectiveLabels* labels = nullptr);

/// How the chips share the work: fsdp x pipeline x tensor.
struct Split {
  double fsdp = 1, tensor = 1, pipeline = 1;
  double chips() const { return fsdp * tensor * pipeline; }
};
enum class WeightsAre { replicated, sharded };  ///< pure data parallelism, or FSDP (ZeRO-3)
enum class Pass { forward, backward };

/// Mean time of one layer in one pass over a batch. The two kinds of communication use different links.
template <class N>
struct LayerTimes {
  using Time = typename N::template Number<Seconds::dim>;
  Time compute, weights, activations;
  Time communication;            ///< the larger of both
  Time communication_in_series;  ///< sum of both
  Time lower, upper;             ///< full overlap, no overlap
};
template <class N>
LayerTimes<N> layer_times(const N& num, const LayerRates<N>& rates, const Split& split, Tokens batch, WeightsAre scheme,
                          Pass pass);

template <class N>
using TokenCount = typename N::template Number<Tokens::dim>;
template <class N>
using Ratio = typename N::template Number<Dim{}>;

/// Tokens per chip above which data parallelism is compute-bound; backward and forward need the same without
/// in-network reduction.
template <class N>
TokenCount<N> min_tokens_data_parallel(const N& num, const LayerRates<N>& rates, WeightsAre scheme);
/// The largest tensor parallelism that is compute-bound, at any batch.
template <class N>
Ratio<N> max_tensor_ways(const N& num, const LayerRates<N>& rates);
/// The square of the fsdp degree at which weights and activations take equally long, which is the best degree.
template <class N>
Ratio<N> best_fsdp_squared(const N& num, const LayerRates<N>& rates, Tokens batch, double chips);
/// Tokens per chip above which the best mix of both is compute-bound.
template <class N>
TokenCount<N> min_tokens_mixed(const N& num, const LayerRates<N>& rates);
/// Arithmetic over communication at the best mix, ignoring the sizes of real axes.
double mixed_ratio(const LayerRates<Plain>& rates, Tokens tokens_per_chip);

/// Expert parallelism over `ways` chips: forward arithmetic and the two all-to-alls, per token of these chips.
template <class N>
struct ExpertTimes {
  typename N::template Number<TokenSeconds::dim> compute, communication;
  Ratio<N> min_width;  ///< d_ff above which arithmetic takes longer
};
/// `group` spans the ways. On a switched network a token is sent once to each node that holds one of its experts.
template <class N>
ExpertTimes<N> expert_times(const N& num, const MlpShape& shape, const Sourced<FlopsPerSecond>& peak,
                            const collective::CollectiveGroup& group, double ways,
                            const collective::CollectiveLabels* labels = nullptr);
/// The least d_ff for many more ways than experts per token on a switched network, by its widest level crossed.
double wide_expert_width(const MlpShape& shape, FlopsPerSecond peak, const collective::CollectiveGroup& group);

/// Share of a pipeline's time that is idle: (p - 1) / (v m + p - 1) for m microbatches and v chunks per stage.
template <class N>
Ratio<N> pipeline_bubble(const N& num, double stages, double micro_batches, double chunks);

/// Arithmetic of a training run: 6 FLOP per parameter and token.
template <class N>
typename N::template Number<Flops::dim> training_flops(const N& num, double parameters, Tokens tokens);
/// The time at a share `mfu` of the peak of all chips.
template <class N>
typename N::template Number<Seconds::dim> training_time(const N& num, double parameters, Tokens tokens, double chips,
                                                        const Sourced<FlopsPerSecond>& peak, double mfu);

/// Bytes stored per parameter during training.
struct StateFormat {
  Bytes parameters = 2_B, gradients, master, moment = 4_B;  ///< two moments
};
template <class N>
typename N::template Number<Bytes::dim> bytes_per_parameter(const N& num, const StateFormat& format);
/// Activations saved for the backward pass: `kept` elements per token and layer.
template <class N>
typename N::template Number<Bytes::dim> checkpoint_bytes(const N& num, double layers, Tokens batch, double kept,
                                                         Bytes element);

/// What a training run keeps in memory over all chips, as far as it is known: its state, and saved activations.
struct TrainingMemory {
  Bytes state, saved;
  Bytes total() const { return state + saved; }
  /// The fewest chips of a capacity that hold it.
  double min_chips(Bytes capacity) const;
};
struct TrainingMemoryQuestion {
  double parameters = 0;
  StateFormat state;
  double layers = 0;  ///< 0: not known
  Tokens batch;
  double kept = 0;  ///< elements saved per token and layer
  Bytes element = 2_B;
};
TrainingMemory training_memory(const TrainingMemoryQuestion& of);

/// Sequence length at which scores and weighted sums, over all keys, take as much as all matrices of a layer: its MLP
/// and `attention_parameters`. `flops_per_key`: forward FLOP that one token spends on one key.
Tokens attention_crossover(const MlpShape& shape, double attention_parameters, Flops flops_per_key);

/// The best mix of FSDP and tensor parallelism if degrees are free, and in powers of two, by which batches and heads
/// divide.
struct MixedSplit {
  double fsdp = 1, tensor = 1;
  double rounded_fsdp = 1, rounded_tensor = 1;
};
MixedSplit best_mixed_split(const LayerRates<Plain>& rates, Tokens batch, double chips);
/// The largest power of two that is not above `ways`, and at least 1.
double power_of_two_ways(double ways);

}  // namespace assay::roofline

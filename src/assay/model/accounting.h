// Totals of a model: parameters by part, FLOP per token, bytes of cache and activations. Counted, never
// estimated.
#pragma once
#include <array>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "assay/base/dtype.h"
#include "assay/base/explain.h"
#include "assay/model/transformer.h"
#include "assay/model/weights.h"

namespace assay::model {

/// Whole numbers, to the last parameter. A tied head counts once, as embedding.
struct ParameterCounts {
  std::array<std::int64_t, part_count> by_part{};
  std::int64_t total = 0;
  /// Parameters that one token uses: all but the experts it is not sent to. The embedding table counts in full, as
  /// model publishers count it.
  std::int64_t active = 0;
  /// Elements of the matrices that multiply one token: active, without tables, biases and norms, with the
  /// head even if it is tied. Twice this is the forward pass without attention.
  std::int64_t active_matrix = 0;
  std::int64_t trained = 0;        ///< of the total
  std::int64_t frozen_matrix = 0;  ///< of active_matrix, not trained: the backward pass has half the work

  std::int64_t of(Part part) const { return by_part[static_cast<std::size_t>(part)]; }
};
ParameterCounts parameter_counts(const Transformer& model);
/// Worst imbalance, if all tokens choose the same experts: experts over experts per token. 1 without experts.
double most_expert_load(const Transformer& model);
/// The total again, as a formula over the weights, for `--explain`. Doubles are exact up to 2^53.
template <class N>
typename N::template Number<Dim{}> parameter_total(const N& num, const Transformer& model);
/// The parameters of a single layer.
ParameterCounts layer_parameter_counts(const Transformer& model, const Layer& layer);

/// How to count the keys that a query sees.
enum class MaskCount {
  exact,  ///< keys under the mask: (S + 1) / 2 on average if causal, fewer in a window
  half,   ///< the area under the mask: S / 2 under a causal one
  full    ///< the whole sequence, or the window: kernels without block skipping, and the 12 L D S of MFU
};
std::string_view name(MaskCount count);

/// Mean number of keys that a query sees in a sequence of that many tokens.
double mean_keys(const Attention& attention, double sequence, MaskCount count);

/// Mean number of keys that the index of a sparse attention scores for a query; 0 without an index.
double mean_candidates(const Attention& attention, double sequence, MaskCount count);

/// Forward FLOP per token of scores, weighted sums and the scores of an index.
Flops attention_flops(const Attention& attention, double sequence, MaskCount count);

/// Forward FLOP per token under a number policy. One multiply-add is two.
template <class N>
struct TokenFlops {
  using F = typename N::template Number<Dim{.flop = 1}>;
  F matmul;                    ///< 2 x the matrices that multiply the token, head included
  F attention;                 ///< scores and weighted sum, and the scores of an index
  F state_space;               ///< recurrences and short convolutions, in their recurrent form
  F forward, backward, train;  ///< backward is twice forward, train their sum
};
/// In a sequence of `sequence` tokens. For an encoder-decoder: one token in each stack, both of that length.
template <class N>
TokenFlops<N> token_flops(const N& num, const Transformer& model, std::int64_t sequence,
                          MaskCount count = MaskCount::exact);

/// Forward FLOP of one sequence. An encoder-decoder has `source` tokens in the encoder and `sequence` in the
/// decoder, which computes keys once for each of the encoder's tokens.
template <class N>
NumberOf<N, Flops> sequence_flops(const N& num, const Transformer& model, std::int64_t sequence, std::int64_t source);
inline Flops sequence_flops(const Transformer& model, std::int64_t sequence, std::int64_t source) {
  return sequence_flops(Plain{}, model, sequence, source);
}

/// FLOP to train on one sequence: the backward pass costs twice the forward pass, once for frozen weights.
template <class N>
NumberOf<N, Flops> training_flops(const N& num, const Transformer& model, std::int64_t sequence, std::int64_t source);
inline Flops training_flops(const Transformer& model, std::int64_t sequence, std::int64_t source) {
  return training_flops(Plain{}, model, sequence, source);
}

/// FLOP of a token for each cell of a state: its decay, its update and its read; and the formula that has them.
struct ScanWork {
  Flops per_cell;
  std::string_view formula;
};
ScanWork scan_work(const StateSpace& s);
/// Numbers in the state of a sequence, excluding convolutions and shifts.
std::int64_t state_cells(const StateSpace& s);

/// Values that one more token adds to the cache, in layers whose window is not full yet.
std::int64_t kv_values_per_token(const Transformer& model);
/// Maximum tokens of a sequence in the cache of a layer.
std::int64_t held_tokens(const Attention& attention, std::int64_t sequence);
/// Values of the cache of one sequence: windows and chunks are capped, shared keys count once.
std::int64_t kv_values_per_sequence(const Transformer& model, std::int64_t sequence);
/// The same with `source` tokens in the encoder and `sequence` in the decoder.
std::int64_t kv_values_per_sequence(const Transformer& model, std::int64_t sequence, std::int64_t source);
/// Cached values that the last token of `sequence` reads: within a chunk, only those since its start.
std::int64_t kv_values_met(const Transformer& model, std::int64_t sequence, std::int64_t source);
/// Values of the states that do not grow with the sequence.
std::int64_t state_values_per_sequence(const Transformer& model);

/// Bytes that one more token adds to the cache.
template <class N>
typename N::template Number<Dim{.byte = 1}> kv_bytes_per_token(const N& num, const Transformer& model, Dtype dtype);

/// What a layer keeps from the forward pass for the backward pass.
enum class KeepPolicy {
  none,       ///< no recomputation: everything the backward pass reads
  selective,  ///< attention is recomputed from its queries, keys and values
  products,   ///< only results of matrix products and the layer's input; norms, gates and attention are recomputed
  full        ///< only the layer's input
};
std::string_view name(KeepPolicy policy);

/// One kept tensor: elements per token, and bytes per element if not those of activations.
struct Kept {
  std::string_view name;
  std::int64_t elements = 0;
  std::optional<Dtype> dtype;
};
/// With flash attention: scores are never kept, but the softmax sums are (fp32).
std::vector<Kept> kept_activations(const Transformer& model, const Layer& layer, KeepPolicy policy);
/// Bytes per token over all layers.
Bytes kept_bytes_per_token(const Transformer& model, KeepPolicy policy, Dtype dtype);

}  // namespace assay::model

// What a model amounts to: parameters by part, FLOP per token, bytes of cache and activations. Counted, never
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
  /// What one token passes: all but the experts it is not sent to. The embedding table counts in full, as makers count.
  std::int64_t active = 0;
  /// Elements of the matrices that one token is multiplied with: active, without tables, biases and norms, with the
  /// head even where it is tied. Twice this is the forward pass without attention.
  std::int64_t active_matrix = 0;
  std::int64_t trained = 0;        ///< of the total
  std::int64_t frozen_matrix = 0;  ///< of active_matrix, what is not trained: the backward pass has half the work

  std::int64_t of(Part part) const { return by_part[static_cast<std::size_t>(part)]; }
};
ParameterCounts parameter_counts(const Transformer& model);
/// The total once more, as a formula over the weights: what `--explain` shows. Doubles are exact up to 2^53.
template <class N>
typename N::template Number<Dim{}> parameter_total(const N& num, const Transformer& model);
/// Of one layer alone.
ParameterCounts layer_parameter_counts(const Transformer& model, const Layer& layer);

/// How the keys that a query meets are counted.
enum class MaskCount {
  exact,  ///< those that the mask leaves: (S + 1) / 2 on average under a causal mask, fewer in a window
  half,   ///< the area under the mask: S / 2 under a causal one
  full    ///< the whole sequence, or the window: what a kernel without block skipping does, and the 12 L D S of MFU
};
std::string_view name(MaskCount count);

/// Keys that a query meets on average in a sequence of that many tokens.
double mean_keys(const Attention& attention, double sequence, MaskCount count);

/// Keys that the index of a sparse attention scores for a query on average; 0 where it has none.
double mean_candidates(const Attention& attention, double sequence, MaskCount count);

/// Forward FLOP of one token in scores, weighted sums and the scores of an index.
double attention_flops(const Attention& attention, double sequence, MaskCount count);

/// Forward FLOP of one token under a number policy. One multiply-add is two.
template <class N>
struct TokenFlops {
  using F = typename N::template Number<Dim{.flop = 1}>;
  F matmul;                    ///< 2 x the matrices that the token passes, head included
  F attention;                 ///< scores and weighted sum, and the scores of an index
  F state_space;               ///< recurrences and short convolutions, in their recurrent form
  F forward, backward, train;  ///< backward is twice forward, train their sum
};
/// In a sequence of `sequence` tokens. Of an encoder-decoder: one token in each stack, both of that length.
template <class N>
TokenFlops<N> token_flops(const N& num, const Transformer& model, std::int64_t sequence,
                          MaskCount count = MaskCount::exact);

/// Forward FLOP of one sequence: of an encoder-decoder, of `source` tokens in the encoder and `sequence` in the
/// decoder, whose keys over the encoder's tokens are made once for each of these.
Flops sequence_flops(const Transformer& model, std::int64_t sequence, std::int64_t source);

/// FLOP to train on one sequence: the backward pass takes twice the forward pass, once where weights are not trained.
Flops training_flops(const Transformer& model, std::int64_t sequence, std::int64_t source);

/// FLOP of one token for each cell of a state: its decay, its update and its read.
double scan_flops_per_cell(const StateSpace& s);
/// Numbers of the state that a sequence keeps, without those of convolutions and shifts.
std::int64_t state_cells(const StateSpace& s);

/// Values that one more token adds to the cache, in layers whose window is not yet full.
std::int64_t kv_values_per_token(const Transformer& model);
/// Tokens of a sequence that the cache of a layer holds at most.
std::int64_t held_tokens(const Attention& attention, std::int64_t sequence);
/// Values of the cache of one sequence: windows and chunks are capped, shared keys count once.
std::int64_t kv_values_per_sequence(const Transformer& model, std::int64_t sequence);
/// The same where an encoder has `source` tokens and the decoder `sequence`.
std::int64_t kv_values_per_sequence(const Transformer& model, std::int64_t sequence, std::int64_t source);
/// Those of them that the last token of `sequence` looks at: of a chunk what is younger than its beginning.
std::int64_t kv_values_met(const Transformer& model, std::int64_t sequence, std::int64_t source);
/// Values of the states that do not grow with the sequence.
std::int64_t state_values_per_sequence(const Transformer& model);

/// Bytes that one more token adds to the cache.
template <class N>
typename N::template Number<Dim{.byte = 1}> kv_bytes_per_token(const N& num, const Transformer& model, Dtype dtype);

/// What a layer keeps from the forward pass for the backward pass.
enum class KeepPolicy {
  none,       ///< no recomputation: all that the backward pass reads
  selective,  ///< attention is recomputed from its queries, keys and values
  products,   ///< only results of matrix products and the layer's input; norms, gates and attention are recomputed
  full        ///< the layer's input alone
};
std::string_view name(KeepPolicy policy);

/// One kept tensor: elements per token, and bytes of an element where they are not the activations'.
struct Kept {
  std::string_view name;
  std::int64_t elements = 0;
  std::optional<Dtype> dtype;
};
/// With flash attention: scores are never kept, the sums of the softmax are (fp32).
std::vector<Kept> kept_activations(const Transformer& model, const Layer& layer, KeepPolicy policy);
/// Bytes per token of all layers.
Bytes kept_bytes_per_token(const Transformer& model, KeepPolicy policy, Dtype dtype);

}  // namespace assay::model

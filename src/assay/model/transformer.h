// A language model as its configuration describes it: which layers, of which sizes. Weights (weights.h) follow from it.
// Sizes are those of the published model; nothing here depends on how it is run.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "assay/base/dtype.h"

namespace assay::model {

/// What a normalisation learns.
struct Norm {
  bool scale = true;  ///< false: nothing learned at all (OLMo 1)
  bool bias = false;  ///< LayerNorm
  bool mean = false;  ///< subtracts the mean (LayerNorm), else RMSNorm
};

/// Softmax attention. Multi-head latent attention when `kv_rank` is positive.
struct Attention {
  /// One scale per head dimension, of queries and keys or of keys alone, or one per head and dimension.
  enum class QkNorm { none, per_head, keys, whole };

  std::int64_t heads = 1, kv_heads = 1;
  std::int64_t head_dim = 1;   ///< of queries and keys; with MLA the part without position plus `rope_dim`
  std::int64_t value_dim = 1;  ///< of values
  std::int64_t q_rank = 0;     ///< rank of the queries' compression; 0: not compressed
  std::int64_t kv_rank = 0;    ///< MLA: rank of the keys' and values' compression, which is what the cache holds
  std::int64_t rope_dim = 0;   ///< MLA: the part of a key that carries position, shared by all heads
  /// Tokens a query sees at most, itself among them: those before it, or as many on either side without a causal mask;
  /// 0: all.
  std::int64_t window = 0;
  std::int64_t chunk = 0;  ///< queries see their own chunk of this many tokens only; 0: no chunks
  bool q_bias = false, k_bias = false, v_bias = false, o_bias = false;
  QkNorm qk_norm = QkNorm::none;
  bool qk_norm_bias = false;
  bool sinks = false;            ///< one learned sink per head
  bool rotary = true;            ///< queries and keys are turned by their positions
  bool output_gate = false;      ///< the query projection also yields a gate of the output
  bool shares_kv = false;        ///< uses keys and values of an earlier layer: no projections, no cache of its own
  bool lends_kv = false;         ///< its keys and values are those of later layers, too
  bool idle_kv = false;          ///< shares_kv, and yet has projections of its own, which nothing uses (Gemma 3n)
  bool values_are_keys = false;  ///< values are the projected keys: no projection of their own (Gemma 4)
  bool one_cache = false;        ///< and the same after norms and rotation, so that the cache holds them once
  /// Beside the window, queries see one key for each so many tokens, pooled by learned weights; 0: none (DeepSeek V4).
  std::int64_t compression = 0;
  bool overlapping = false;  ///< such a key is pooled from twice as many tokens
  /// A light attention of so many heads picks the (compressed) keys that queries see; 0 heads: no picking.
  std::int64_t index_heads = 0, index_dim = 0, index_picks = 0;
  /// The result is projected in groups of heads, each to this rank, then to d_model; 0: in one step.
  std::int64_t output_groups = 0, output_rank = 0;
  bool causal = true;
  bool cross = false;                 ///< keys and values come from the encoder
  std::int64_t relative_buckets = 0;  ///< learned relative position biases, one per bucket and head
  bool relative_projection = false;   ///< a matrix of its own for relative positions (Transformer-XL, Gopher)
  friend bool operator==(const Attention&, const Attention&) = default;
};

/// A mixer whose state does not grow with the sequence. A gated convolution is nothing but that (LFM2); a gated linear
/// recurrence has one number for each channel, and gates that are made in blocks of channels (Griffin). RWKV mixes each
/// token with the one before it: its version 4 averages the values of each channel, 5 and 6 have a bonus for the token
/// itself, 7 is a delta rule. An mLSTM divides by a normaliser (xLSTM).
struct StateSpace {
  enum class Kind {
    mamba1,
    mamba2,
    gated_delta,
    lightning,
    gated_convolution,
    gated_linear,
    rwkv4,
    rwkv5,  ///< and 6, which has a rank of decay and one of mixing
    rwkv7,
    mlstm
  };

  Kind kind = Kind::mamba2;
  std::int64_t inner = 1;        ///< width of the values: heads x head_dim
  std::int64_t heads = 1;        ///< of values; gated_linear: blocks of its gates
  std::int64_t key_heads = 1;    ///< gated_delta: heads of queries and keys; mamba2: groups of B and C
  std::int64_t key_dim = 1;      ///< of one key head; mamba: the state size; gated_linear, rwkv4: 1
  std::int64_t convolution = 0;  ///< kernel size of the short convolution; 0: none
  std::int64_t dt_rank = 0;      ///< mamba1
  /// gated_delta: of output gate and decay, which each key dimension has; 0: neither. rwkv7: of the output gate.
  std::int64_t gate_rank = 0;
  std::int64_t decay_rank = 0;  ///< rwkv: of a decay that depends on the token; 0: it does not
  std::int64_t mix_rank = 0;    ///< rwkv5: of a mixing of tokens that depends on them; 0: it does not
  std::int64_t rate_rank = 0;   ///< rwkv7: of the rate at which it learns in context
  std::int64_t value_rank = 0;  ///< rwkv7: of a gate of the first layer's values, which come in; 0: none do
  bool lends_values = false;    ///< its values are those that come in
  bool convolution_bias = false, projection_bias = false;
  bool inner_norms = false;  ///< mamba1: norms of dt, B and C (Jamba)
  bool output_norm = true;   ///< a norm in front of the output projection; mamba1 and rwkv4 have none
  friend bool operator==(const StateSpace&, const StateSpace&) = default;
};

/// A feed-forward block; a mixture of experts when `experts` is positive.
struct FeedForward {
  std::int64_t width = 1;   ///< of one expert, or of the dense block
  bool gated = true;        ///< two matrices up (SwiGLU, GeGLU), else one
  bool shifted = false;     ///< reads each token mixed with the one before it (RWKV)
  bool receptance = false;  ///< shifted, and a square matrix gates the result
  bool up_bias = false, down_bias = false;
  std::int64_t experts = 0, experts_per_token = 0;
  std::int64_t expert_groups = 1, groups_per_token = 1;  ///< a token's experts lie in so many of the groups
  std::int64_t shared_width = 0;                         ///< of all shared experts together, which every token passes
  std::int64_t latent = 0;             ///< routed experts work in this many dimensions, projected once; 0: d_model
  std::int64_t zero_experts = 0;       ///< that a router may pick, too, and that hand a token on as it is (LongCat)
  std::int64_t activation_scales = 0;  ///< numbers that the activation of a block learns (Apertus)
  bool shared_gate = false;            ///< a learned scalar gate on the shared experts
  bool router_bias = false;            ///< learned
  bool router_correction = false;      ///< a bias of the choice alone, set to balance the experts (DeepSeek V3)
  bool router_scale = false;           ///< the router scales its input and each expert's share (Gemma 4)
  friend bool operator==(const FeedForward&, const FeedForward&) = default;
};

/// Weights that several layers use: all of theirs (ALBERT), or those of a block aside.
struct SharedBlock {
  int number = 1;  ///< layers with the same one are of one kind and have the same weights
  /// Attention reads the residual stream and, beside it, the embedding; the feed-forward block reads what attention
  /// makes. Nothing of that is added to the stream: a matrix of the layer's own projects it, and the layer's state
  /// space, its own, too, reads the sum of it and the stream (Zamba).
  bool aside = false;
  /// Ranks of adapters that each layer has of its own, beside the matrices that make queries, keys and values, and
  /// beside those that lead into the feed-forward block; 0: none.
  std::int64_t attention_rank = 0, feed_forward_rank = 0;
  friend bool operator==(const SharedBlock&, const SharedBlock&) = default;
};

/// One layer: a mixer (attention or state space), maybe cross attention, maybe a feed-forward block.
struct Layer {
  std::optional<Attention> attention, cross_attention;
  std::optional<StateSpace> state_space;
  std::optional<FeedForward> feed_forward;
  std::optional<SharedBlock> shared;  ///< absent: it shares no weights
  int norms = 2;                      ///< of width d_model; of a block aside, those behind it
  std::int64_t token_input = 0;  ///< width of an input that each layer has from the token itself (Gemma 4); 0: none
  bool parallel = false;         ///< attention and feed-forward read the same normalised input
  std::int64_t bypass_rank = 0;  ///< of a product of two matrices beside attention, with a norm (Gemma 3n); 0: none
  /// Text alone passes it by: it attends to images, and a learned number scales what each block adds (Llama 3.2).
  bool needs_image = false;
  friend bool operator==(const Layer&, const Layer&) = default;
};

/// Layers in order: `order[i]` is the index in `kinds` of layer i.
struct LayerStack {
  std::vector<Layer> kinds;
  std::vector<std::uint16_t> order;

  std::int64_t layers() const { return static_cast<std::int64_t>(order.size()); }
  std::int64_t count(std::size_t kind) const;
  /// Appends a layer, sharing its kind with equal ones.
  void add(const Layer& layer);
};

/// The layer whose keys and values a layer with `shares_kv` uses: the last one before it that lends keys of its shape.
/// Of a state space that takes values in: the last one before it that lends them.
std::int64_t key_lender(const LayerStack& stack, std::int64_t layer);

/// Pairs of narrow matrices beside matrices that stay as they are: y = x W + (x A) B. They are all that is trained
/// (LoRA).
struct Adapters {
  std::int64_t rank = 1;
  bool attention = true, feed_forward = true;  ///< whose matrices have them; routed experts have none
  friend bool operator==(const Adapters&, const Adapters&) = default;
};

/// Kinds of layers of a model, those of its encoder included, that there is a program for: tensors of a program are
/// numbered with 15 bits. OpenELM has one for each of its 36 layers.
inline constexpr std::size_t max_layer_kinds = 64;

struct Transformer {
  std::string id, name;
  std::int64_t d_model = 1, vocabulary = 1;
  std::int64_t max_context = 0;        ///< tokens it was made for; 0: unknown
  std::int64_t learned_positions = 0;  ///< rows of a learned position table
  std::int64_t token_types = 0;        ///< rows of a segment table
  std::int64_t embedding_width = 0;    ///< where it differs from d_model and is projected; 0: d_model
  /// Positions, segments and the norm of the embedding have its width, too; the projection behind them has a bias, and
  /// the transform in front of the head leads back to that width (ALBERT).
  bool narrow_positions = false;
  std::int64_t token_input_vocabulary = 0;  ///< rows of the table of `Layer::token_input`
  std::int64_t extra_embeddings = 0;        ///< rows of the embedding behind the vocabulary, which no head predicts
  std::int64_t streams = 1;       ///< copies of the residual stream, mixed around each block (hyper-connections)
  bool one_stream_works = false;  ///< of several streams one passes each layer; the others are predicted (Gemma 3n)
  bool tied = false;              ///< the head is the transposed embedding
  bool head = true;               ///< has a language-model head
  bool head_bias = false;
  bool head_transform = false;  ///< in front of the head a square matrix, an activation and a norm (BERT)
  bool pooler = false;          ///< a square matrix for the first token of a sequence alone (BERT)
  bool embedding_norm = false;
  bool final_norm = true;
  Norm norm;
  LayerStack decoder;                  ///< the only stack of a decoder-only model
  std::optional<LayerStack> encoder;   ///< of an encoder-decoder
  std::int64_t prediction_layers = 0;  ///< further multi-token-prediction modules, not part of the totals
  Dtype dtype = Dtype::bf16;           ///< of the published weights
  std::optional<Adapters> adapters;    ///< absent: every weight is trained
};

}  // namespace assay::model

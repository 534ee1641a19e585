// A language model as its configuration describes it: layers and sizes. Weights (weights.h) follow from it.
// Sizes are as published; nothing here depends on how the model is run.
#pragma once
#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "assay/base/dtype.h"
#include "assay/model/definition.h"

namespace assay::model {

/// The learned parameters of a normalisation.
struct Norm {
  bool scale = true;      ///< false: nothing learned at all (OLMo 1)
  bool bias = false;      ///< LayerNorm
  bool mean = false;      ///< subtracts the mean (LayerNorm), else RMSNorm
  bool composed = false;  ///< libraries write it as single operations, though frameworks have a kernel for it
};

/// Functions of feed-forward blocks that libraries write as several operations; `simple` is one. In eager software each
/// operation is a kernel: catalogue/steps/kinds.toml counts them.
enum class Activation : std::uint8_t {
  simple,
  gelu_new,
  gelu_fast,
  gelu_python,
  gelu_python_tanh,
  gelu_10,
  quick_gelu,
  relu2
};
inline constexpr std::string_view activation_names[] = {"simple",           "gelu_new", "gelu_fast",  "gelu_python",
                                                        "gelu_python_tanh", "gelu_10",  "quick_gelu", "relu2"};

/// How libraries make queries, keys and values: of a product each, of one that is split along its columns, or of one
/// that is cut in the order of heads or by slices, so that its gradient is put together piece by piece.
enum class JoinedProjection : std::uint8_t { none, split, woven };
inline constexpr std::string_view projection_names[] = {"none", "split", "woven"};

/// How libraries turn heads: as two halves in the format of the heads, in fp32, or as pairs of neighbours in fp32.
enum class Rotation : std::uint8_t { halves, wide, wide_pairs };
inline constexpr std::string_view rotation_names[] = {"halves", "wide", "wide_pairs"};

/// What libraries do to logits before the loss: nothing, multiply them by a number, or bound them by a tanh.
enum class Logits : std::uint8_t { plain, scaled, capped };
inline constexpr std::string_view logits_names[] = {"plain", "scaled", "capped"};

/// Softmax attention. Multi-head latent attention when `kv_rank` is positive.
struct Attention {
  /// One scale per head dimension, of queries and keys or of keys alone, or one per head and dimension.
  enum class QkNorm { none, per_head, keys, whole };

  std::int64_t heads = 1, kv_heads = 1;
  std::int64_t head_dim = 1;   ///< of queries and keys; with MLA the part without position plus `rope_dim`
  std::int64_t value_dim = 1;  ///< of values
  std::int64_t q_rank = 0;     ///< rank of the queries' compression; 0: not compressed
  std::int64_t kv_rank = 0;    ///< MLA: rank of the keys' and values' compression, which the cache holds
  std::int64_t rope_dim = 0;   ///< MLA: the part of a key that carries position, shared by all heads
  /// Most tokens a query sees, including itself: those before it, or as many on either side without a causal mask;
  /// 0: all.
  std::int64_t window = 0;
  std::int64_t chunk = 0;  ///< queries see only their own chunk of this many tokens; 0: no chunks
  bool q_bias = false, k_bias = false, v_bias = false, o_bias = false;
  QkNorm qk_norm = QkNorm::none;
  bool qk_norm_bias = false;
  bool sinks = false;                 ///< one learned sink per head
  bool rotary = true;                 ///< queries and keys are turned by their positions
  bool output_gate = false;           ///< the query projection also yields a gate of the output
  bool shares_kv = false;             ///< uses keys and values of an earlier layer: no projections or cache of its own
  bool shares_kv_with_later = false;  ///< later layers also use its keys and values
  bool idle_kv = false;               ///< shares_kv, but still has unused projections of its own (Gemma 3n)
  bool values_are_keys = false;       ///< values are the projected keys: no projection of their own (Gemma 4)
  bool one_cache = false;             ///< also the same after norms and rotation, so that the cache holds them once
  /// In addition to the window, queries see one key per this many tokens, pooled by learned weights; 0: none
  /// (DeepSeek V4).
  std::int64_t compression = 0;
  bool overlapping = false;  ///< such a key is pooled from twice as many tokens
  /// A light attention with this many heads picks the (compressed) keys that queries see; 0 heads: no picking.
  std::int64_t index_heads = 0, index_dim = 0, index_picks = 0;
  /// The result is projected in groups of heads, each to this rank, then to d_model; 0: in one step.
  std::int64_t output_groups = 0, output_rank = 0;
  bool causal = true;
  bool cross = false;                 ///< keys and values come from the encoder
  std::int64_t relative_buckets = 0;  ///< learned relative position biases, one per bucket and head
  bool relative_projection = false;   ///< a matrix of its own for relative positions (Transformer-XL, Gopher)
  std::int64_t turned = 0;            ///< numbers of a head that turn, cut out of it and joined again; 0: all of them
  JoinedProjection joined = JoinedProjection::none;
  Rotation rotation = Rotation::halves;
  friend bool operator==(const Attention&, const Attention&) = default;
};

/// A mixer whose state does not grow with the sequence. A gated convolution has no other state (LFM2); a gated linear
/// recurrence has one number per channel, and gates computed in blocks of channels (Griffin). RWKV mixes each
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
    rwkv5,  ///< also 6, which has ranks for decay and mixing
    rwkv7,
    mlstm
  };

  Kind kind = Kind::mamba2;
  std::int64_t inner = 1;        ///< width of the values: heads x head_dim
  std::int64_t heads = 1;        ///< of values; gated_linear: blocks of its gates
  std::int64_t key_heads = 1;    ///< gated_delta: heads of queries and keys; mamba2: groups of B and C
  std::int64_t key_dim = 1;      ///< of one key head; mamba: the state size; gated_linear, rwkv4: 1
  std::int64_t convolution = 0;  ///< kernel size of the short convolution; 0: none
  std::int64_t chunk = 64;       ///< tokens that kernels scan at once, where they scan in chunks
  std::int64_t dt_rank = 0;      ///< mamba1
  /// gated_delta: rank of the output gate and of the decay per key dimension; 0: neither. rwkv7: of the output gate.
  std::int64_t gate_rank = 0;
  std::int64_t decay_rank = 0;  ///< rwkv: of a token-dependent decay; 0: not token-dependent
  std::int64_t mix_rank = 0;    ///< rwkv5: of a token-dependent mixing; 0: not token-dependent
  std::int64_t rate_rank = 0;   ///< rwkv7: of the in-context learning rate
  std::int64_t value_rank = 0;  ///< rwkv7: of a gate for the first layer's values, mixed in; 0: none
  bool lends_values = false;    ///< other layers mix in its values
  bool convolution_bias = false, projection_bias = false;
  bool inner_norms = false;  ///< mamba1: norms of dt, B and C (Jamba)
  bool output_norm = true;   ///< a norm before the output projection; mamba1 and rwkv4 have none
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
  std::int64_t expert_groups = 1, groups_per_token = 1;  ///< a token's experts come from this many of the groups
  std::int64_t shared_width = 0;                         ///< of all shared experts together, used by every token
  std::int64_t latent = 0;             ///< routed experts work in this many dimensions, projected once; 0: d_model
  std::int64_t zero_experts = 0;       ///< extra choices of the router that return a token unchanged (LongCat)
  std::int64_t activation_scales = 0;  ///< learned parameters of the activation per block (Apertus)
  bool shared_gate = false;            ///< a learned scalar gate on the shared experts
  bool router_bias = false;            ///< learned
  bool router_correction = false;      ///< a bias for selection only, set to balance the experts (DeepSeek V3)
  bool router_scale = false;           ///< the router scales its input and each expert's share (Gemma 4)
  bool joined = false;                 ///< one product makes gate and input, which are halves of its result
  Activation function = Activation::simple;
  friend bool operator==(const FeedForward&, const FeedForward&) = default;
};

/// Weights that several layers use: all of their weights (ALBERT), or a block aside.
struct SharedBlock {
  int number = 1;  ///< layers with the same number are of one kind and share weights
  /// Attention reads the residual stream joined with the embedding; the feed-forward block reads attention's result.
  /// Neither is added to the stream: the layer's own matrix projects the result, and the layer's own state
  /// space reads its sum with the stream (Zamba).
  bool aside = false;
  /// Ranks of each layer's own adapters for the query, key and value matrices, and
  /// for the input matrices of the feed-forward block; 0: none.
  std::int64_t attention_rank = 0, feed_forward_rank = 0;
  friend bool operator==(const SharedBlock&, const SharedBlock&) = default;
};

/// One layer: a mixer (attention or state space), optionally cross attention and a feed-forward block.
struct Layer {
  std::optional<Attention> attention, cross_attention;
  std::optional<StateSpace> state_space;
  std::optional<FeedForward> feed_forward;
  std::optional<SharedBlock> shared;  ///< absent: it shares no weights
  int norms = 2;                      ///< of width d_model; for a block aside, those after it
  bool norms_after = false;           ///< they follow their blocks instead of preceding them (OLMo 2)
  std::int64_t token_input = 0;       ///< width of each layer's input from the token itself (Gemma 4); 0: none
  bool parallel = false;              ///< attention and feed-forward read the same normalised input
  std::int64_t bypass_rank = 0;       ///< of two matrices in parallel with attention, with a norm (Gemma 3n); 0: none
  /// Skipped by text alone: it attends to images, and a learned number scales each block's output (Llama 3.2).
  bool needs_image = false;
  friend bool operator==(const Layer&, const Layer&) = default;

  bool has_experts() const { return feed_forward && feed_forward->experts > 0; }
};

/// Layers in order: `order[i]` is the index in `kinds` of layer i.
struct LayerStack {
  std::vector<Layer> kinds;
  std::vector<std::uint16_t> order;

  std::int64_t layers() const { return static_cast<std::int64_t>(order.size()); }
  std::int64_t count(std::size_t kind) const;
  /// Whether some layer is as `holds` says.
  template <class F>
  bool any(F holds) const {
    return std::any_of(kinds.begin(), kinds.end(), holds);
  }
  /// Appends a layer, sharing its kind with equal ones.
  void add(const Layer& layer);
};

/// The layer whose keys and values a layer with `shares_kv` uses: the last earlier one that lends keys of its shape.
/// For a state space that mixes in values: the last earlier layer that lends them.
std::int64_t key_lender(const LayerStack& stack, std::int64_t layer);

/// Pairs of narrow matrices added to frozen matrices: y = x W + (x A) B. Only the pairs are trained
/// (LoRA).
struct Adapters {
  std::int64_t rank = 1;
  bool attention = true, feed_forward = true;  ///< which matrices have them; routed experts have none
  friend bool operator==(const Adapters&, const Adapters&) = default;
};

/// Most kinds of layers, including the encoder's, that a program supports: tensors of a program are
/// numbered with 15 bits. OpenELM has one for each of its 36 layers.
inline constexpr std::size_t max_layer_kinds = 64;

struct Transformer {
  std::string id, name;
  std::int64_t d_model = 1, vocabulary = 1;
  std::int64_t max_context = 0;        ///< tokens it was designed for; 0: unknown
  std::int64_t learned_positions = 0;  ///< rows of a learned position table
  double rotary_base = 0;              ///< of the wavelengths of rotary positions; 0: unknown
  std::int64_t token_types = 0;        ///< rows of a segment table
  std::int64_t embedding_width = 0;    ///< if it differs from d_model and is projected; 0: d_model
  /// Positions, segments and the norm of the embedding also have its width; the projection after them has a bias, and
  /// the transform before the head leads back to that width (ALBERT).
  bool narrow_positions = false;
  std::int64_t token_input_vocabulary = 0;  ///< rows of the table of `Layer::token_input`
  std::int64_t extra_embeddings = 0;        ///< embedding rows beyond the vocabulary, which no head predicts
  std::int64_t streams = 1;       ///< copies of the residual stream, mixed around each block (hyper-connections)
  bool one_stream_works = false;  ///< only one stream passes each layer; the others are predicted (Gemma 3n)
  bool tied = false;              ///< the head is the transposed embedding
  bool head = true;               ///< has a language-model head
  bool head_bias = false;
  bool head_transform = false;  ///< a square matrix, an activation and a norm before the head (BERT)
  bool pooler = false;          ///< a square matrix for only the first token of a sequence (BERT)
  bool embedding_norm = false;
  bool final_norm = true;
  Norm norm;
  Logits logits = Logits::plain;
  Definition definition;
  LayerStack decoder;                  ///< the only stack of a decoder-only model
  std::optional<LayerStack> encoder;   ///< of an encoder-decoder
  std::int64_t prediction_layers = 0;  ///< further multi-token-prediction modules, not part of the totals
  Dtype dtype = Dtype::bf16;           ///< of the published weights
  std::optional<Adapters> adapters;    ///< absent: every weight is trained

  bool has_experts() const {
    return decoder.any([](const Layer& layer) { return layer.has_experts(); });
  }
  bool has_gated_experts() const {
    return decoder.any([](const Layer& layer) { return layer.has_experts() && layer.feed_forward->gated; });
  }
  /// Calls visit(layer, times) with each kind of layer of the decoder, then of the encoder, and how often it occurs.
  template <class F>
  void for_each_kind(F visit) const {
    for (const LayerStack* stack : {&decoder, encoder ? &*encoder : nullptr})
      for (std::size_t i = 0; stack && i < stack->kinds.size(); ++i) visit(stack->kinds[i], stack->count(i));
  }
};

}  // namespace assay::model

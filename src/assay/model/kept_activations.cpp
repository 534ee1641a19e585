// What a layer keeps for its backward pass.
#include "assay/model/accounting.h"

namespace assay::model {

std::string_view name(KeepPolicy policy) {
  static constexpr std::string_view names[] = {"none", "selective", "products", "full"};
  return names[static_cast<std::size_t>(policy)];
}

std::vector<Kept> kept_activations(const Transformer& model, const Layer& layer, KeepPolicy policy) {
  std::vector<Kept> kept{{"layer input", model.streams * model.d_model, {}}};
  if (policy == KeepPolicy::full) return kept;
  const bool all = policy != KeepPolicy::products;
  const auto keep = [&](std::string_view what, std::int64_t elements, std::optional<Dtype> dtype = {}) {
    if (elements > 0) kept.push_back({what, elements, dtype});
  };
  const auto keep_attention = [&](const Attention& a) {
    if (all) keep("normalised input", model.d_model);
    keep("compressed queries", a.q_rank);
    if (a.kv_rank > 0) keep("compressed keys and values", a.kv_rank + a.rope_dim);
    const std::int64_t pooled = a.compression > 0 ? (a.overlapping ? 4 : 2) : 0;
    keep("keys to pool and their weights", pooled * a.head_dim);
    // The index that picks keys has no gradient: unless it is recomputed, only its result is kept.
    if (a.index_heads > 0 && a.compression == 0 && all) {
      keep("picked keys", a.index_picks, Dtype::int32);
    } else if (a.index_heads > 0) {
      keep("queries and weights of the index", a.index_heads * (a.index_dim + 1));
      keep("keys of the index", (a.compression > 0 ? pooled : 1) * a.index_dim);
    }
    keep("queries", a.heads * a.head_dim);
    if (!a.shares_kv) {
      const std::int64_t heads = a.kv_rank > 0 ? a.heads : a.kv_heads;
      keep("keys", heads * a.head_dim);
      if (!a.one_cache) keep("values", heads * a.value_dim);
    }
    if (a.output_gate) keep("output gate", a.heads * a.value_dim);
    // The output projection reads the result, whether or not the inside of attention is recomputed.
    if (all) keep("attention output", a.heads * a.value_dim);
    if (policy == KeepPolicy::none) keep("softmax sums", a.heads, Dtype::fp32);
    keep("output in groups", a.output_groups * a.output_rank);
    keep("after attention", model.streams * model.d_model);
  };
  if (layer.attention) keep_attention(*layer.attention);
  if (layer.cross_attention) keep_attention(*layer.cross_attention);
  if (layer.state_space) {
    const StateSpace& s = *layer.state_space;
    const bool per_channel = s.kind == StateSpace::Kind::gated_convolution || s.kind == StateSpace::Kind::gated_linear;
    const std::int64_t keys = s.kind == StateSpace::Kind::mamba1 ? s.key_dim : s.key_heads * s.key_dim;
    if (all && !layer.attention) keep("normalised input", model.d_model);
    keep("values and gate", 2 * s.inner);
    keep(per_channel ? "gates" : "keys and queries",
         s.kind == StateSpace::Kind::gated_convolution ? s.inner : 2 * (per_channel ? s.inner : keys));
    if (all) keep("mixer output", s.inner);
    keep("after mixer", model.d_model);
  }
  if (layer.feed_forward) {
    const FeedForward& f = *layer.feed_forward;
    const std::int64_t matrices = f.gated ? 2 : 1;
    if (all && !(layer.parallel && layer.norms < 2)) keep("normalised input of the feed-forward", model.d_model);
    if (f.experts > 0) {
      keep("router", f.experts, Dtype::fp32);
      const std::int64_t through = f.latent > 0 ? f.latent : model.d_model;
      keep("tokens sent to experts", f.experts_per_token * through);
      keep("up and gate of experts", f.experts_per_token * matrices * f.width);
      if (all) keep("activation of experts", f.experts_per_token * f.width);
      keep("output of experts", f.experts_per_token * through);
      keep("up and gate of shared experts", matrices * f.shared_width);
      if (all) keep("activation of shared experts", f.shared_width);
    } else {
      keep("up and gate", matrices * f.width);
      if (all) keep("activation", f.width);
    }
  }
  return kept;
}

}  // namespace assay::model

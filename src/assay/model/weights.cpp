#include "assay/model/weights.h"

#include <fmt/format.h>

#include <algorithm>

#include "assay/model/layer_parts.h"
#include "assay/model/weight_list.h"

namespace assay::model {
namespace {

using enum LogicalDim;

void add_norm(std::vector<Weight>& out, const Norm& norm, Weight::Size row) {
  const WeightList list(out, Part::norm);
  list.vector(norm.scale, "norm", {row});
  list.vector(norm.scale && norm.bias, "b_norm", {row});
}
void add_norm(std::vector<Weight>& out, const Norm& norm, std::int64_t width) { add_norm(out, norm, {d_model, width}); }

void add_qk_norms(const WeightList& list, const Attention& a) {
  if (a.qk_norm == Attention::QkNorm::none) return;
  const bool whole = a.qk_norm == Attention::QkNorm::whole;
  const auto scale = [&](std::string_view name, LogicalDim dim, std::int64_t heads_of) {
    if (whole)
      list.vector(name, {{dim, heads_of}, {head_dim, a.head_dim}});
    else
      list.vector(name, {{head_dim, a.head_dim}});
  };
  const bool queries = a.qk_norm != Attention::QkNorm::keys;
  if (queries) scale("q_norm", heads, a.heads);
  if (queries && a.qk_norm_bias) scale("b_q_norm", heads, a.heads);
  if (a.shares_kv && !a.idle_kv) return;
  scale("k_norm", kv_heads, a.kv_heads);
  if (a.qk_norm_bias) scale("b_k_norm", kv_heads, a.kv_heads);
}

/// Queries through a low rank.
void add_compressed_queries(const WeightList& list, const Attention& a, std::int64_t width) {
  list.matrix("W_qa", {{d_model, width}, {rank, a.q_rank}});
  list.vector(a.q_bias, "b_qa", {{rank, a.q_rank}});
  list.vector("qa_norm", {{rank, a.q_rank}});
  list.matrix("W_qb", {{rank, a.q_rank}, {heads, a.heads}, {head_dim, a.head_dim}});
}

struct PoolNames {
  std::string_view keys, weights, places, norm;
};
/// Weights that pool tokens to one key of `size`: keys and their weights (for both halves of overlapping windows), a
/// weight for each position in the window, and a norm.
void add_pool(const WeightList& list, const Attention& a, std::int64_t width, std::int64_t size,
              const PoolNames& names) {
  const Weight::Size made{head_dim, (a.overlapping ? 2 : 1) * size};
  list.matrix(names.keys, {{d_model, width}, made});
  list.matrix(names.weights, {{d_model, width}, made});
  list.vector(names.places, {{positions, a.compression}, made});
  list.vector(names.norm, {{head_dim, size}});
}

void add_sparse_keys(const WeightList& list, const Attention& a, std::int64_t width) {
  if (a.compression > 0) add_pool(list, a, width, a.head_dim, {"W_pool", "W_pool_gate", "pool_places", "pool_norm"});
  if (a.index_heads == 0) return;
  // Every device needs the sum over all heads of an index, so no rule splits them.
  list.matrix("W_iq", {{rank, a.q_rank}, {other, a.index_heads}, {head_dim, a.index_dim}});
  list.matrix("W_iw", {{d_model, width}, {other, a.index_heads}});
  if (a.compression > 0) {
    add_pool(list, a, width, a.index_dim, {"W_ipool", "W_ipool_gate", "ipool_places", "ipool_norm"});
  } else {
    list.matrix("W_ik", {{d_model, width}, {head_dim, a.index_dim}});
    list.vector("ik_norm", {{head_dim, a.index_dim}});
    list.vector("b_ik_norm", {{head_dim, a.index_dim}});
  }
}

/// Multi-head latent attention: queries, keys and values through low ranks.
void add_latent_attention(const WeightList& list, const Attention& a, std::int64_t width) {
  if (a.q_rank > 0)
    add_compressed_queries(list, a, width);
  else
    list.matrix("W_q", {{d_model, width}, {heads, a.heads}, {head_dim, a.head_dim}});
  list.matrix("W_kva", {{d_model, width}, {rank, a.kv_rank + a.rope_dim}});
  list.vector(a.k_bias, "b_kva", {{rank, a.kv_rank + a.rope_dim}});
  list.vector("kva_norm", {{rank, a.kv_rank}});
  add_sparse_keys(list, a, width);
  list.matrix("W_kvb", {{rank, a.kv_rank}, {heads, a.heads}, {head_dim, a.head_dim - a.rope_dim + a.value_dim}});
  list.matrix("W_o", {{heads, a.heads}, {value_dim, a.value_dim}, {d_model, width}});
  list.vector(a.o_bias, "b_o", {{d_model, width}});
}

void add_attention(std::vector<Weight>& out, const Attention& a, std::int64_t width) {
  const WeightList list(out, Part::attention);
  if (a.kv_rank > 0) return add_latent_attention(list, a, width);
  const bool cross = a.cross;
  if (a.q_rank > 0)
    add_compressed_queries(list, a, width);
  else
    list.matrix(cross ? "W_cq" : "W_q", {{d_model, width}, {heads, a.heads}, {head_dim, a.head_dim}});
  list.vector(a.q_bias && a.q_rank == 0, cross ? "b_cq" : "b_q", {{heads, a.heads}, {head_dim, a.head_dim}});
  if (a.output_gate) list.matrix("W_og", {{d_model, width}, {heads, a.heads}, {value_dim, a.value_dim}});
  if (a.idle_kv) {
    list.vector("W_k", {{d_model, width}, {kv_heads, a.kv_heads}, {head_dim, a.head_dim}});
    list.vector("W_v", {{d_model, width}, {kv_heads, a.kv_heads}, {value_dim, a.value_dim}});
  } else if (!a.shares_kv) {
    list.matrix(cross ? "W_ck" : "W_k", {{d_model, width}, {kv_heads, a.kv_heads}, {head_dim, a.head_dim}});
    list.vector(a.k_bias, cross ? "b_ck" : "b_k", {{kv_heads, a.kv_heads}, {head_dim, a.head_dim}});
    if (!a.values_are_keys) {
      list.matrix(cross ? "W_cv" : "W_v", {{d_model, width}, {kv_heads, a.kv_heads}, {value_dim, a.value_dim}});
      list.vector(a.v_bias, cross ? "b_cv" : "b_v", {{kv_heads, a.kv_heads}, {value_dim, a.value_dim}});
    }
  }
  add_qk_norms(list, a);
  add_sparse_keys(list, a, width);
  list.vector(a.sinks, "sinks", {{heads, a.heads}});
  // It multiplies positions, not tokens, so it does not count as work per token.
  WeightList(out, Part::positions)
      .vector(a.relative_projection, "W_rel", {{d_model, width}, {heads, a.heads}, {head_dim, a.head_dim}});
  WeightList(out, Part::positions)
      .vector(a.relative_buckets > 0, "relative", {{positions, a.relative_buckets}, {heads, a.heads}});
  if (a.output_groups > 0) {
    const Weight::Size groups{heads, a.output_groups}, narrow{rank, a.output_rank};
    list.matrix("W_oa", {groups, {value_dim, a.heads / a.output_groups * a.value_dim}, narrow});
    list.matrix("W_ob", {groups, narrow, {d_model, width}});
  } else {
    list.matrix(cross ? "W_co" : "W_o", {{heads, a.heads}, {value_dim, a.value_dim}, {d_model, width}});
  }
  list.vector(a.o_bias, cross ? "b_co" : "b_o", {{d_model, width}});
}

void add_experts(std::vector<Weight>& out, const FeedForward& f, std::int64_t width) {
  const WeightList router(out, Part::router), list(out, Part::experts);
  const Weight::Size e{experts, f.experts}, picks{experts, f.experts + f.zero_experts};
  router.matrix("W_router", {{d_model, width}, picks});
  router.vector(f.router_bias, "b_router", {picks});
  router.vector(f.router_correction, "c_router", {picks});
  router.vector(f.router_scale, "router_norm", {{d_model, width}});
  router.vector(f.router_scale, "expert_scale", {e});
  const std::int64_t through = f.latent > 0 ? f.latent : width;
  const LogicalDim through_dim = f.latent > 0 ? rank : d_model;
  if (f.latent > 0) list.matrix("W_latent_in", {{d_model, width}, {rank, f.latent}});
  list.matrix("W_in", {e, {through_dim, through}, {LogicalDim::width, f.width}});
  list.vector(f.up_bias, "b_in", {e, {LogicalDim::width, f.width}});
  if (f.gated) list.matrix("W_gate", {e, {through_dim, through}, {LogicalDim::width, f.width}});
  list.vector(f.gated && f.up_bias, "b_gate", {e, {LogicalDim::width, f.width}});
  list.matrix("W_out", {e, {LogicalDim::width, f.width}, {through_dim, through}});
  list.vector(f.down_bias, "b_out", {e, {through_dim, through}});
  if (f.latent > 0) list.matrix("W_latent_out", {{rank, f.latent}, {d_model, width}});
}

void add_shared_experts(std::vector<Weight>& out, const FeedForward& f, std::int64_t width) {
  const WeightList list(out, Part::shared_experts);
  list.matrix("W_in_shared", {{d_model, width}, {LogicalDim::width, f.shared_width}});
  if (f.gated) list.matrix("W_gate_shared", {{d_model, width}, {LogicalDim::width, f.shared_width}});
  list.matrix("W_out_shared", {{LogicalDim::width, f.shared_width}, {d_model, width}});
  if (f.shared_gate) list.matrix("W_shared_gate", {{d_model, width}, {other, 1}});
}

void add_feed_forward(std::vector<Weight>& out, const FeedForward& f, std::int64_t width) {
  if (f.experts > 0) {
    add_experts(out, f, width);
    if (f.shared_width > 0) add_shared_experts(out, f, width);
    return;
  }
  const WeightList list(out, Part::mlp);
  if (f.shifted) add_mix(list, "mix_ffn", f.receptance ? 2 : 1, width);
  list.matrix("W_in", {{d_model, width}, {LogicalDim::width, f.width}});
  list.vector(f.up_bias, "b_in", {{LogicalDim::width, f.width}});
  if (f.gated) list.matrix("W_gate", {{d_model, width}, {LogicalDim::width, f.width}});
  list.vector(f.gated && f.up_bias, "b_gate", {{LogicalDim::width, f.width}});
  list.vector(f.activation_scales > 0, "activation", {{other, f.activation_scales}});
  list.matrix("W_out", {{LogicalDim::width, f.width}, {d_model, width}});
  list.vector(f.down_bias, "b_out", {{d_model, width}});
  if (f.receptance) list.matrix("W_receptance", {{d_model, width}, {LogicalDim::width, width}});
}

/// Several residual streams: for each block, weights that combine the streams into its input, spread its result over
/// them and mix them, all computed from the streams themselves; one scale for each of the three.
void add_streams(std::vector<Weight>& out, const Transformer& model) {
  if (model.streams == 1 || model.one_stream_works) return;
  const WeightList list(out, Part::streams);
  const Weight::Size mixed{other, (2 + model.streams) * model.streams};
  list.matrix("W_mix", {{other, model.streams}, {d_model, model.d_model}, mixed});
  list.vector("b_mix", {mixed});
  list.vector("mix_scale", {{other, 3}});
}

/// One stream is active: before a layer all streams are predicted from all, by weights computed from the active one;
/// after it, all are corrected by the prediction error in the same way.
void add_predicted_streams(std::vector<Weight>& out, const Transformer& model) {
  if (!model.one_stream_works) return;
  const WeightList list(out, Part::streams);
  const Weight::Size all{other, model.streams}, pairs{other, model.streams * model.streams};
  list.vector("mix_norm", {{d_model, model.d_model}});
  list.matrix("W_mix", {{d_model, model.d_model}, all});
  list.matrix("W_predict", {all, pairs});
  list.matrix("W_correct", {all, all});
  list.vector("mix_scale", {{d_model, model.d_model}});
}

/// Two narrow matrices in parallel with attention.
void add_bypass(std::vector<Weight>& out, const Layer& layer, std::int64_t width) {
  if (layer.bypass_rank == 0) return;
  const WeightList list(out, Part::attention);
  list.matrix("W_bypass_in", {{d_model, width}, {rank, layer.bypass_rank}});
  list.matrix("W_bypass_out", {{rank, layer.bypass_rank}, {d_model, width}});
  list.vector("bypass_norm", {{d_model, width}});
}

/// Attention that reads twice the width, and a feed-forward block whose result the layer's own matrix projects.
/// The layer's own adapters follow the matrices they adapt; gate and up share the first half of theirs.
void add_block_aside(std::vector<Weight>& out, const Transformer& model, const Layer& layer) {
  const Weight::Size made{d_model, model.d_model}, handed_on{rank, model.d_model};
  std::vector<Weight> weights;
  add_norm(weights, model.norm, 2 * model.d_model);
  const std::size_t attends = weights.size();
  add_attention(weights, *layer.attention, 2 * model.d_model);
  for (std::size_t i = attends; i < weights.size(); ++i)
    if (Weight::Size& last = weights[i].dims[weights[i].rank - 1u]; last.dim == d_model) last = made;
  add_norm(weights, model.norm, model.d_model);
  const std::size_t feeds = weights.size();
  add_feed_forward(weights, *layer.feed_forward, model.d_model);
  for (std::size_t i = feeds; i < weights.size(); ++i)
    if (Weight::Size& last = weights[i].dims[weights[i].rank - 1u]; last.dim == d_model) last = handed_on;
  for (Weight& weight : weights) {
    weight.shared = true;
    out.push_back(weight);
    const bool takes_stream = weight.matrix && weight.dims[0].dim == d_model;
    const std::int64_t narrow =
        weight.part == Part::mlp ? layer.shared->feed_forward_rank : layer.shared->attention_rank;
    if (!takes_stream || narrow == 0) continue;
    const WeightList list(out, weight.part);
    if (weight.name != "W_gate") list.matrix("adapter_A", {weight.dims[0], {adapter, narrow}});
    if (weight.rank == 2)
      list.matrix("adapter_B", {{adapter, narrow}, weight.dims[1]});
    else
      list.matrix("adapter_B", {{adapter, narrow}, weight.dims[1], weight.dims[2]});
  }
  WeightList(out, Part::attention).matrix("W_link", {handed_on, made});
}

/// Freezes weights; each adapted matrix is followed by the two of its adapter.
void adapt(std::vector<Weight>& weights, const Adapters& adapters) {
  std::vector<Weight> all;
  all.reserve(3 * weights.size());
  for (Weight& weight : weights) {
    weight.trained = false;
    all.push_back(weight);
    const bool feeds = weight.part == Part::mlp || weight.part == Part::shared_experts;
    if (!weight.matrix || !(feeds ? adapters.feed_forward : weight.part == Part::attention && adapters.attention))
      continue;
    // A matrix to d_model takes all its other dimensions as input, any other matrix only the first.
    const int inputs = weight.dims[weight.rank - 1u].dim == d_model ? weight.rank - 1 : 1;
    const Weight::Size narrow{adapter, adapters.rank};
    Weight in{"lora_A", weight.part}, out{"lora_B", weight.part};
    in.shared = out.shared = weight.shared;
    for (int i = 0; i < inputs; ++i) in.dims[in.rank++] = weight.dims[static_cast<std::size_t>(i)];
    in.dims[in.rank++] = out.dims[out.rank++] = narrow;
    for (int i = inputs; i < weight.rank; ++i) out.dims[out.rank++] = weight.dims[static_cast<std::size_t>(i)];
    all.push_back(in);
    all.push_back(out);
  }
  weights = std::move(all);
}

}  // namespace

std::string_view letter(LogicalDim dim) {
  static constexpr std::string_view letters[logical_dims] = {"B", "S", "T", "D", "N", "K", "H", "H", "F",
                                                             "E", "C", "V", "R", "I", "Z", "P", "L", "O"};
  return letters[static_cast<std::size_t>(dim)];
}

std::string_view name(Part part) {
  static constexpr std::string_view names[part_count] = {
      "embedding",      "positions", "attention", "state_space", "mlp", "experts",
      "shared_experts", "router",    "norm",      "streams",     "head"};
  return names[static_cast<std::size_t>(part)];
}

std::int64_t Weight::elements() const {
  std::int64_t product = 1;
  for (std::size_t i = 0; i < rank; ++i) product *= dims[i].size;
  return product;
}

std::string shape_text(const Weight& weight) {
  std::string text = "[";
  for (std::size_t i = 0; i < weight.rank; ++i)
    text += fmt::format("{}{} {}", i == 0 ? "" : ", ", letter(weight.dims[i].dim), weight.dims[i].size);
  return text + "]";
}

std::vector<Weight> layer_weights(const Transformer& model, const Layer& layer) {
  std::vector<Weight> out;
  out.reserve(24);
  // One norm before each block, the rest after it; in a parallel layer all norms come first.
  const bool sandwich = has_sandwich_norms(layer);
  int left = layer.norms;
  const auto norms = [&](int wanted) {
    for (; wanted > 0 && left > 0; --wanted, --left) add_norm(out, model.norm, model.d_model);
  };
  if (layer.parallel) norms(left);
  const auto block = [&](const auto& content, auto add) {
    if (!content) return;
    add_streams(out, model);
    norms(1);
    add(out, *content, model.d_model);
    WeightList(out, out.back().part).vector(layer.needs_image, "block_scale", {{other, 1}});
    if (sandwich) norms(1);
  };
  add_predicted_streams(out, model);
  if (is_aside(layer)) {
    add_block_aside(out, model, layer);
    block(layer.state_space, add_state_space);
    norms(left);
    if (model.adapters) adapt(out, *model.adapters);
    return out;
  }
  add_bypass(out, layer, model.d_model);
  if (layer.attention && layer.state_space) {
    norms(1);
    add_state_space(out, *layer.state_space, model.d_model);
    add_attention(out, *layer.attention, model.d_model);
    if (sandwich) norms(1);
  } else {
    block(layer.attention, add_attention);
    block(layer.state_space, add_state_space);
  }
  block(layer.cross_attention, add_attention);
  block(layer.feed_forward, add_feed_forward);
  if (layer.token_input > 0) {
    const WeightList list(out, Part::mlp);
    list.matrix("W_token_gate", {{d_model, model.d_model}, {rank, layer.token_input}});
    list.matrix("W_token", {{rank, layer.token_input}, {d_model, model.d_model}});
  }
  norms(left);
  for (Weight& weight : out) weight.shared = layer.shared.has_value();
  if (model.adapters) adapt(out, *model.adapters);
  return out;
}

std::vector<Weight> outer_weights(const Transformer& model) {
  std::vector<Weight> out;
  out.reserve(12);
  const std::int64_t stacks = model.encoder ? 2 : 1;
  const std::int64_t embedded = model.embedding_width > 0 ? model.embedding_width : model.d_model;
  const WeightList embedding(out, Part::embedding), head(out, Part::head), table(out, Part::positions);
  const Weight::Size narrow{embedded == model.d_model ? d_model : rank, embedded};
  embedding.vector("embedding", {{vocabulary, model.vocabulary + model.extra_embeddings}, narrow});
  if (embedded != model.d_model) embedding.matrix("W_embed_in", {narrow, {d_model, model.d_model}});
  embedding.vector(model.narrow_positions, "b_embed_in", {{d_model, model.d_model}});
  const Weight::Size placed = model.narrow_positions ? narrow : Weight::Size{d_model, model.d_model};
  if (const Weight::Size inputs{rank, token_input_width(model.decoder)}; inputs.size > 0) {
    const Weight::Size each{other, model.decoder.layers()};
    embedding.vector("token_inputs", {{vocabulary, model.token_input_vocabulary}, each, inputs});
    embedding.matrix("W_token_inputs", {{d_model, model.d_model}, each, inputs});
    embedding.vector("token_norm", {inputs});
  }
  for (std::int64_t i = 0; i < stacks; ++i) {
    table.vector(model.learned_positions > 0, "positions", {{positions, model.learned_positions}, placed});
    table.vector(model.token_types > 0, "token_types", {{positions, model.token_types}, placed});
    if (model.embedding_norm) add_norm(out, model.norm, placed);
    if (model.final_norm) add_norm(out, model.norm, model.d_model);
  }
  const Weight::Size turned{rank, model.d_model};
  if (model.head && model.head_transform) {
    const Weight::Size made = model.narrow_positions ? narrow : turned;
    head.matrix("W_transform", {{d_model, model.d_model}, made});
    head.vector(model.norm.bias, "b_transform", {made});
    add_norm(out, model.norm, placed);
  }
  head.vector(model.pooler, "W_pooler", {{d_model, model.d_model}, turned});
  head.vector(model.pooler, "b_pooler", {turned});
  if (model.one_stream_works) {  // the others begin and end as products of the first
    const WeightList streams(out, Part::streams);
    const Weight::Size others{other, model.streams - 1};
    streams.matrix("W_streams_in", {others, {d_model, model.d_model}, {d_model, model.d_model}});
    streams.matrix("W_streams_out", {others, {d_model, model.d_model}, {d_model, model.d_model}});
  } else if (model.streams > 1) {  // gathers the streams at the end
    const WeightList streams(out, Part::streams);
    streams.matrix("W_mix", {{other, model.streams}, {d_model, model.d_model}, {other, model.streams}});
    streams.vector("b_mix", {{other, model.streams}});
    streams.vector("mix_scale", {{other, 1}});
  }
  if (embedded != model.d_model && model.head && !model.narrow_positions)
    head.matrix("W_embed_out", {{d_model, model.d_model}, narrow});
  if (model.head && !model.tied) head.matrix("W_head", {narrow, {vocabulary, model.vocabulary}});
  head.vector(model.head && model.head_bias, "b_head", {{vocabulary, model.vocabulary}});
  for (Weight& weight : out) weight.trained = !model.adapters;
  return out;
}

}  // namespace assay::model

// Small models of every variety that a program can have.
#pragma once
#include <initializer_list>
#include <string>
#include <utility>
#include <vector>

#include "assay/model/transformer.h"

/// A namespace of its own: the names are short, and others have them, too.
namespace assay::testing::small {

inline model::Attention grouped_attention() {
  model::Attention a;
  a.heads = 4;
  a.kv_heads = 2;
  a.head_dim = 4;
  a.value_dim = 4;
  return a;
}

inline model::Attention latent_attention(std::int64_t q_rank) {
  model::Attention a;
  a.heads = a.kv_heads = 4;
  a.head_dim = 6;
  a.value_dim = 4;
  a.rope_dim = 2;
  a.kv_rank = 8;
  a.q_rank = q_rank;
  return a;
}

/// Over the keys that an index picks.
inline model::Attention picking_attention(std::int64_t picks) {
  model::Attention a = latent_attention(8);
  a.index_heads = 2;
  a.index_dim = 4;
  a.index_picks = picks;
  return a;
}

inline model::FeedForward dense() {
  model::FeedForward f;
  f.width = 24;
  return f;
}

inline model::FeedForward experts() {
  model::FeedForward f;
  f.width = 8;
  f.experts = 4;
  f.experts_per_token = 2;
  return f;
}

inline model::Layer layer(const model::Attention& attention, const model::FeedForward& feed_forward) {
  model::Layer l;
  l.attention = attention;
  l.feed_forward = feed_forward;
  return l;
}

inline model::Transformer model_of(std::initializer_list<model::Layer> layers) {
  model::Transformer m;
  m.id = "small";
  m.d_model = 16;
  m.vocabulary = 32;
  for (const model::Layer& l : layers) m.decoder.add(l);
  return m;
}

struct Variety {
  std::string name;
  model::Transformer model;
};

inline model::StateSpace recurrent(model::StateSpace::Kind kind) {
  model::StateSpace s;
  s.kind = kind;
  s.heads = 4;
  s.key_heads = 2;
  s.key_dim = 4;
  s.inner = 16;
  s.convolution = 2;
  s.convolution_bias = true;
  using enum model::StateSpace::Kind;
  if (kind >= rwkv4) {
    s.convolution = 0;
    s.convolution_bias = false;
  }
  switch (kind) {
    case mamba1:
      s.dt_rank = 2;
      s.inner_norms = true;
      s.output_norm = false;
      break;
    case mamba2:
    case gated_convolution:
      s.projection_bias = true;
      break;
    case gated_delta:
      break;
    case lightning:
      s.key_heads = 4;
      s.convolution = 0;
      break;
    case gated_linear:
      s.key_heads = s.key_dim = 1;
      s.projection_bias = true;
      break;
    case rwkv4:
      s.heads = s.key_heads = s.inner;
      s.key_dim = 1;
      s.output_norm = false;
      break;
    case rwkv5:
    case mlstm:
      s.key_heads = 4;
      break;
    case rwkv7:
      s.key_heads = 4;
      s.decay_rank = s.rate_rank = s.gate_rank = 2;
      break;
  }
  return s;
}

/// Of embeddings, heads and what tokens give to layers; the first one is plain.
inline std::vector<Variety> embedding_varieties() {
  std::vector<Variety> out;
  const model::Layer grouped = layer(grouped_attention(), dense());
  out.push_back({"grouped queries", model_of({grouped, grouped})});
  {
    model::Transformer m = model_of({grouped});
    m.tied = true;
    m.final_norm = false;
    out.push_back({"tied head, no final norm", m});
  }
  {
    model::Transformer m = model_of({grouped});
    m.embedding_width = 8;
    m.tied = true;
    m.learned_positions = 12;
    out.push_back({"narrow embedding, tied", m});
    m.tied = false;
    out.push_back({"narrow embedding and head", m});
  }
  {
    model::Layer near = grouped, far = grouped;
    for (model::Layer* one : {&near, &far}) {
      one->norms = 5;
      one->token_input = 8;
    }
    near.attention->window = 3;
    model::Transformer m = model_of({near, far});
    m.token_input_vocabulary = 32;
    m.tied = true;
    out.push_back({"an input of each layer from the token", m});
  }
  return out;
}

/// Of biases, norms and the order of branches.
inline std::vector<Variety> bias_and_norm_varieties() {
  std::vector<Variety> out;
  const model::Layer grouped = layer(grouped_attention(), dense());
  {
    model::Layer l = grouped, side = grouped, sandwich = grouped;
    for (model::Layer* one : {&l, &side, &sandwich}) {
      model::Attention& a = *one->attention;
      a.q_bias = a.k_bias = a.v_bias = a.o_bias = true;
      one->feed_forward->up_bias = one->feed_forward->down_bias = true;
    }
    side.parallel = true;
    side.norms = 1;
    sandwich.norms = 4;
    model::Transformer m = model_of({l, side, sandwich});
    m.norm = {true, true, true};
    m.learned_positions = 12;
    m.embedding_norm = m.head_bias = true;
    out.push_back({"biases everywhere, learned positions", m});
  }
  {
    model::Layer l = grouped;
    l.parallel = true;
    l.norms = 1;
    l.feed_forward->gated = false;
    model::Transformer m = model_of({l, l});
    m.norm = {true, true, true};
    out.push_back({"parallel layer with layer norm", m});
    l.norms = 2;
    out.push_back({"parallel layer with two norms", model_of({l})});
  }
  {
    model::Layer l = grouped, local = grouped;
    l.norms = local.norms = 4;
    l.attention->qk_norm = local.attention->qk_norm = model::Attention::QkNorm::per_head;
    local.attention->window = 3;
    out.push_back({"sandwich norms, sliding window", model_of({local, l, local})});
  }
  return out;
}

/// Of attention.
inline std::vector<Variety> attention_varieties() {
  std::vector<Variety> out;
  const model::Layer grouped = layer(grouped_attention(), dense());
  {
    model::Layer near = grouped, far = grouped, near_again = grouped, far_again = grouped;
    near.attention->window = near_again.attention->window = 3;
    near.attention->shares_kv_with_later = far.attention->shares_kv_with_later = true;
    near_again.attention->shares_kv = far_again.attention->shares_kv = true;
    near_again.attention->qk_norm = model::Attention::QkNorm::per_head;
    out.push_back({"keys of earlier layers", model_of({grouped, near, far, near_again, far_again, near_again})});
  }
  {
    model::Layer l = grouped;
    l.attention->sinks = true;
    out.push_back({"sinks", model_of({l})});
  }
  {
    model::Layer l = grouped;
    l.attention->kv_heads = 1;
    l.attention->qk_norm = model::Attention::QkNorm::per_head;
    out.push_back({"one head of keys beside two", model_of({l, grouped})});
  }
  {
    model::Layer l = grouped;
    l.attention->qk_norm = model::Attention::QkNorm::whole;
    l.attention->chunk = 4;
    l.attention->output_gate = true;
    out.push_back({"chunks, wide norms of queries and keys, output gate", model_of({l})});
  }
  out.push_back(
      {"latent attention", model_of({layer(latent_attention(8), dense()), layer(latent_attention(8), dense())})});
  out.push_back({"latent attention with experts", model_of({layer(latent_attention(0), experts())})});
  out.push_back(
      {"picked keys", model_of({layer(picking_attention(3), dense()), layer(latent_attention(8), experts())})});
  return out;
}

/// Of experts.
inline std::vector<Variety> expert_varieties() {
  std::vector<Variety> out;
  const model::Layer grouped = layer(grouped_attention(), dense());
  {
    model::FeedForward f = experts();
    f.up_bias = f.down_bias = f.router_bias = true;
    f.shared_width = 8;
    f.shared_gate = true;
    model::Layer l = layer(grouped_attention(), f);
    l.attention->kv_heads = 1;
    l.attention->k_bias = true;
    out.push_back({"experts with biases, a gated shared one", model_of({l})});
  }
  {
    model::FeedForward f = experts();
    f.shared_width = 8;
    out.push_back({"experts beside a shared one", model_of({grouped, layer(grouped_attention(), f)})});
    f.shared_width = 0;
    f.latent = 8;
    out.push_back({"experts in latent dimensions", model_of({layer(grouped_attention(), f)})});
  }
  return out;
}

/// Encoders, alone and with a decoder.
inline std::vector<Variety> encoder_varieties() {
  std::vector<Variety> out;
  const model::Layer grouped = layer(grouped_attention(), dense());
  {
    model::Layer encoder = grouped, decoder = grouped;
    encoder.attention->causal = false;
    encoder.attention->relative_buckets = decoder.attention->relative_buckets = 8;
    decoder.cross_attention = grouped_attention();
    decoder.cross_attention->causal = false;
    decoder.cross_attention->cross = true;
    decoder.norms = 3;
    model::Transformer m = model_of({decoder, decoder});
    m.tied = true;
    m.encoder.emplace();
    m.encoder->add(encoder);
    m.encoder->add(encoder);
    out.push_back({"encoder and decoder, relative positions", m});
    m.tied = m.final_norm = false;
    m.embedding_norm = true;
    m.learned_positions = 8;
    out.push_back({"encoder and decoder, learned positions", m});
  }
  {
    model::Layer l = grouped;
    l.attention->causal = false;
    model::Layer local = l;
    local.attention->window = 5;
    model::Transformer m = model_of({l, local});
    m.norm = {true, true, true};
    m.tied = m.embedding_norm = m.head_bias = m.head_transform = true;
    m.final_norm = false;
    m.learned_positions = 8;
    out.push_back({"an encoder with a transformed head", m});
  }
  return out;
}

/// State spaces and linear attention.
inline std::vector<Variety> recurrent_varieties() {
  using enum model::StateSpace::Kind;
  std::vector<Variety> out;
  const model::Layer grouped = layer(grouped_attention(), dense());
  for (const auto& [name, kind] :
       {std::pair{"mamba 1", mamba1}, std::pair{"mamba 2", mamba2}, std::pair{"gated delta rule", gated_delta},
        std::pair{"lightning", lightning}, std::pair{"gated convolution", gated_convolution},
        std::pair{"gated linear recurrence", gated_linear}}) {
    model::Layer l = grouped;
    l.attention.reset();
    l.state_space = recurrent(kind);
    out.push_back({name, model_of({l, grouped})});
  }
  {
    model::Layer l = grouped;
    l.attention.reset();
    l.state_space = recurrent(gated_delta);
    l.state_space->key_heads = 4;
    l.state_space->gate_rank = 2;
    out.push_back({"gated delta rule, a decay for each dimension of keys", model_of({l, grouped})});
  }
  {
    model::Layer l = grouped;
    l.state_space = recurrent(mamba2);
    out.push_back({"attention beside a state space", model_of({l})});
  }
  {
    model::Layer l;
    l.state_space = recurrent(mlstm);
    l.feed_forward = dense();
    out.push_back({"mlstm", model_of({l})});
  }
  return out;
}

/// RWKV.
inline std::vector<Variety> rwkv_varieties() {
  using enum model::StateSpace::Kind;
  std::vector<Variety> out;
  model::Layer channel_mix;
  channel_mix.feed_forward = model::FeedForward{.width = 24, .gated = false, .shifted = true, .receptance = true};
  const auto add_rwkv = [&](std::string name, std::initializer_list<model::StateSpace> mixers) {
    model::Transformer m = model_of({});
    m.norm = {true, true, true};
    m.embedding_norm = true;
    for (const model::StateSpace& mixer : mixers) {
      channel_mix.state_space = mixer;
      m.decoder.add(channel_mix);
    }
    out.push_back({std::move(name), m});
  };
  add_rwkv("rwkv 4", {recurrent(rwkv4)});
  model::StateSpace dynamic = recurrent(rwkv5);
  dynamic.mix_rank = dynamic.decay_rank = 2;
  add_rwkv("rwkv 5 and 6", {recurrent(rwkv5), dynamic});
  channel_mix.feed_forward->receptance = false;
  model::StateSpace first = recurrent(rwkv7), later = first;
  first.lends_values = true;
  later.value_rank = 2;
  add_rwkv("rwkv 7", {first, later, later});
  return out;
}

/// Layers that share weights.
inline std::vector<Variety> shared_block_varieties() {
  using enum model::StateSpace::Kind;
  std::vector<Variety> out;
  const model::Layer grouped = layer(grouped_attention(), dense());
  {
    model::Layer l = grouped;
    l.shared = model::SharedBlock{};
    model::Transformer m = model_of({l, l, l});
    m.tied = true;
    out.push_back({"layers that share all weights", m});
    l.attention->causal = false;
    model::Layer other = l;
    other.shared->number = 2;
    m = model_of({l, l, other});
    m.norm = {true, true, true};
    m.tied = m.embedding_norm = m.head_bias = m.head_transform = m.narrow_positions = true;
    m.final_norm = false;
    m.learned_positions = 8;
    m.embedding_width = 8;
    out.push_back({"an encoder that shares weights, behind narrow positions", m});
  }
  {
    model::Layer plain, with_block = grouped;
    plain.norms = with_block.norms = 1;
    plain.state_space = with_block.state_space = recurrent(mamba2);
    with_block.attention->head_dim = with_block.attention->value_dim = 8;
    with_block.shared = model::SharedBlock{.number = 1, .aside = true, .attention_rank = 4, .feed_forward_rank = 2};
    model::Layer other_block = with_block;
    other_block.shared->number = 2;
    model::Transformer m = model_of({with_block, plain, other_block, with_block});
    m.tied = true;
    out.push_back({"two blocks aside with adapters", m});
    plain.state_space = with_block.state_space = recurrent(mamba1);
    with_block.shared = model::SharedBlock{.aside = true};
    with_block.feed_forward->up_bias = with_block.feed_forward->down_bias = with_block.attention->o_bias = true;
    with_block.attention->rotary = false;
    m = model_of({plain, with_block, with_block});
    m.norm = {true, true, true};
    out.push_back({"a block aside with biases", m});
  }
  return out;
}

inline std::vector<Variety> all_varieties() {
  std::vector<Variety> all;
  for (const auto& each : {embedding_varieties(), bias_and_norm_varieties(), attention_varieties(), expert_varieties(),
                           encoder_varieties(), recurrent_varieties(), rwkv_varieties(), shared_block_varieties()})
    all.insert(all.end(), each.begin(), each.end());
  return all;
}

}  // namespace assay::testing::small

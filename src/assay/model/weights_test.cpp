#include "assay/model/weights.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "assay/model/accounting.h"

namespace assay::model {
namespace {

Transformer llama_2_7b() {
  Transformer model;
  model.d_model = 4096;
  model.vocabulary = 32000;
  Layer layer;
  layer.attention = Attention{.heads = 32, .kv_heads = 32, .head_dim = 128, .value_dim = 128};
  layer.feed_forward = FeedForward{.width = 11008};
  for (int i = 0; i < 32; ++i) model.decoder.add(layer);
  return model;
}

std::int64_t total(const std::vector<Weight>& weights) {
  std::int64_t sum = 0;
  for (const Weight& weight : weights) sum += weight.elements();
  return sum;
}

std::string names(const std::vector<Weight>& weights) {
  std::string text;
  for (const Weight& weight : weights) text += std::string(weight.name) + " ";
  return text;
}

const Weight& named(const std::vector<Weight>& weights, std::string_view name) {
  return *std::find_if(weights.begin(), weights.end(), [&](const Weight& weight) { return weight.name == name; });
}

std::string dims(const Weight& weight) {
  std::string text;
  for (std::size_t i = 0; i < weight.rank; ++i)
    text += std::string(letter(weight.dims[i].dim)) + std::to_string(weight.dims[i].size) + " ";
  return text;
}

TEST(LayerStack, EqualLayersShareAKind) {
  LayerStack stack;
  Layer sliding, full;
  sliding.attention = Attention{.window = 1024};
  full.attention = Attention{};
  for (int i = 0; i < 6; ++i) stack.add(i % 3 == 2 ? full : sliding);
  EXPECT_EQ(stack.kinds.size(), 2U);
  EXPECT_EQ(stack.count(0), 4);
  EXPECT_EQ(stack.count(1), 2);
  EXPECT_EQ(stack.layers(), 6);
}

TEST(Weights, ADenseLayerInTheOrderOfItsUse) {
  const Transformer model = llama_2_7b();
  const auto weights = layer_weights(model, model.decoder.kinds[0]);
  EXPECT_EQ(names(weights), "norm W_q W_k W_v W_o norm W_in W_gate W_out ");
  EXPECT_EQ(dims(named(weights, "W_q")), "D4096 N32 H128 ");
  EXPECT_EQ(dims(named(weights, "W_k")), "D4096 K32 H128 ");
  EXPECT_EQ(dims(named(weights, "W_o")), "N32 H128 D4096 ");
  EXPECT_EQ(dims(named(weights, "W_out")), "F11008 D4096 ");
}

// 4 x 4096^2 + 3 x 4096 x 11008 + 2 x 4096 = 202,383,360 a layer; 32 of them, two tables of 32000 x 4096, one norm.
TEST(Weights, Llama2SevenBillionIsExact) {
  const Transformer model = llama_2_7b();
  EXPECT_EQ(total(layer_weights(model, model.decoder.kinds[0])), 202'383'360);
  EXPECT_EQ(32 * total(layer_weights(model, model.decoder.kinds[0])) + total(outer_weights(model)), 6'738'415'616);
}

TEST(Weights, ATiedHeadHasNoWeight) {
  Transformer model = llama_2_7b();
  const std::int64_t untied = total(outer_weights(model));
  model.tied = true;
  EXPECT_EQ(untied - total(outer_weights(model)), 32000 * 4096);
}

// DeepSeek V3's attention: 7168 x 1536 + 1536 + 1536 x 128 x 192 + 7168 x 576 + 512 + 512 x 128 x 256 + 128 x 128 x
// 7168 = 187,107,328.
TEST(Weights, LatentAttentionGoesThroughItsRanks) {
  Transformer model;
  model.d_model = 7168;
  Layer layer;
  layer.attention = Attention{
      .heads = 128, .kv_heads = 128, .head_dim = 192, .value_dim = 128, .q_rank = 1536, .kv_rank = 512, .rope_dim = 64};
  layer.norms = 0;
  const auto weights = layer_weights(model, layer);
  EXPECT_EQ(names(weights), "W_qa qa_norm W_qb W_kva kva_norm W_kvb W_o ");
  EXPECT_EQ(total(weights), 187'107'328);
}

TEST(Weights, ExpertsRouterAndSharedExpertsAreApart) {
  Transformer model;
  model.d_model = 64;
  Layer layer;
  layer.feed_forward = FeedForward{
      .width = 16, .experts = 8, .experts_per_token = 2, .shared_width = 32, .shared_gate = true, .router_bias = true};
  layer.norms = 1;
  const auto weights = layer_weights(model, layer);
  std::int64_t by_part[part_count] = {};
  for (const Weight& weight : weights) by_part[static_cast<std::size_t>(weight.part)] += weight.elements();
  EXPECT_EQ(by_part[static_cast<std::size_t>(Part::experts)], 8 * 3 * 64 * 16);
  EXPECT_EQ(by_part[static_cast<std::size_t>(Part::shared_experts)], 3 * 64 * 32 + 64);
  EXPECT_EQ(by_part[static_cast<std::size_t>(Part::router)], 64 * 8 + 8);
  EXPECT_EQ(dims(named(weights, "W_out")), "E8 F16 D64 ");
}

TEST(Weights, ASandwichOfFourNormsStandsAroundBothBlocks) {
  Transformer model = llama_2_7b();
  Layer layer = model.decoder.kinds[0];
  layer.norms = 4;
  EXPECT_EQ(names(layer_weights(model, layer)), "norm W_q W_k W_v W_o norm norm W_in W_gate W_out norm ");
}

TEST(Weights, AParallelLayerHasItsNormsFirst) {
  Transformer model = llama_2_7b();
  Layer layer = model.decoder.kinds[0];
  layer.parallel = true;
  EXPECT_EQ(names(layer_weights(model, layer)), "norm norm W_q W_k W_v W_o W_in W_gate W_out ");
  layer.norms = 1;
  EXPECT_EQ(names(layer_weights(model, layer)), "norm W_q W_k W_v W_o W_in W_gate W_out ");
}

TEST(Weights, BiasesAreNoMatrices) {
  Transformer model = llama_2_7b();
  model.norm = {.scale = true, .bias = true, .mean = true};
  Layer layer = model.decoder.kinds[0];
  layer.attention->q_bias = layer.attention->o_bias = true;
  layer.feed_forward->gated = false;
  layer.feed_forward->up_bias = layer.feed_forward->down_bias = true;
  const auto weights = layer_weights(model, layer);
  EXPECT_EQ(names(weights), "norm b_norm W_q b_q W_k W_v W_o b_o norm b_norm W_in b_in W_out b_out ");
  for (const Weight& weight : weights) EXPECT_EQ(weight.matrix, weight.name.starts_with("W_")) << weight.name;
}

TEST(Weights, KeysOfAnEarlierLayerNeedNoProjection) {
  Transformer model = llama_2_7b();
  Layer layer = model.decoder.kinds[0];
  layer.attention->shares_kv = true;
  layer.attention->qk_norm = Attention::QkNorm::per_head;
  EXPECT_EQ(names(layer_weights(model, layer)), "norm W_q q_norm W_o norm W_in W_gate W_out ");
}

// Mamba 2.8B: 2 x 2560 x 5120 + 5120 x (160 + 32) + 160 x 5120 + 5120 x 2560 + 5120 x (5 + 1 + 16 + 1) + norm 2560.
TEST(Weights, AMambaLayer) {
  Transformer model;
  model.d_model = 2560;
  Layer layer;
  layer.state_space = StateSpace{.kind = StateSpace::Kind::mamba1,
                                 .inner = 5120,
                                 .key_dim = 16,
                                 .convolution = 4,
                                 .dt_rank = 160,
                                 .convolution_bias = true};
  layer.norms = 1;
  EXPECT_EQ(total(layer_weights(model, layer)), 3 * 2560 * 5120 + 5120 * 192 + 160 * 5120 + 5120 * 23 + 2560);
}

TEST(Weights, EveryStateSpaceHasItsProjections) {
  Transformer model;
  model.d_model = 32;
  Layer layer;
  layer.norms = 0;
  const auto count = [&](StateSpace s) {
    layer.state_space = s;
    return total(layer_weights(model, layer));
  };
  // in 2 x 64 + 2 x 2 x 16 + 4 columns, convolution of 4 and bias over 64 + 64, three scalars a head, norm, out
  EXPECT_EQ(count({.kind = StateSpace::Kind::mamba2,
                   .inner = 64,
                   .heads = 4,
                   .key_heads = 2,
                   .key_dim = 16,
                   .convolution = 4,
                   .convolution_bias = true}),
            32 * 196 + 5 * 128 + 12 + 64 + 64 * 32);
  // q, k of 2 x 16, v and gate of 64, beta and alpha of 4; convolution of 4 over 128; two scalars a head; norm 16; out
  EXPECT_EQ(count({.kind = StateSpace::Kind::gated_delta,
                   .inner = 64,
                   .heads = 4,
                   .key_heads = 2,
                   .key_dim = 16,
                   .convolution = 4}),
            32 * (64 + 128 + 8) + 4 * 128 + 8 + 16 + 64 * 32);
  // The same with 4 heads of keys, and gate and a decay for each dimension of keys through a rank of 8.
  EXPECT_EQ(count({.kind = StateSpace::Kind::gated_delta,
                   .inner = 64,
                   .heads = 4,
                   .key_heads = 4,
                   .key_dim = 16,
                   .convolution = 4,
                   .gate_rank = 8}),
            32 * (128 + 64 + 4) + 2 * 8 * (32 + 64) + 4 * 192 + 64 + 4 + 16 + 64 * 32);
  // Values and two gates of 64, a convolution of 3, out
  EXPECT_EQ(count({.kind = StateSpace::Kind::gated_convolution, .inner = 64, .convolution = 3}),
            32 * 3 * 64 + 3 * 64 + 64 * 32);
  // Values and gate of 64, a convolution of 4; two gates in 4 blocks of 16 x 16 with biases; a decay a channel; out
  EXPECT_EQ(count({.kind = StateSpace::Kind::gated_linear, .inner = 64, .heads = 4, .convolution = 4}),
            32 * 2 * 64 + 4 * 64 + 2 * (4 * 16 * 16 + 64) + 64 + 64 * 32);
  // Three mixtures; r, k and v of 64, a decay and a bonus a channel; out
  EXPECT_EQ(count({.kind = StateSpace::Kind::rwkv4, .inner = 64}), 3 * 32 + 32 * 3 * 64 + 2 * 64 + 64 * 32);
  // Four mixtures; r, k, v and gate of 64, decay, bonus, a norm with its bias; out
  EXPECT_EQ(count({.kind = StateSpace::Kind::rwkv5, .inner = 64, .heads = 4, .key_dim = 16}),
            4 * 32 + 32 * 4 * 64 + 4 * 64 + 64 * 32);
  // The same with two mixtures more, five of them through a rank of 8, and the decay through a rank of 2.
  EXPECT_EQ(
      count({.kind = StateSpace::Kind::rwkv5, .inner = 64, .heads = 4, .key_dim = 16, .decay_rank = 2, .mix_rank = 8}),
      6 * 32 + 2 * 5 * 8 * 32 + 2 * (32 + 64) + 32 * 4 * 64 + 4 * 64 + 64 * 32);
  // Six mixtures; r, k and v of 64; decay, rate, gate and values through ranks of 1, 2, 3 and 4, three with a bias;
  // three scales of keys, a norm with its bias; out
  EXPECT_EQ(count({.kind = StateSpace::Kind::rwkv7,
                   .inner = 64,
                   .heads = 4,
                   .key_dim = 16,
                   .gate_rank = 3,
                   .decay_rank = 1,
                   .rate_rank = 2,
                   .value_rank = 4}),
            6 * 32 + 32 * 3 * 64 + 10 * (32 + 64) + 3 * 64 + 5 * 64 + 64 * 32);
  // q and k of 4 x 8, v and gate of 64, two gates of a head with biases, norm, out
  EXPECT_EQ(count({.kind = StateSpace::Kind::mlstm, .inner = 64, .heads = 4, .key_dim = 8}),
            32 * (2 * 32 + 2 * 64 + 2 * 4) + 2 * 4 + 64 + 64 * 32);
  // q, k, v and gate of 64, norm, out
  EXPECT_EQ(count({.kind = StateSpace::Kind::lightning, .inner = 64, .heads = 4, .key_dim = 16}),
            32 * 256 + 64 + 64 * 32);
}

TEST(Weights, BothStacksOfAnEncoderDecoderEndInANorm) {
  Transformer model = llama_2_7b();
  const std::int64_t alone = total(outer_weights(model));
  model.encoder = model.decoder;
  EXPECT_EQ(total(outer_weights(model)) - alone, 4096);
}

// DeepSeek V4 in small, by hand. Attention: queries 8 x 3 + 3 + 3 x 4 x 6, keys 8 x 6 + 6, pooling 2 x 8 x 12 + 4 x 12
// + 6, the index 3 x 2 x 4 + 8 x 2 and its pooling 2 x 8 x 8 + 4 x 8 + 4, sinks 4, results 2 x 12 x 5 + 2 x 5 x 8.
TEST(Weights, OfCompressedAttentionAndSeveralStreams) {
  Attention a{.heads = 4, .kv_heads = 1, .head_dim = 6, .value_dim = 6, .q_rank = 3, .window = 2};
  a.qk_norm = Attention::QkNorm::keys;
  a.sinks = a.values_are_keys = a.one_cache = a.overlapping = true;
  a.compression = 4;
  a.index_heads = 2;
  a.index_dim = 4;
  a.index_picks = 1;
  a.output_groups = 2;
  a.output_rank = 5;
  Layer layer;
  layer.attention = a;
  layer.feed_forward = FeedForward{.width = 7};
  Transformer model;
  model.d_model = 8;
  model.streams = 2;
  model.decoder.add(layer);
  const ParameterCounts counts = layer_parameter_counts(model, layer);
  EXPECT_EQ(counts.of(Part::attention), 99 + 54 + 246 + 40 + 164 + 4 + 200);
  EXPECT_EQ(counts.of(Part::streams), 2 * (2 * 8 * 8 + 8 + 3));  // around each block: 8 = (2 + 2) x 2 weights
  EXPECT_EQ(counts.of(Part::mlp), 3 * 8 * 7);
  EXPECT_EQ(counts.of(Part::norm), 2 * 8);
}

}  // namespace
}  // namespace assay::model

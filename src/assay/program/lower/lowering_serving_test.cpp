// Serving steps against numbers worked out by hand: caches, latent and picked keys, quantised weights.
#include <gtest/gtest.h>

#include <span>

#include "assay/model/accounting.h"
#include "assay/testing/small_models.h"

namespace assay::lower {
namespace {

using namespace testing::by_hand;

/// Latent attention over 8 keys that an index of two heads picks.
model::Transformer small_picking() {
  model::Transformer m = small_llama();
  m.decoder = {};
  model::Layer l = small_llama().decoder.kinds[0];
  model::Attention& a = *l.attention;
  a = {};
  a.heads = a.kv_heads = 4;
  a.head_dim = 24;
  a.rope_dim = 8;
  a.value_dim = 16;
  a.kv_rank = 32;
  a.q_rank = 48;
  a.index_heads = 2;
  a.index_dim = 16;
  a.index_picks = 8;
  m.decoder.add(l);
  return m;
}

TEST(PickedKeys, FlopByHand) {
  const model::Transformer m = small_picking();
  TrainingPlan plan;
  plan.work.sequences = 2;
  plan.work.queries = plan.work.keys = 32;
  const program::Program program = train({}, plan, m);
  double picked = 0, attended = 0;
  for (std::int32_t i = program.blocks[1].first; i < program.blocks[1].last; ++i) {
    const program::Step& step = program.steps[static_cast<std::size_t>(i)];
    if (step.op == program::Op::pick) picked += step.flops.value();
    if (step.op == program::Op::attention) attended += step.flops.value();
  }
  // The first eight of 32 queries see 1 to 8 keys, the others 8: (36 + 24 x 8) / 32 = 7.125 on average, of 16.5.
  EXPECT_DOUBLE_EQ(attended, 2.0 * (2 * 32 * 4) * 7.125 * (24 + 16));
  EXPECT_DOUBLE_EQ(picked, 2.0 * (2 * 32) * 16.5 * 2 * (16 + 1));
  EXPECT_DOUBLE_EQ(attended + picked, 64 * model::token_flops(Plain{}, m, 32).attention.value());
}

TEST(PickedKeys, DecodingReadsThePickedLatentsAndTheKeysOfTheIndex) {
  const model::Transformer m = small_picking();
  Workload work;
  work.sequences = 2;
  work.queries = 1;
  work.keys = 32;
  work.cached = true;
  const auto [mesh, rules] = serving_stage({}, {}, m);
  const program::Program program = lower_serving(m, mesh, rules, work, {});
  double cached = 0;
  for (const program::Step& step : program.steps) {
    if (step.op == program::Op::pick)  // queries, keys and weights in bf16, numbers of keys in int32, scores in fp32
                                       // there and back
      EXPECT_DOUBLE_EQ(step.bytes.value(), 2 * (2 * (2 * 16 + 32 * 16 + 2) + 4 * 8 + 2 * 4 * 32));
    if (step.op ==
        program::Op::attention)  // queries and results in latent form, sums in fp32, numbers of keys, eight latents
      EXPECT_DOUBLE_EQ(step.bytes.value(), 2 * (2 * 4 * (40 + 32) + 4 * 4 + 4 * 8 + 2 * 8 * 40));
    for (int id : step.in)
      if (id >= 0 && program.tensor(id).is_given && program.tensor(id).tensor_class == program::TensorClass::key_value)
        if (step.op == program::Op::cast) cached += program::local_bytes(program, program.tensor(id)).value();
  }
  EXPECT_DOUBLE_EQ(cached, 2.0 * 2 * static_cast<double>(model::kv_values_per_sequence(m, 32)));
}

TEST(Lowering, AFewTokensReduceNoMoreThanThemselves) {
  // One token at two of eight experts: eight slots, of which one sum of one row leaves.
  const Parallelism p{.tensor = 4};
  const Workload work{.sequences = 1, .queries = 1, .keys = 64, .cached = true};
  const program::Program program = lower_serving(small_experts(), stage_mesh(p), serving_rules(p, {}), work, Formats{});
  EXPECT_EQ(traffic(program, block(program, "layer", program::Phase::forward), program::Collective::all_reduce).bytes,
            2 * 2 * 0.75 * d_model * 2);
}

TEST(Lowering, DecodingReadsWeightsAndCachesOnce) {
  const Workload work{.sequences = 8, .queries = 1, .keys = 1024, .cached = true};
  const program::Program program = lower_serving(small_llama(), {}, {}, work, Formats{});
  const program::Block& layer = block(program, "layer", program::Phase::forward);
  double weights = 0;
  for (const program::ProgramTensor& tensor : program.tensors)
    if (tensor.is_given && tensor.tensor_class == program::TensorClass::weight && tensor.name != "embedding" &&
        tensor.name != "W_head")
      weights += program::local_elements(program, tensor);
  EXPECT_EQ(weights, layer_weights_count);
  const double cache = 8 * 1024 * 2 * n_kv * head;
  // Activations of 8 tokens are small compared with both.
  EXPECT_LT(program::count(program, layer).memory, Bytes(1.03 * 2 * (layer_weights_count + cache)));
  EXPECT_GT(program::count(program, layer).memory, Bytes(2 * (layer_weights_count + cache)));
}

// States of 16 channels in 4 heads, in fp32: 8 numbers for each; one; a numerator, a denominator and the largest
// exponent; 8 for each, and for each head 8 of a normaliser and the largest exponent.
TEST(Lowering, DecodingReadsAndWritesStates) {
  const auto state_of = [](const model::StateSpace& s) {
    model::Transformer m = small_llama();
    model::Layer l = m.decoder.kinds[0];
    l.attention.reset();
    l.state_space = s;
    m.decoder = {};
    m.decoder.add(l);
    const Workload work{.sequences = 2, .queries = 1, .keys = 64, .cached = true};
    const program::Program program = lower_serving(m, {}, {}, work, Formats{});
    for (const program::Step& step : program.steps) {
      if (step.op != program::Op::scan) continue;
      double rest = step.bytes.value();
      for (const auto& ids : {std::span<const std::int16_t>(step.in), {step.out}})
        for (int id : ids)
          if (id >= 0) rest -= program::local_bytes(program, program.tensor(id)).value();
      return rest;
    }
    return 0.0;
  };
  using enum model::StateSpace::Kind;
  constexpr double there_and_back = 2 * 2 * fp32;
  const auto mixer = [](model::StateSpace::Kind kind, std::int64_t head_count, std::int64_t key_dim) {
    model::StateSpace s;
    s.kind = kind;
    s.inner = 16;
    s.heads = s.key_heads = head_count;
    s.key_dim = key_dim;
    return s;
  };
  EXPECT_EQ(state_of(mixer(mamba2, 4, 8)), there_and_back * 16 * 8);
  EXPECT_EQ(state_of(mixer(gated_linear, 4, 1)), there_and_back * 16);
  EXPECT_EQ(state_of(mixer(rwkv4, 16, 1)), there_and_back * 3 * 16);
  EXPECT_EQ(state_of(mixer(mlstm, 4, 8)), there_and_back * (16 * 8 + 4 * 9));
}

// Keys and values of what the encoder made: two products of D x (N H) in the first step, none later.
TEST(Lowering, DecodingReadsWhatTheEncoderMadeFromACache) {
  model::Transformer m = small_llama();
  m.decoder = {};
  m.encoder.emplace();
  model::Layer l = small_llama().decoder.kinds[0];
  m.encoder->add(l);
  l.cross_attention = l.attention;
  l.cross_attention->cross = true;
  l.cross_attention->causal = false;
  l.norms = 3;
  m.decoder.add(l);
  const auto projections = [&](std::int64_t queries, std::int64_t keys) {
    const Workload work{.sequences = 2, .queries = queries, .keys = keys, .cached = true, .source = 256};
    const program::Program program = lower_serving(m, {}, {}, work, Formats{});
    int found = 0;
    for (const program::Step& step : program.steps)
      if (step.op == program::Op::product)
        found += program.tensor(step.in[1]).name == "W_ck" || program.tensor(step.in[1]).name == "W_cv";
    return found;
  };
  EXPECT_EQ(projections(256, 256), 2);
  EXPECT_EQ(projections(1, 257), 0);
}

// Matrices of experts in 4.25 bits, the rest in 16: what a step reads of them, and nothing else changes.
TEST(Lowering, QuantisedWeightsBringTheirScales) {
  const model::Transformer m = small_experts();
  Formats formats;
  formats.quantised = model::linear_layers(NumberFormat(Dtype::fp4, 8, 32));
  formats.quantised->parts = 0;
  formats.quantised->add(model::Part::experts);
  const Workload work{.sequences = 64, .queries = 1, .keys = 256, .cached = true};
  const program::Program program = lower_serving(m, {}, {}, work, formats);
  for (const program::ProgramTensor& tensor : program.tensors) {
    if (tensor.tensor_class != program::TensorClass::weight) continue;
    const bool expert = tensor.find(model::LogicalDim::experts) >= 0;
    EXPECT_DOUBLE_EQ(program::local_bytes(program, tensor).value(),
                     program::local_elements(program, tensor) * (expert ? 4.25 : 16) / 8)
        << tensor.name;
  }
  for (const program::Step& step : program.steps)  // weights alone: activations stay as they are
    if (step.op == program::Op::product) EXPECT_EQ(program.tensor(step.in[0]).dtype, Dtype::bf16);
}

TEST(Lowering, LatentDecodingNeverExpandsItsCache) {
  // DeepSeek V3: 128 heads, latent 512 + 64 of position.
  model::Transformer m = small_llama();
  m.decoder = {};
  model::Layer l;
  model::Attention a;
  a.heads = a.kv_heads = 128;
  a.head_dim = 192;
  a.value_dim = 128;
  a.q_rank = 1536;
  a.kv_rank = 512;
  a.rope_dim = 64;
  l.attention = a;
  l.feed_forward = model::FeedForward{};
  m.decoder.add(l);
  const auto attention = [&](std::int64_t queries) {
    const Workload work{.sequences = 1, .queries = queries, .keys = 4096, .cached = true};
    const program::Program program = lower_serving(m, {}, {}, work, Formats{});
    const program::Block& forward = block(program, "layer", program::Phase::forward);
    for (std::int32_t i = forward.first; i < forward.last; ++i)
      if (program.steps[static_cast<std::size_t>(i)].op == program::Op::attention)
        return program.steps[static_cast<std::size_t>(i)];
    throw InternalError("no attention");
  };
  // One query: 128 heads x 4096 keys x (576 + 512) products; reads the cache of 576 numbers per token once.
  EXPECT_EQ(attention(1).flops, Flops(2.0 * 128 * 4096 * (576 + 512)));
  EXPECT_NEAR(attention(1).bytes.value(), 2.0 * 4096 * 576, 0.1 * 2.0 * 4096 * 576);
  // Many queries: expanding pays off.
  EXPECT_EQ(attention(512).flops, Flops(2.0 * 128 * 512 * (4096 - 512 + 513 / 2.0) * (192 + 128)));
}

}  // namespace
}  // namespace assay::lower

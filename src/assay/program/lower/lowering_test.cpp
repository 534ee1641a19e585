// FLOP of programs against numbers worked out by hand, and laws that hold for all of them. That programs compute the
// right thing is tested in engine/.
#include "assay/program/lower/lowering.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "assay/model/accounting.h"
#include "assay/model/model_catalogue.h"
#include "assay/program/form/elementwise.h"
#include "assay/testing/small_models.h"

namespace assay::lower {
namespace {

using namespace testing::by_hand;

TEST(Elementwise, OfASmallLlamaByHand) {
  const program::Program program = train({});
  // Per token and layer: two norms 4 D, rotations 3 (N + K) H, 5 for each of N S scores and D quotients, a gated
  // activation 2 F, two sums D: 4,096 + 2,304 + 10,752 + 3,072 + 1,024. The loss: 4 V + 2.
  const double forward = layers * 21'248 + 16'386;
  EXPECT_DOUBLE_EQ(program::elementwise_flops(program, program::Phase::forward).value(), tokens * forward);
  // Norms 9 D each, rotations again, 3 for each score and 2 D, 5 F, two sums D where gradients meet:
  // 9,216 + 2,304 + 7,168 + 7,680 + 1,024. The loss 3 V, and a row of the embedding.
  const double backward = layers * 27'392 + 12'288 + 512;
  EXPECT_DOUBLE_EQ(program::elementwise_flops(program, program::Phase::backward).value(), tokens * backward);
}

TEST(Elementwise, DevicesThatShareTokensShareTheWork) {
  for (const model::Transformer& model : {small_llama(), small_experts()}) {
    const program::Program one = train({}, plain_plan(), model), four = train({.fsdp = 4}, plain_plan(), model);
    for (program::Phase phase : {program::Phase::forward, program::Phase::backward})
      EXPECT_DOUBLE_EQ(4.0 * program::elementwise_flops(four, phase).value(),
                       program::elementwise_flops(one, phase).value());
  }
}

TEST(Lowering, TrainingCostsSixFlopPerWeightAndTokenAndTwelvePerScore) {
  // Products: 2 FLOP per weight and token forward, 4 backward; the embedding is looked up.
  // Attention: QK and PV are 2 x 2 B S T N H forward, twice that backward.
  const program::ProgramCount sum = program::count(train({}));
  const double products = 6 * tokens * (layers * layer_matrices + table);
  const double attention = 12 * batch * length * length * n_heads * head * layers;
  EXPECT_EQ(sum.product_flops, Flops(products));
  EXPECT_EQ(sum.attention_flops, Flops(attention));
  EXPECT_EQ(sum.flops, Flops(products + attention));
}

TEST(Lowering, NarrowEmbeddingsAndInputsFromTheTokenAreProductsToo) {
  model::Transformer m = small_llama();
  m.embedding_width = 128;
  m.tied = true;
  const double narrow = 2 * 128 * d_model + vocabulary * 128;  // in, out, and the head
  EXPECT_EQ(program::count(train({}, plain_plan(), m)).product_flops,
            Flops(6 * tokens * (layers * layer_matrices + narrow)));
  m = small_llama();
  m.token_input_vocabulary = 1024;
  m.decoder.kinds[0].token_input = 32;
  m.decoder.kinds[0].norms = 3;
  // Every layer has a gate and a way back, and its part of the projected embedding.
  const double inputs = layers * 3 * 32 * d_model;
  const program::Program program = train({}, plain_plan(), m);
  EXPECT_EQ(program::count(program).product_flops, Flops(6 * tokens * (layers * layer_matrices + table + inputs)));
  // One row of each table per token is read, and written.
  const program::Block& embedding = block(program, "embedding", program::Phase::forward);
  double looked_up = 0;
  for (std::int32_t i = embedding.first; i < embedding.last; ++i)
    if (const program::Step& step = program.steps[static_cast<std::size_t>(i)]; step.op == program::Op::embed)
      looked_up += step.bytes.value();
  EXPECT_EQ(looked_up, tokens * fp32 * (2 + 2 * (d_model + layers * 32)));
}

TEST(Lowering, CausalFlashAttentionDoesHalfOfTheScoresAndMakesThemAgain) {
  TrainingPlan plan = plain_plan();
  plan.work.flash = plan.work.causal_flops = true;
  // (S + 1) / 2 keys per query on average; 2 products forward, 5 backward.
  const double scores = batch * n_heads * length * (length + 1) / 2;
  EXPECT_EQ(program::count(train({}, plan)).attention_flops, Flops(7 * 2 * scores * head * layers));
}

// Without flash attention, which makes scores twice, a program does what the accounting of models says, state spaces
// and convolutions among it.
TEST(Lowering, ProgramsDoTheFlopThatModelsCount) {
  for (const char* id :
       {"llama-3-8b", "jamba-v0.1", "mamba-codestral-7b", "qwen3-next-80b-a3b", "minimax-text-01", "nemotron-h-8b",
        "lfm2-1.2b", "recurrentgemma-2b", "kimi-linear-48b-a3b", "llama-3.2-11b-vision", "apertus-8b", "rwkv-4-3b",
        "rwkv-6-1.6b", "rwkv-7-1.5b", "xlstm-7b", "zamba-7b", "zamba2-1.2b", "zamba2-7b"}) {
    const model::ImportedModel imported = *model::load_model(id, hardware::Catalogue::builtin(), "test");
    TrainingPlan plan = plain_plan();
    for (const model::Layer& layer : imported.model.decoder.kinds)  // all experts have equally many tokens
      if (layer.feed_forward) plan.work.sequences = std::max(plan.work.sequences, layer.feed_forward->experts);
    const double each = program::count(train({}, plan, imported.model)).flops.value() / plan.work.tokens();
    const double counted =
        model::token_flops(Plain{}, imported.model, plan.work.queries, model::MaskCount::full).train.value();
    EXPECT_NEAR(each / counted, 1.0, 1e-12) << id;
  }
}

std::vector<Parallelism> meshes() {
  using enum ResidualScheme;
  return {{.data = 8},
          {.fsdp = 8},
          {.tensor = 4},
          {.data = 2, .zero = 3},
          {.data = 2, .fsdp = 2, .tensor = 2, .zero = 1},
          {.fsdp = 4, .tensor = 4, .residual = sequence},
          {.fsdp = 2, .tensor = 2, .residual = model},
          {.context = 4},
          {.fsdp = 2, .tensor = 2, .context = 2},
          {.context = 4, .context_scheme = ContextScheme::exchange}};
}

TEST(Lowering, AMeshOfOneDeviceHasNoCollectives) {
  for (const model::Transformer& m : {small_llama(), small_experts()})
    for (const program::Step& step : train({}, plain_plan(), m).steps)
      EXPECT_FALSE(program::is_collective(step.op) || step.op == program::Op::slice);
}

TEST(Lowering, ShardingDividesTheWork) {
  const double one = program::count(train({})).flops.value();
  for (const Parallelism& p : meshes())
    EXPECT_DOUBLE_EQ(program::count(train(p)).flops.value() * static_cast<double>(p.devices()), one)
        << program::mesh_text(stage_mesh(p));
}

// Keys that several heads share are split with them where groups divide, and repeated where they do not.
TEST(Lowering, TensorParallelismSplitsTheKeysOfStateSpaces) {
  for (const auto& [id, ways] : {std::pair{"mamba-codestral-7b", 8}, std::pair{"qwen3-next-80b-a3b", 2},
                                 std::pair{"kimi-linear-48b-a3b", 8}, std::pair{"nemotron-h-8b", 8}}) {
    const model::Transformer model = model::load_model(id, hardware::Catalogue::builtin(), "test")->model;
    const std::vector<model::Weight> weights = model::layer_weights(
        model, *std::find_if(model.decoder.kinds.begin(), model.decoder.kinds.end(),
                             [](const model::Layer& layer) { return layer.state_space.has_value(); }));
    Parallelism p;
    p.tensor = ways;
    const StageRules stage = training_stage(p, model);
    const program::Program program = lower_training(model, stage.mesh, stage.rules, plain_plan());
    for (const model::Weight& weight : weights)
      if (weight.name == "W_B" || weight.name == "W_C" || weight.name == "W_q" || weight.name == "W_k")
        EXPECT_DOUBLE_EQ(local_elements(stage.rules, program, program::TensorClass::weight, weight) * ways,
                         static_cast<double>(weight.elements()))
            << id << ' ' << weight.name;
  }
}

TEST(Lowering, RoutersAreTheOnlyWorkThatTensorParallelismRepeats) {
  TrainingPlan plan = plain_plan();
  const double one = program::count(train({}, plan, small_experts())).flops.value();
  const double router = 6 * tokens * d_model * 8 * layers;
  for (const Parallelism& p :
       std::vector<Parallelism>{{.fsdp = 8, .expert = 8}, {.fsdp = 4, .expert = 2}, {.data = 4, .expert = 4}})
    EXPECT_DOUBLE_EQ(program::count(train(p, plan, small_experts())).flops.value() * static_cast<double>(p.devices()),
                     one);
  const Parallelism both{.fsdp = 2, .tensor = 2, .expert = 2};
  EXPECT_DOUBLE_EQ(program::count(train(both, plan, small_experts())).flops.value() * 4, one + router);
  Parallelism split = both;
  split.residual = ResidualScheme::sequence;
  EXPECT_DOUBLE_EQ(program::count(train(split, plan, small_experts())).flops.value() * 4, one);
}

TEST(Lowering, PartsSumToTheWhole) {
  for (const Parallelism& p : meshes()) {
    const program::Program program = train(p);
    program::ProgramCount sum;
    for (const program::Block& b : program.blocks) {
      const program::ProgramCount part = program::count(program, b);
      const auto times = static_cast<double>(b.layers);
      sum.flops += times * part.flops;
      sum.memory += times * part.memory;
      sum.network += times * part.network;
    }
    EXPECT_EQ(sum.flops, program::count(program).flops);
    EXPECT_DOUBLE_EQ(sum.memory.value(), program::count(program).memory.value());
    EXPECT_DOUBLE_EQ(sum.network.value(), program::count(program).network.value());
  }
}

TEST(Lowering, MicrobatchesDoNotChangeTheWork) {
  for (const Parallelism& p : meshes()) {
    TrainingPlan plan = plain_plan();
    plan.work.sequences = 8;
    plan.microbatches = 4;
    EXPECT_DOUBLE_EQ(program::count(train(p, plan)).flops.value(), program::count(train(p)).flops.value());
  }
}

TEST(Lowering, DeepModelsHaveNoMoreSteps) {
  model::Transformer deep = small_llama();
  for (int i = 0; i < 100; ++i) deep.decoder.add(deep.decoder.kinds[0]);
  const program::Program two = train({.fsdp = 8}), many = train({.fsdp = 8}, plain_plan(), deep);
  EXPECT_EQ(two.steps.size(), many.steps.size());
  EXPECT_EQ(program::count(two, block(two, "layer", program::Phase::backward)).flops,
            program::count(many, block(many, "layer", program::Phase::backward)).flops);
  EXPECT_EQ(block(many, "layer", program::Phase::forward).layers, 102);
}

RC_GTEST_PROP(Lowering, EveryInputStandsBeforeItsUse, ()) {
  Parallelism p;
  p.data = std::int64_t{1} << *rc::gen::inRange(0, 3);
  p.fsdp = std::int64_t{1} << *rc::gen::inRange(0, 3);
  p.tensor = std::int64_t{1} << *rc::gen::inRange(0, 3);
  p.context = std::int64_t{1} << *rc::gen::inRange(0, 2);
  p.zero = *rc::gen::inRange(0, 4);
  p.residual = *rc::gen::element(ResidualScheme::replicated, ResidualScheme::sequence, ResidualScheme::model);
  TrainingPlan plan = plain_plan();
  plan.recompute = *rc::gen::element(Recompute::none(), Recompute::selective(), Recompute::full());
  const bool with_experts = *rc::gen::arbitrary<bool>();
  if (with_experts) p.expert = p.data * p.fsdp;
  const program::Program program = train(p, plan, with_experts ? small_experts() : small_llama());
  std::vector<char> made(program.tensors.size(), 0);
  for (const program::Step& step : program.steps) {
    for (int id : step.in)
      if (id >= 0) RC_ASSERT(made[static_cast<std::size_t>(id)] || program.tensor(id).is_given);
    for (int id : step.out)
      if (id >= 0) made[static_cast<std::size_t>(id)] = 1;
    RC_ASSERT(step.bytes >= Bytes(0));
    RC_ASSERT(step.flops >= Flops(0));
  }
}

TEST(Lowering, WhatHasNoProgramYetIsNamed) {
  model::Transformer model = small_llama();
  EXPECT_TRUE(check_lowers(model, "MODEL"));
  model.decoder.kinds[0].attention->compression = 4;
  const auto refused = check_lowers(model, "MODEL");
  ASSERT_FALSE(refused);
  EXPECT_NE(refused.error().what.find("compressed keys"), std::string::npos);
  model.decoder.kinds[0].attention->compression = 0;
  model.streams = 4;
  EXPECT_NE(check_lowers(model, "MODEL").error().what.find("residual streams"), std::string::npos);
}

}  // namespace
}  // namespace assay::lower

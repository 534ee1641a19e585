#include "assay/program/lower/recompute.h"

#include <gtest/gtest.h>

#include "assay/model/accounting.h"
#include "assay/testing/small_models.h"

namespace assay::lower {
namespace {

using namespace testing::by_hand;

TEST(Recompute, NamesAndListsAreReadAsTheyAreWritten) {
  for (const RecomputePolicy& policy : recompute_policies) {
    EXPECT_EQ(name(policy.parts), policy.name);
    EXPECT_EQ(parse_recompute(policy.name, "test").value(), policy.parts);
  }
  using enum ForwardPart;
  const Recompute list = Recompute::of({norms, attention, activations});
  EXPECT_EQ(name(list), "norms,attention,ffn-act");
  EXPECT_EQ(parse_recompute("attention,ffn-act,norms", "test").value(), list);
  // A list that is a policy has its name.
  EXPECT_EQ(name(parse_recompute("scores", "test").value()), "selective");
}

TEST(Recompute, AnUnknownPartIsRefusedWithAllNames) {
  for (const char* text : {"norm", "norms,", "none,norms", ""}) {
    const auto refused = parse_recompute(text, "--recompute");
    ASSERT_FALSE(refused) << text;
    for (std::size_t i = 0; i < forward_parts; ++i)
      EXPECT_NE(refused.error().hint.find(name(static_cast<ForwardPart>(i))), std::string::npos);
  }
}

TEST(Recompute, NoPolicyStandsBeforeOneThatMakesAPartOfTheSameAgain) {
  for (std::size_t i = 0; i < std::size(recompute_policies); ++i)
    for (std::size_t j = i + 1; j < std::size(recompute_policies); ++j)
      EXPECT_FALSE(recompute_policies[i].parts.includes(recompute_policies[j].parts));
}

TEST(Recompute, RepeatsALayerButForItsLastProduct) {
  TrainingPlan plan = plain_plan();
  plan.recompute = Recompute::full();
  const double forward = 2 * tokens * layer_matrices + 4 * batch * length * length * n_heads * head;
  const double last = 2 * tokens * d_model * ff;  // the last product, whose result nothing reads
  EXPECT_EQ(program::count(train({}, plan)).recomputed_flops, Flops(layers * (forward - last)));
  EXPECT_EQ(program::count(train({}, plan)).flops, program::count(train({})).flops + Flops(layers * (forward - last)));
  plan.recompute = Recompute::selective();
  EXPECT_EQ(program::count(train({}, plan)).recomputed_flops,
            Flops(layers * 4 * batch * length * length * n_heads * head));
}

TEST(Recompute, WhatTheEncoderMadeIsKeptOnceForAllLayers) {
  model::Transformer m = small_llama();
  m.encoder = m.decoder;
  model::Layer& layer = m.decoder.kinds[0];
  layer.cross_attention = layer.attention;
  layer.cross_attention->causal = false;
  layer.cross_attention->cross = true;
  layer.norms = 3;
  TrainingPlan plan = plain_plan();
  plan.work.source = 128;
  plan.recompute = Recompute::full();
  const program::Program program = train({}, plan, m);
  const program::Block& forward = block(program, "layer", program::Phase::forward);
  EXPECT_EQ(kept_bytes(program, forward), Bytes(tokens * d_model * fp32));  // the layer's own input
  EXPECT_EQ(kept_encoded_bytes(program, forward), Bytes(batch * 128 * d_model * fp32));
  EXPECT_EQ(kept_encoded_bytes(program, block(program, "encoder layer", program::Phase::forward)), Bytes(0));
}

TEST(Recompute, KeepsTheInputOfALayerOnly) {
  TrainingPlan plan = plain_plan();
  const auto kept = [&] {
    const program::Program program = train({}, plan);
    return kept_bytes(program, block(program, "layer", program::Phase::forward));
  };
  const Bytes everything = kept();
  plan.recompute = Recompute::selective();
  const Bytes without_scores = kept();
  plan.recompute = Recompute::full();
  EXPECT_EQ(kept(), Bytes(tokens * d_model * fp32));
  // Selective: all but the probabilities.
  EXPECT_EQ(everything - without_scores, Bytes(fp32 * batch * n_heads * length * length));
}

TEST(Recompute, KeepsValuesForLaterLayers) {
  model::Transformer m = small_llama();
  model::Layer l = m.decoder.kinds[0];
  l.attention.reset();
  model::StateSpace s;
  s.kind = model::StateSpace::Kind::rwkv7;
  s.inner = 512;
  s.heads = s.key_heads = 8;
  s.key_dim = 64;
  s.decay_rank = s.rate_rank = s.gate_rank = 16;
  m.decoder = {};
  s.lends_values = true;
  l.state_space = s;
  m.decoder.add(l);
  s.lends_values = false;
  s.value_rank = 16;
  l.state_space = s;
  m.decoder.add(l);
  TrainingPlan plan = plain_plan();
  plan.recompute = Recompute::full();
  const program::Program program = train({}, plan, m);
  // The input of each layer, and the values of the first one.
  EXPECT_EQ(kept_bytes(program, program.blocks[1]), Bytes(2 * tokens * d_model * fp32));
  EXPECT_EQ(kept_bytes(program, program.blocks[2]), Bytes(tokens * d_model * fp32));
}

// A program and the accounting of models agree on what selective recomputation keeps.
TEST(Recompute, SelectivelyKeepsWhatModelsCount) {
  TrainingPlan plan = plain_plan();
  plan.work.flash = true;
  plan.formats = {};
  plan.recompute = Recompute::selective();
  const program::Program program = train({}, plan);
  double kept = 0.0;
  for (const program::Block& block : program.blocks)
    if (block.kind >= 0 && block.phase == program::Phase::forward)
      kept += static_cast<double>(block.layers) * kept_bytes(program, block).value();
  EXPECT_DOUBLE_EQ(kept / tokens,
                   model::kept_bytes_per_token(small_llama(), model::KeepPolicy::selective, Dtype::bf16).value());
}

}  // namespace
}  // namespace assay::lower

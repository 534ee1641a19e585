#include "assay/program/lower/branches.h"

#include <gtest/gtest.h>

#include "assay/model/model_catalogue.h"
#include "assay/program/lower/lowering.h"

namespace assay::lower {
namespace {

TrainingPlan plan_of(const RecomputePolicy& policy) {
  TrainingPlan plan;
  plan.work.sequences = 64;
  plan.work.queries = plan.work.keys = 2048;
  plan.recompute = policy.parts;
  return plan;
}

const program::Block& block_of_kind(const program::Program& program, program::Phase phase, int kind) {
  for (const program::Block& each : program.blocks)
    if (each.phase == phase && each.kind == kind) return each;
  throw std::out_of_range("no such block");
}

/// Layers of one kind only: none has anything to copy.
model::Transformer only(const model::Transformer& model, std::size_t kind) {
  model::Transformer made = model;
  made.decoder.kinds = {model.decoder.kinds[kind]};
  made.decoder.order.assign(static_cast<std::size_t>(model.decoder.count(kind)), 0);
  return made;
}

void expect_same(const program::Program& a, const program::Block& in_a, const program::Program& b,
                 const program::Block& in_b) {
  ASSERT_EQ(in_a.last - in_a.first, in_b.last - in_b.first);
  for (int i = 0; i < in_a.last - in_a.first; ++i) {
    const program::Step& x = a.steps[static_cast<std::size_t>(in_a.first + i)];
    const program::Step& y = b.steps[static_cast<std::size_t>(in_b.first + i)];
    ASSERT_EQ(program::step_text(a, x), program::step_text(b, y));
    EXPECT_EQ(x.flops, y.flops) << program::step_text(a, x);
    EXPECT_EQ(x.bytes, y.bytes) << program::step_text(a, x);
    EXPECT_EQ(x.once, y.once);
    EXPECT_EQ(x.is_recomputed, y.is_recomputed);
  }
}

/// The models share attention, experts, a dense block, all but a window, or inputs from the token.
class CopiedBranches : public ::testing::TestWithParam<const char*> {};

TEST_P(CopiedBranches, AreWhatALayerHasThatIsAlone) {
  const model::ImportedModel imported = *model::load_model(GetParam(), hardware::Catalogue::builtin(), "test");
  const model::Transformer& model = imported.model;
  Parallelism p;
  p.fsdp = 8;
  p.tensor = 2;
  for (const RecomputePolicy& policy : recompute_policies) {
    const TrainingPlan plan = plan_of(policy);
    const auto [mesh, rules] = training_stage(p, model);
    const program::Program all = lower_training(model, mesh, rules, plan);
    for (std::size_t kind = 0; kind < model.decoder.kinds.size(); ++kind) {
      SCOPED_TRACE(std::string(policy.name) + ", kind " + std::to_string(kind));
      const program::Program alone = lower_training(only(model, kind), mesh, rules, plan);
      const int number = static_cast<int>(kind);
      for (program::Phase phase : {program::Phase::forward, program::Phase::backward, program::Phase::update})
        expect_same(all, block_of_kind(all, phase, number), alone, block_of_kind(alone, phase, 0));
      EXPECT_EQ(kept_bytes(all, block_of_kind(all, program::Phase::forward, number)),
                kept_bytes(alone, block_of_kind(alone, program::Phase::forward, 0)));
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Models, CopiedBranches,
                         ::testing::Values("deepseek-v3", "gpt-oss-20b", "gemma-3-4b", "gemma-4-e4b", "jamba-v0.1",
                                           "llama-4-maverick"));

}  // namespace
}  // namespace assay::lower

#include "assay/predict/training/recompute_profiles.h"

#include <gtest/gtest.h>

#include "assay/hardware/catalogue.h"
#include "assay/model/model_catalogue.h"

namespace assay::training {
namespace {

/// What a program that was lowered with a policy keeps of its layers of one kind, and makes again.
struct Lowered {
  Bytes kept, recomputed;
  Flops flops, recomputed_flops;
};

Lowered lowered(const program::Program& program, int kind) {
  Lowered sum;
  for (const program::Block& block : program.blocks) {
    if (block.kind != kind || block.phase == program::Phase::update) continue;
    if (block.phase == program::Phase::forward) sum.kept += lower::kept_bytes(program, block);
    for (std::int32_t i = block.first; i < block.last && block.phase == program::Phase::backward; ++i) {
      const program::Step& step = program.steps[static_cast<std::size_t>(i)];
      sum.flops += step.flops;
      if (!step.is_recomputed) continue;
      sum.recomputed_flops += step.flops;
      for (int id : step.out) {
        if (id < 0 || program.tensor(id).tensor_class == program::TensorClass::used_weight) continue;
        sum.recomputed += program::local_bytes(program, program.tensor(id));
      }
    }
  }
  return sum;
}

// One program, lowered with nothing recomputed, gives every other: dense, with experts, with low-rank keys, with a
// state space, with an encoder; products in bf16 and in fp8; policies and lists.
TEST(PolicyProfiles, AreThoseOfProgramsLoweredWithThePolicy) {
  const auto chip = *hardware::Catalogue::builtin().chip("h100-sxm", "test");
  std::vector<lower::Recompute> policies;
  for (const lower::RecomputePolicy& policy : lower::recompute_policies) policies.push_back(policy.parts);
  using enum lower::ForwardPart;
  for (const auto& list :
       {lower::Recompute::of({norms, activations}), lower::Recompute::of({attention, feed_forward_products}),
        lower::Recompute::of({dispatch, router, second_products}), lower::Recompute::of({residual, reductions})})
    policies.push_back(list);
  for (const char* id : {"llama-3-8b", "mixtral-8x7b", "deepseek-v3", "mamba-130m", "t5-base"})
    for (const Dtype compute : {Dtype::bf16, Dtype::fp8})
      for (const bool flash : {true, false})
        for (const lower::ResidualScheme residual :
             {lower::ResidualScheme::replicated, lower::ResidualScheme::sequence}) {
          const model::ImportedModel imported = *model::load_model(id, hardware::Catalogue::builtin(), "test");
          TrainingSetup setup;
          setup.model = &imported.model;
          setup.rates = *kernel::kernel_rates(chip, compute, "test");
          setup.formats.compute = compute;
          setup.flash = flash;
          ProfileKey key;
          key.tensor = 2, key.sequence = 512, key.micro_batch = 2, key.residual = residual, key.fsdp = true;
          FusedPrices prices;
          const PolicyProfiles profiles(setup, prices, key, ProfilePart::all);
          lower::Parallelism p;
          p.tensor = 2, p.residual = residual, p.fsdp = 2;
          const auto [mesh, rules] = lower::training_stage(p, imported.model);
          lower::TrainingPlan plan;
          plan.work.sequences = 4, plan.work.queries = plan.work.keys = 512;
          plan.work.source = imported.model.encoder ? 512 : 0;
          plan.work.flash = flash;
          plan.formats = setup.formats;
          for (const lower::Recompute policy : policies) {
            SCOPED_TRACE(std::string(id) + " " + lower::name(policy) + (flash ? " flash" : " plain"));
            plan.recompute = policy;
            const program::Program program = lower::lower_training(imported.model, mesh, rules, plan);
            const TrainingProfile profile = profiles.with(policy);
            for (std::size_t k = 0; k < profile.kinds.size(); ++k) {
              const Lowered want = lowered(program, static_cast<int>(k));
              const LayerProfile& layer = profile.kinds[k];
              EXPECT_DOUBLE_EQ(layer.kept.value(), want.kept.value());
              EXPECT_DOUBLE_EQ(layer.recomputed.value(), want.recomputed.value());
              EXPECT_NEAR(layer.backward.flops / want.flops, 1.0, 1e-12);
              EXPECT_NEAR(layer.backward.recomputed_flops.value(), want.recomputed_flops.value(),
                          1e-9 * want.flops.value());
            }
          }
        }
}

}  // namespace
}  // namespace assay::training

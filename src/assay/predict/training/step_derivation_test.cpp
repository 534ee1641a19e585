#include "assay/predict/training/step_derivation.h"

#include <gtest/gtest.h>

#include <random>

#include "assay/model/model_catalogue.h"
#include "assay/predict/training/step_list.h"
#include "assay/testing/sampling.h"
#include "assay/testing/training_case.h"

namespace assay::training {
namespace {

/// Products, launches, clocks and fused projections as the catalogue has them for a chip.
void use_calibration(TrainingQuestion& question, const hardware::Cluster& cluster, numbers::Fusion fusion) {
  const hardware::Catalogue catalogue = hardware::Catalogue::builtin();
  const auto calibration = *hardware::calibration_of(cluster.chip, catalogue);
  TrainingSetup& setup = question.setup;
  setup.rates = *kernel::kernel_rates(cluster.chip, Dtype::bf16, "test", calibration ? &calibration->values : nullptr);
  numbers::StepSoftware software;
  software.fusion = fusion;
  setup.effects = numbers::steps_of(catalogue)->effects(cluster.chip, software);
}

// Time and memory of a priced step, and what its kernels, collectives and tensors add up to.
TEST(StepDerivation, AddsUpToThePricedStep) {
  std::mt19937 random(7);
  const auto pick = [&](auto... values) {
    const std::array all{values...};
    return all[random() % all.size()];
  };
  for (const char* id : {"llama-3-8b", "mixtral-8x7b", "mamba-130m", "t5-base"}) {
    const model::ImportedModel imported = *model::load_model(id, hardware::Catalogue::builtin(), "test");
    for (int trial = 0; trial < testing::sampled_count(8); ++trial) {
      testing::TrainingCase with(pick("h100-sxm:64", "a100-sxm-80:64", "tpu-v5p:4x4x4"), 256);
      with.question.setup.model = &imported.model;
      with.question.setup.flash = pick(true, false);
      with.question.setup.dropout = pick(true, false);
      use_calibration(with.question, with.cluster, static_cast<numbers::Fusion>(pick(0, 1, 2)));
      Strategy strategy = testing::strategy_of(1, 1, pick(1, 2, 4));
      lower::Parallelism& p = strategy.parallelism;
      p.pipeline = pick(1, 2, 4);
      (pick(true, false) ? p.data : p.fsdp) = 64 / (p.tensor * p.pipeline);
      if (p.tensor > 1 && pick(true, false)) p.residual = lower::ResidualScheme::sequence;
      strategy.recompute = lower::recompute_policies[random() % std::size(lower::recompute_policies)].parts;
      SCOPED_TRACE(std::string(id) + " " + lower::name(strategy.recompute) + " trial " + std::to_string(trial));
      const Result<TrainingCost> cost = price_strategy(with.question, 2048, with.cluster, strategy);
      ASSERT_TRUE(cost);
      Ledger ledger;
      const auto derived = derive_step(Traced{&ledger}, {with.question, 2048, with.cluster, strategy, *cost});
      ASSERT_TRUE(derived);
      EXPECT_NEAR(derived->time.value() / cost->estimate.value(), 1.0, 1e-12);
      EXPECT_NEAR(derived->memory.value() / cost->memory.total().value(), 1.0, 1e-12);
    }
  }
}

// Every number that a file holds names the file and the line.
TEST(StepDerivation, NamesTheSourceOfEachEffect) {
  testing::TrainingCase with("h100-sxm:8", 64);
  use_calibration(with.question, with.cluster, numbers::Fusion::fused);
  Ledger ledger;
  const Strategy strategy = testing::strategy_of(8, 1, 1);
  const Result<TrainingCost> cost = price_strategy(with.question, 2048, with.cluster, strategy);
  ASSERT_TRUE(cost);
  ASSERT_TRUE(derive_step(Traced{&ledger}, {with.question, 2048, with.cluster, strategy, *cost}));
  int effects = 0;
  for (int id = 0; id < ledger.size(); ++id) {
    const Node& node = ledger.at(id);
    if (node.op != Node::Op::given || !node.name.ends_with(" in a step")) continue;
    const bool of_file = node.source.starts_with("steps/training.toml:");
    EXPECT_TRUE(of_file || node.source == "1: as kernels by themselves") << node.source;
    effects += of_file ? 1 : 0;
  }
  EXPECT_GT(effects, 0);
}

}  // namespace
}  // namespace assay::training

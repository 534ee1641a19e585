#include "assay/schedule/step_effects.h"

#include <gtest/gtest.h>

#include "assay/model/model_catalogue.h"
#include "assay/schedule/training.h"

namespace assay {
namespace {

Cluster cluster_of(std::string_view text) { return *parse_cluster(text, Catalogue::builtin(), "test"); }

TrainingQuestion question_of(const Transformer& model, const Cluster& cluster) {
  TrainingQuestion question;
  question.setup.model = &model;
  question.setup.rates = *kernel_rates(cluster.chip, Dtype::bf16, "test");
  question.sequences = 256, question.chips = static_cast<double>(cluster.chips());
  return question;
}

TrainingCost price(const TrainingQuestion& question, const Cluster& cluster, const Strategy& strategy) {
  const StageLinks links = *stage_links(strategy.parallelism, strategy.layout, cluster,
                                        question.collectives ? &*question.collectives : nullptr);
  const TrainingProfile profile = make_profile(question.setup, profile_key(strategy, 4096));
  const StageSplit split = split_stages(*question.setup.model, strategy.parallelism.pipeline);
  return training_cost(steady_cost(question, strategy, profile, links, split), strategy);
}

TEST(StepEffects, TheFileReadsBackAsItWasWritten) {
  const StepCalibration steps = *steps_of(Catalogue::builtin());
  const std::string text = "[source.fit]\ntitle = \"t\"\n" + steps_text(steps, "fit");
  const auto again = read_steps(text, "steps/training.toml");
  ASSERT_TRUE(again) << again.error().what;
  EXPECT_EQ(again->product, steps.product);
  EXPECT_EQ(again->launch, steps.launch);
  EXPECT_EQ(again->logits, steps.logits);
  EXPECT_EQ(again->contention, steps.contention);
}

TEST(StepEffects, AFaultNamesItsPlace) {
  const auto read = read_steps("[products]\nslowdown = 3\n", "steps/training.toml");
  ASSERT_FALSE(read);
  EXPECT_NE(read.error().where.find("steps/training.toml:1"), std::string::npos) << read.error().where;
}

TEST(StepEffects, ChangeTheEstimateAndNeverTheBounds) {
  const Transformer model = load_model("llama-3-8b", Catalogue::builtin(), "test")->model;
  const Cluster cluster = cluster_of("h100-sxm:64");
  const ChipCalibration calibration = **calibration_of(cluster.chip, Catalogue::builtin());
  const StepCalibration steps = *steps_of(Catalogue::builtin());
  TrainingQuestion plain = question_of(model, cluster), real = plain;
  real.setup.rates = *kernel_rates(cluster.chip, Dtype::bf16, "test", &calibration.values);
  real.setup.effects = steps.effects(cluster.chip, {});
  real.collectives = calibration.values.collective;
  for (const std::int64_t tensor : {1, 4, 8}) {
    Strategy strategy;
    strategy.parallelism.tensor = tensor, strategy.parallelism.fsdp = 64 / tensor;
    const TrainingCost a = price(plain, cluster, strategy), b = price(real, cluster, strategy);
    EXPECT_DOUBLE_EQ(a.lower, b.lower);
    EXPECT_DOUBLE_EQ(a.upper, b.upper);
    EXPECT_GT(b.estimate, a.estimate);
    EXPECT_NEAR(b.parts.total(), b.estimate, 1e-12 * b.estimate);
  }
}

TEST(StepEffects, SoftwareThatFusesLessIsSlower) {
  const Transformer model = load_model("llama-3-8b", Catalogue::builtin(), "test")->model;
  const Cluster cluster = cluster_of("h100-sxm:8");
  const StepCalibration steps = *steps_of(Catalogue::builtin());
  TrainingQuestion question = question_of(model, cluster);
  Strategy strategy;
  strategy.parallelism.fsdp = 8;
  double before = 0.0;
  for (const Fusion fusion : {Fusion::fused, Fusion::compiled, Fusion::eager}) {
    question.setup.effects = steps.effects(cluster.chip, {fusion, false, true});
    const double now = price(question, cluster, strategy).estimate;
    EXPECT_GT(now, before);
    before = now;
  }
}

TEST(StepEffects, TheFormOfACollectiveIsItsCalibratedEstimate) {
  const Cluster cluster = cluster_of("h100-sxm:64");
  const ChipCalibration calibration = **calibration_of(cluster.chip, Catalogue::builtin());
  Parallelism p;
  p.tensor = 8, p.fsdp = 8;
  const StageLinks links = *stage_links(p, 0, cluster, &*calibration.values.collective);
  const Placement placement = *Placement::make(whole_mesh(p, 0), cluster, "test");
  const CollectiveGroup tensor = placement.group(axis_bit(1));
  for (const double bytes : {1e3, 3e5, 2e7, 8e9}) {
    const double direct =
        collective_estimate(*calibration.values.collective, CollectiveKind::all_gather, Bytes(bytes), tensor).value();
    EXPECT_NEAR(links.forms[role_bit(Role::tensor)][0].seconds(bytes, 1.0), direct, 1e-9 * direct + 1e-12);
  }
}

}  // namespace
}  // namespace assay

#include "assay/predict/numbers/training_effects.h"

#include <gtest/gtest.h>

#include "assay/model/model_catalogue.h"
#include "assay/predict/training/step.h"

namespace assay::training {
namespace {

hardware::Cluster cluster_of(std::string_view text) {
  return *hardware::parse_cluster(text, hardware::Catalogue::builtin(), "test");
}

TrainingQuestion question_of(const model::Transformer& model, const hardware::Cluster& cluster) {
  TrainingQuestion question;
  question.setup.model = &model;
  question.setup.rates = *kernel::kernel_rates(cluster.chip, Dtype::bf16, "test");
  question.sequences = 256, question.chips = static_cast<double>(cluster.chips());
  return question;
}

TrainingCost price(const TrainingQuestion& question, const hardware::Cluster& cluster, const Strategy& strategy) {
  const StageLinks links = stage_links(strategy.parallelism, strategy.layout, cluster,
                                       question.collectives ? &*question.collectives : nullptr)
                               .value();
  const TrainingProfile profile = make_profile(question.setup, profile_key(strategy, 4096));
  const clock::StageSplit split = clock::split_stages(*question.setup.model, strategy.parallelism.pipeline);
  return training_cost(microbatch_cost({question, strategy, profile, nullptr, links}, split), strategy);
}

/// Neutral numbers of the catalogue's families.
numbers::StepCalibration neutral_steps() {
  return numbers::StepCalibration(*numbers::families_of(hardware::Catalogue::builtin()));
}

TEST(StepEffects, TheFileReadsBackAsItWasWritten) {
  const numbers::StepCalibration steps = *numbers::steps_of(hardware::Catalogue::builtin());
  const std::string text = "[source.fit]\ntitle = \"t\"\n" + numbers::steps_text(steps, "fit");
  const auto again = numbers::read_steps(text, "steps/training.toml", steps.families);
  ASSERT_TRUE(again) << again.error().what;
  EXPECT_EQ(again->product, steps.product);
  EXPECT_EQ(again->measured, steps.measured);
  EXPECT_EQ(numbers::steps_text(*again, "fit"), numbers::steps_text(steps, "fit"));
  EXPECT_EQ(again->context.value, steps.context.value);
  ASSERT_EQ(again->time_intervals.size(), steps.time_intervals.size());
  for (std::size_t i = 0; i < steps.time_intervals.size(); ++i)
    EXPECT_EQ(again->time_intervals[i].spread, steps.time_intervals[i].spread);
}

TEST(StepEffects, EveryFaultOfAFileIsReportedWithItsPlace) {
  const numbers::StepCalibration steps = *numbers::steps_of(hardware::Catalogue::builtin());
  std::string text = "[source.fit]\ntitle = \"t\"\n" + numbers::steps_text(steps, "fit");
  const auto replace = [&](std::string_view old, std::string_view by) { text.replace(text.find(old), old.size(), by); };
  replace("plain = ", "plane = ");
  replace("hopper = ", "hoper = ");
  replace("[step]\nsource = \"fit\"", "[step]\nsource = \"fitt\"");
  const auto read = numbers::read_steps(text, "steps/training.toml", steps.families);
  ASSERT_FALSE(read);
  std::string all = read.error().where + " " + read.error().what + " " + read.error().hint;
  for (const Error& error : read.error().also) all += "\n" + error.where + " " + error.what + " " + error.hint;
  for (const char* part :
       {"steps/training.toml:", "attention.plain this key is required docs/validation.md lists the keys",
        "attention.plane unknown key \"plane\" did you mean plain?",
        "products.slowdown.hoper there is no family \"hoper\" did you mean hopper?",
        "step.source unknown source \"fitt\" did you mean fit?"})
    EXPECT_NE(all.find(part), std::string::npos) << part << "\nin\n" << all;
}

TEST(StepEffects, ChangeTheEstimateAndNeverTheBounds) {
  const model::Transformer model = model::load_model("llama-3-8b", hardware::Catalogue::builtin(), "test")->model;
  const hardware::Cluster cluster = cluster_of("h100-sxm:64");
  const hardware::ChipCalibration calibration =
      **hardware::calibration_of(cluster.chip, hardware::Catalogue::builtin());
  const numbers::StepCalibration steps = *numbers::steps_of(hardware::Catalogue::builtin());
  TrainingQuestion plain = question_of(model, cluster), real = plain;
  real.setup.rates = *kernel::kernel_rates(cluster.chip, Dtype::bf16, "test", &calibration.values);
  real.setup.effects = steps.effects(cluster.chip, {});
  real.collectives = calibration.values.collective;
  for (const std::int64_t tensor : {1, 4, 8}) {
    Strategy strategy;
    strategy.parallelism.tensor = tensor, strategy.parallelism.fsdp = 64 / tensor;
    const TrainingCost a = price(plain, cluster, strategy), b = price(real, cluster, strategy);
    EXPECT_DOUBLE_EQ(a.lower.value(), b.lower.value());
    EXPECT_DOUBLE_EQ(a.upper.value(), b.upper.value());
    EXPECT_GT(b.estimate, a.estimate);
    EXPECT_NEAR(b.parts.total().value(), b.estimate.value(), 1e-12 * b.estimate.value());
  }
}

TEST(StepEffects, SoftwareThatFusesLessIsSlower) {
  const model::Transformer model = model::load_model("llama-3-8b", hardware::Catalogue::builtin(), "test")->model;
  const hardware::Cluster cluster = cluster_of("h100-sxm:8");
  const numbers::StepCalibration steps = *numbers::steps_of(hardware::Catalogue::builtin());
  TrainingQuestion question = question_of(model, cluster);
  Strategy strategy;
  strategy.parallelism.fsdp = 8;
  const auto time = [&](numbers::Fusion fusion) {
    numbers::StepSoftware software;
    software.fusion = fusion, software.captured = true;
    question.setup.effects = steps.effects(cluster.chip, software);
    return price(question, cluster, strategy).estimate;
  };
  EXPECT_GT(time(numbers::Fusion::eager), time(numbers::Fusion::fused));
  EXPECT_GT(time(numbers::Fusion::eager), time(numbers::Fusion::compiled));
}

/// A model on eight chips with everything that was measured of them.
struct Calibrated {
  model::Transformer model = model::load_model("llama-3-8b", hardware::Catalogue::builtin(), "test")->model;
  hardware::Cluster cluster = cluster_of("h200-sxm:8");
  numbers::StepCalibration steps = *numbers::steps_of(hardware::Catalogue::builtin());
  TrainingQuestion question = question_of(model, cluster);
  Strategy strategy;

  Calibrated() {
    const auto calibration = *hardware::calibration_of(cluster.chip, hardware::Catalogue::builtin());
    question.setup.rates = *kernel::kernel_rates(cluster.chip, Dtype::bf16, "test", &calibration->values);
    strategy.parallelism.fsdp = 8;
  }

  TrainingCost cost(const numbers::StepSoftware& software) {
    question.setup.effects = steps.effects(cluster.chip, software);
    return price(question, cluster, strategy);
  }
};

TEST(StepEffects, MasksInMemoryAndUnfusedUpdatesTakeLonger) {
  Calibrated c;
  numbers::StepSoftware software;
  const auto cost = [&] { return c.cost(software); };
  const TrainingCost usual = cost();
  software.explicit_mask = true;
  const TrainingCost masked = cost();
  EXPECT_GT(masked.parts.compute, usual.parts.compute);
  EXPECT_DOUBLE_EQ(c.question.setup.effects.attention,
                   c.steps.effects(c.cluster.chip, {}).attention * c.steps.explicit_mask);
  software = {.unfused_update = true};
  const TrainingCost unfused = cost();
  EXPECT_GT(unfused.estimate, usual.estimate);
  // Adam in one kernel reaches 0.58 of the bandwidth among others, its operations 0.86 with 2.86 times the bytes.
  const double slower = update_rate(Plain{}, c.question.setup) / kernel::stream_rate(Plain{}, c.question.setup.rates);
  EXPECT_DOUBLE_EQ(slower, 1.0 / c.steps.unfused_update);
}

TEST(StepEffects, PlainAttentionOfOperationsTakesLonger) {
  Calibrated c;
  const auto compute = [&](bool flash, numbers::StepSoftware software) {
    c.question.setup.flash = flash;
    return c.cost(software).parts.compute;
  };
  const auto eager = numbers::Fusion::eager;
  const Seconds fused = compute(true, {.fusion = eager}), plain = compute(false, {.fusion = eager});
  EXPECT_GT(plain, fused);
  EXPECT_GT(compute(false, {.fusion = eager, .wide_attention = true}), plain);
}

TEST(StepEffects, EagerKindsAreComposedOfKernelsOfTheirOwn) {
  const hardware::Chip chip = cluster_of("h200-sxm:1").chip;
  const numbers::StepCalibration steps = *numbers::steps_of(hardware::Catalogue::builtin());
  const auto bytes = [&](numbers::Fusion fusion, numbers::StreamKind kind, std::size_t pass) {
    return steps.effects(chip, {.fusion = fusion}).kinds[static_cast<std::size_t>(kind)].value[pass];
  };
  using enum numbers::StreamKind;
  for (const std::size_t pass : {0u, 1u}) {
    EXPECT_GT(bytes(numbers::Fusion::eager, norm, pass), bytes(numbers::Fusion::eager, centred_norm, pass));
    for (const numbers::StreamKind kind : {norm, rotation, loss, dispatch, combine})
      EXPECT_GT(bytes(numbers::Fusion::eager, kind, pass), bytes(numbers::Fusion::compiled, kind, pass));
    EXPECT_EQ(bytes(numbers::Fusion::fused, norm, pass), 1.0);
  }
  // Experts in one kernel leave nothing between their products.
  const numbers::StepSoftware fused{.fusion = numbers::Fusion::eager, .fused_experts = true};
  EXPECT_EQ(steps.effects(chip, fused).kinds[static_cast<std::size_t>(dispatch)].value[0], 1.0);
  // The loss may run another way than layers.
  const numbers::StepSoftware apart{.fusion = numbers::Fusion::fused, .loss = numbers::Fusion::eager};
  EXPECT_EQ(steps.effects(chip, apart).kinds[static_cast<std::size_t>(loss)].value[0],
            bytes(numbers::Fusion::eager, loss, 0));
}

TEST(StepEffects, GraphsHideTheHostButNotWhereTokensAreRouted) {
  numbers::StepCalibration steps = neutral_steps();
  steps.launch = {10_us, 10_us, 10_us, Seconds(0)};
  const hardware::Cluster cluster = cluster_of("h100-sxm:8");
  numbers::StepSoftware software;
  software.captured = true;
  EXPECT_EQ(steps.effects(cluster.chip, software).launch, Seconds(0));
  EXPECT_EQ(steps.effects(cluster.chip, software).routed_launch, 10_us);
  software.fixed_capacity = true;
  EXPECT_EQ(steps.effects(cluster.chip, software).routed_launch, Seconds(0));
}

// One kernel gates, quantises and asks nobody: no element-wise steps between an expert's products, no launches.
TEST(StepEffects, FusedExpertsAreOneKernelThatNoHostStarts) {
  numbers::StepCalibration steps = neutral_steps();
  steps.launch = {10_us, 10_us, 10_us, Seconds(0)};
  steps.expert_traffic = 3, steps.fused_expert_traffic = 1.5, steps.compiled_expert_traffic = 2;
  numbers::StepSoftware software;
  software.captured = software.fused_experts = true;
  const numbers::StepEffects fused = steps.effects(cluster_of("b200:8").chip, software);
  EXPECT_EQ(fused.expert_traffic, 1.5);
  EXPECT_EQ(fused.expert_pointwise, 0.0);
  EXPECT_EQ(fused.routed_launch, Seconds(0));
  const numbers::StepEffects xla = steps.effects(cluster_of("tpu-v5p:2x2x1").chip, software);
  EXPECT_EQ(xla.expert_traffic, 2);
  EXPECT_EQ(xla.expert_pointwise, 1.0);
  // A step of Mixtral in fp8 is shorter by what lies between the products.
  model::Transformer mixtral = model::load_model("mixtral-8x7b", hardware::Catalogue::builtin(), "test")->model;
  const hardware::Cluster cluster = cluster_of("b200:8");
  TrainingQuestion question;
  question.setup.model = &mixtral;
  question.setup.rates = *kernel::kernel_rates(cluster.chip, Dtype::fp8, "test");
  question.setup.formats.compute = Dtype::fp8;
  question.sequences = 8;
  Strategy strategy;
  strategy.parallelism.data = strategy.parallelism.expert = 8;
  const Seconds apart = price(question, cluster, strategy).estimate;
  question.setup.effects.expert_pointwise = 0.0;
  const TrainingCost together = price(question, cluster, strategy);
  EXPECT_LT(together.estimate, apart);
  EXPECT_GE(together.estimate, together.lower);
}

TEST(StepEffects, TheLossMayBeFusedWhereLayersAreNot) {
  numbers::StepCalibration steps = neutral_steps();
  steps.loss = {1, 2, 3, 4}, steps.logits = {1, 2, 3, 4}, steps.pointwise = {1, 2, 3, 4};
  numbers::StepSoftware software;
  software.fusion = numbers::Fusion::eager, software.loss = numbers::Fusion::fused;
  const numbers::StepEffects effects = steps.effects(cluster_of("h100-sxm:8").chip, software);
  EXPECT_EQ(effects.pointwise, 3);
  EXPECT_EQ(effects.loss, 1);
  EXPECT_EQ(effects.logits, 1);
}

TEST(StepEffects, XlaFusesAlikeOnAllChipsAndIsAllThatTpusHave) {
  numbers::StepCalibration steps = neutral_steps();
  steps.pointwise = steps.cast = steps.loss = steps.activations = {1, 2, 3, 4};
  numbers::StepSoftware software;
  software.fusion = numbers::Fusion::eager;
  EXPECT_EQ(steps.effects(cluster_of("tpu-v5p:2x2x1").chip, software).pointwise, 4);
  software.fusion = numbers::Fusion::xla;
  const numbers::StepEffects gpu = steps.effects(cluster_of("h100-sxm:8").chip, software);
  EXPECT_EQ(gpu.pointwise, 4);
  EXPECT_EQ(gpu.cast, 4);
  EXPECT_EQ(gpu.activations, 2);  // measured on TPUs only
}

TEST(StepEffects, AChipOfNoFamilyIsNeutral) {
  const numbers::StepCalibration steps = *numbers::steps_of(hardware::Catalogue::builtin());
  for (const char* cluster : {"gaudi3:8", "trainium2:16", "l40s:8", "v100-sxm:8"}) {
    const hardware::Chip chip = cluster_of(cluster).chip;
    EXPECT_FALSE(steps.has_steps(chip)) << cluster;
    const numbers::StepEffects effects = steps.effects(chip, {});
    EXPECT_EQ(effects.product, 1.0);
    EXPECT_EQ(effects.attention, 1.0);
    EXPECT_NE(effects.overlap.tensor, numbers::TensorOverlap::all);
  }
  for (const char* cluster : {"a100-sxm-80:8", "h200-sxm:8", "gb300-nvl72:72", "mi300x:8", "tpu-v6e:4x4"})
    EXPECT_TRUE(steps.has_steps(cluster_of(cluster).chip)) << cluster;
}

TEST(StepEffects, EveryMeasuredFamilyHasClassesWithIntervalsAndNoOther) {
  const numbers::StepCalibration steps = *numbers::steps_of(hardware::Catalogue::builtin());
  const model::Transformer dense = model::load_model("llama-3-8b", hardware::Catalogue::builtin(), "test")->model;
  const model::Transformer experts = model::load_model("mixtral-8x7b", hardware::Catalogue::builtin(), "test")->model;
  const auto classes = [&](const char* cluster, const model::Transformer& model) {
    const hardware::Cluster on = cluster_of(cluster);
    return numbers::step_classes(steps.family(on.chip), on, model);
  };
  EXPECT_EQ(classes("h100-sxm:8", dense).front(), "dense, one node, hopper");
  EXPECT_EQ(classes("h100-sxm:64", dense).front(), "dense, many nodes, hopper");
  EXPECT_EQ(classes("b200:64", experts).front(), "experts, blackwell");
  EXPECT_EQ(classes("tpu-v5p:4x4x4", dense), (std::vector<std::string>{"dense, tpu", "tpu", "all"}));
  for (const char* cluster :
       {"gaudi3:8", "l40s:8"}) {  // no family; a family whose prefill and decode were measured only
    EXPECT_TRUE(classes(cluster, dense).empty()) << cluster;
    EXPECT_TRUE(numbers::memory_classes(steps.family(cluster_of(cluster).chip), cluster_of(cluster)).empty());
  }
  for (const char* cluster : {"h100-sxm:8", "a100-sxm-80:512", "b200:64", "tpu-v5p:4x4x4"})
    for (const model::Transformer& model : {dense, experts}) {
      const numbers::IntervalClass* found = numbers::interval_of(steps.time_intervals, classes(cluster, model));
      ASSERT_NE(found, nullptr) << cluster;
      EXPECT_GT(found->spread, 0.0);
      EXPECT_LT(found->spread, 1.0);
    }
}

TEST(StepEffects, WithoutACalibrationACollectiveHasTheLatencyOfTheChipsFile) {
  const hardware::Cluster cluster = cluster_of("mi300x:8");
  ASSERT_GT(hardware::collective_latency(cluster.chip), 1_us);
  lower::Parallelism p;
  p.tensor = 8;
  const StageLinks links = stage_links(p, {}, cluster, nullptr).value();
  constexpr RoleSet tensor = role_bit(Role::tensor);
  const std::size_t kind = StageLinks::line_of(program::Collective::all_reduce);
  const collective::CollectiveLine& line = links.lines[tensor][kind];
  EXPECT_DOUBLE_EQ(collective::collective_time(Plain{}, links.forms[tensor][kind], 1_MB).value(),
                   (hardware::collective_latency(cluster.chip) + line.floor).value() +
                       1e6 * line.rate.value() / hardware::network_efficiency(cluster.chip));
}

TEST(StepEffects, TheFormOfACollectiveIsItsCalibratedEstimate) {
  const hardware::Cluster cluster = cluster_of("h100-sxm:64");
  const hardware::ChipCalibration calibration =
      **hardware::calibration_of(cluster.chip, hardware::Catalogue::builtin());
  lower::Parallelism p;
  p.tensor = 8, p.fsdp = 8;
  const StageLinks links = stage_links(p, {}, cluster, &*calibration.values.collective).value();
  const collective::Placement placement = *collective::Placement::make(whole_mesh(p), cluster, "test");
  const collective::CollectiveGroup tensor = placement.group(program::axis_bit(1));
  for (const double bytes : {1e3, 3e5, 2e7, 8e9}) {
    const double direct = collective::collective_estimate(*calibration.values.collective,
                                                          program::Collective::all_gather, Bytes(bytes), tensor)
                              .value();
    EXPECT_NEAR(collective::collective_time(Plain{}, links.forms[role_bit(Role::tensor)][0], Bytes(bytes)).value(),
                direct, 1e-9 * direct + 1e-12);
  }
}

}  // namespace
}  // namespace assay::training

// Memory of training steps against counts made on paper.
#include <gtest/gtest.h>

#include <utility>

#include "assay/model/accounting.h"
#include "assay/model/model_catalogue.h"
#include "assay/predict/training/step.h"

namespace assay::training {
namespace {

struct MemoryCase {
  explicit MemoryCase(std::string_view name, std::string_view on)
      : model(model::load_model(name, hardware::Catalogue::builtin(), "test")->model),
        cluster(*hardware::parse_cluster(on, hardware::Catalogue::builtin(), "test")) {
    question.setup.model = &model;
    question.setup.rates = *kernel::kernel_rates(cluster.chip, Dtype::bf16, "test");
    question.setup.formats.gradients = Dtype::fp32;
    question.chips = static_cast<double>(cluster.chips());
  }
  TrainingQuestion question;
  model::Transformer model;
  hardware::Cluster cluster;
};

/// Bytes that one layer keeps for a token.
double kept_per_token(const MemoryCase& c, const Strategy& strategy, std::int64_t sequence) {
  const TrainingProfile profile = make_profile(c.question.setup, profile_key(strategy, sequence));
  return profile.kinds[0].kept.value() / static_cast<double>(sequence * strategy.micro_batch);
}

// Korthikanti et al. 2022, equations 2 and 5: a layer of width h with a heads, s tokens and t-way tensor parallelism
// keeps s b h (10 + 24 / t + 5 a s / (h t)) bytes with dropout, and 34 s b h / t with sequence parallelism when the
// inside of attention is recomputed.
TEST(TrainingMemory, KeepsWhatTheFormulasOfKorthikantiSay) {
  MemoryCase c("gpt-3-175b", "a100-sxm-80:8");
  c.question.setup.flash = false, c.question.setup.dropout = true;
  constexpr double h = 12288, a = 96, s = 2048, t = 8;
  Strategy strategy;
  strategy.parallelism.tensor = 8;
  EXPECT_NEAR(kept_per_token(c, strategy, 2048), h * (10.0 + 24.0 / t + 5.0 * a * s / (h * t)), 0.01 * 34.0 * h);
  strategy.parallelism.residual = lower::ResidualScheme::sequence;
  strategy.recompute = lower::Recompute::selective();
  EXPECT_NEAR(kept_per_token(c, strategy, 2048), 34.0 * h / t, 0.01 * 34.0 * h / t);
}

TEST(TrainingMemory, DropoutKeepsNothingWhereEverythingIsMadeAgain) {
  MemoryCase c("gpt-3-175b", "a100-sxm-80:8");
  c.question.setup.flash = false;
  Strategy strategy;
  strategy.recompute = lower::Recompute::full();
  const double without = kept_per_token(c, strategy, 2048);
  c.question.setup.dropout = true;
  EXPECT_EQ(kept_per_token(c, strategy, 2048), without);
  const TrainingProfile profile = make_profile(c.question.setup, profile_key(strategy, 2048));
  c.question.setup.dropout = false;
  EXPECT_GT(profile.kinds[0].recomputed,
            make_profile(c.question.setup, profile_key(strategy, 2048)).kinds[0].recomputed);
}

// By operator, a Llama layer keeps its input, the first, third and fifth of its products (queries, values, one of the
// two up; the seventh, down, is needed by nobody) and the result of attention with one number per head; keys, output
// and gate are recomputed.
TEST(TrainingMemory, ByOperatorEveryOtherProductIsKept) {
  const MemoryCase c("llama-3-8b", "h100-sxm:8");
  constexpr double d = 4096, queries = 32 * 128, values = 8 * 128, up = 14336;
  Strategy strategy;
  strategy.recompute = lower::Recompute::operators();
  EXPECT_NEAR(kept_per_token(c, strategy, 8192), 2.0 * (d + queries + values + queries + up) + 4.0 * 32.0, 1.0);
  const TrainingProfile some = make_profile(c.question.setup, profile_key(strategy, 8192));
  strategy.recompute = lower::Recompute::full();
  const TrainingProfile all = make_profile(c.question.setup, profile_key(strategy, 8192));
  EXPECT_LT(some.kinds[0].backward.recomputed_flops, 0.5 * all.kinds[0].backward.recomputed_flops);
  EXPECT_GT(some.kinds[0].backward.recomputed_flops.value(), 0.0);
}

TEST(TrainingMemory, PoliciesThatKeepMoreRepeatLess) {
  const MemoryCase c("llama-3-8b", "h100-sxm:8");
  double kept = 0.0, recomputed = HUGE_VAL;
  for (const lower::Recompute policy : {lower::Recompute::full(), lower::Recompute::all_but_projections(),
                                        lower::Recompute::feed_forward(), lower::Recompute::all_but_products()}) {
    Strategy strategy;
    strategy.recompute = policy;
    const TrainingProfile profile = make_profile(c.question.setup, profile_key(strategy, 4096));
    const LayerProfile& layer = profile.kinds[0];
    EXPECT_GT(layer.kept.value(), kept) << lower::name(policy);
    kept = layer.kept.value();
    if (policy == lower::Recompute::all_but_products())
      continue;  // attention is recomputed, the feed-forward block is not
    EXPECT_LT(layer.backward.recomputed_flops.value(), recomputed) << lower::name(policy);
    recomputed = layer.backward.recomputed_flops.value();
  }
}

TEST(TrainingMemory, ThePeakIsAtTheLossOrInALayer) {
  MemoryCase c("llama-3-8b", "h100-sxm:8");
  c.question.sequences = 8;
  c.question.setup.effects.reserved = 1.1, c.question.setup.effects.context = 2_GiB;
  Strategy strategy;
  strategy.parallelism.fsdp = 8;
  const MemoryParts memory = price_strategy(c.question, 8192, c.cluster, strategy)->memory;
  EXPECT_TRUE(memory.head.value() == 0.0 || memory.workspace.value() == 0.0);
  EXPECT_NEAR(memory.reserved().value(), 1.1 * memory.allocated().value(), 1.0);
  EXPECT_EQ(memory.total().value(), memory.reserved().value() + (2_GiB).value());
}

TEST(TrainingMemory, AMasterCopyThatIsTheWeightSavesTheirStorage) {
  MemoryCase c("llama-3-8b", "h100-sxm:8");
  c.question.sequences = 8;
  Strategy strategy;
  strategy.parallelism.fsdp = 8;
  const MemoryParts both = price_strategy(c.question, 8192, c.cluster, strategy)->memory;
  c.question.setup.optimizer.cast_when_gathered = true;
  const MemoryParts one = price_strategy(c.question, 8192, c.cluster, strategy)->memory;
  EXPECT_EQ(one.weights, Bytes());
  EXPECT_DOUBLE_EQ(one.master.value(), both.master.value());
  EXPECT_DOUBLE_EQ(one.buffers.value(), both.buffers.value());
}

TEST(TrainingMemory, WideWeightsAreGatheredInTheFormatOfProducts) {
  MemoryCase c("llama-3-8b", "h100-sxm:8");
  c.question.sequences = 8;
  Strategy strategy;
  strategy.parallelism.fsdp = 8;
  const MemoryParts narrow = price_strategy(c.question, 8192, c.cluster, strategy)->memory;
  c.question.setup.formats.weights = Dtype::fp32;
  const MemoryParts wide = price_strategy(c.question, 8192, c.cluster, strategy)->memory;
  EXPECT_DOUBLE_EQ(wide.weights.value(), 2.0 * narrow.weights.value());
  EXPECT_DOUBLE_EQ(wide.buffers.value(), narrow.buffers.value());
}

// 24 layers of an encoder and as many of a decoder keep their inputs, and all of them together what the encoder made.
TEST(TrainingMemory, WhatTheEncoderMadeIsThereOnce) {
  MemoryCase c("t5-3b", "h100-sxm:1");
  c.question.sequences = 1;
  Strategy strategy;
  strategy.recompute = lower::Recompute::full();
  const auto cost = price_strategy(c.question, 512, c.cluster, strategy);
  ASSERT_TRUE(cost);
  EXPECT_EQ(cost->memory.activations.value(), (24 + 24 + 1) * 512.0 * 1024 * 2);
}

// Replicas of sharded weights reduce only their own part of the gradients: 1 / fsdp of them.
// Two blocks that take turns in nine layers: each stage of a pipeline holds those that its layers use.
TEST(TrainingMemory, SharedWeightsAreThereOnceOnEachStage) {
  MemoryCase c("zamba2-2.7b", "h100-sxm:2");
  c.question.sequences = 8;
  const auto parameters = static_cast<double>(model::parameter_counts(c.model).total);
  Strategy strategy;
  const auto microbatch = [&](std::int64_t stages) {
    strategy.parallelism.data = 2 / stages, strategy.parallelism.pipeline = stages;
    strategy.schedule = clock::PipelineSchedule::one_f_one_b;
    return *price_stages(c.question, 4096, c.cluster, strategy, stage_split(c.model, strategy));
  };
  const MemoryParts whole = microbatch(1).parts.front().memory;
  EXPECT_EQ(whole.weights.value(), 2.0 * parameters);
  EXPECT_EQ(whole.gradients.value(), 4.0 * parameters);
  EXPECT_EQ(whole.moments.value(), 8.0 * parameters);
  double held = 0.0;
  const MicrobatchCost two = microbatch(2);
  for (const MicrobatchCost::Part& part : two.parts) held += part.stages * part.memory.weights.value();
  double shared = 0.0;
  for (const model::Layer& layer : c.model.decoder.kinds)
    for (const model::Weight& weight : model::layer_weights(c.model, layer))
      if (weight.shared) shared += static_cast<double>(weight.elements());
  const double table = 32000.0 * 2560.0;
  EXPECT_EQ(held, 2.0 * (parameters + table + shared));
  // Their gradients are added up over both stages as those of the tied table are. Blocks of one layer each have none to
  // add.
  int number = 0;
  const model::LayerStack before = std::exchange(c.model.decoder, {});
  for (const std::uint16_t kind : before.order) {
    model::Layer layer = before.kinds[kind];
    if (layer.shared) layer.shared->number = ++number;
    c.model.decoder.add(layer);
  }
  EXPECT_EQ(number, 9);
  const Seconds of_table = microbatch(2).parts.front().gradients;
  EXPECT_NEAR((two.parts.front().gradients - of_table) / of_table, shared / table, 0.05 * shared / table);
}

TEST(TrainingMemory, TheEmbeddingThatBlocksAsideReadIsThereOnce) {
  const MemoryCase c("zamba2-2.7b", "h100-sxm:8");
  for (const lower::Recompute recompute : {lower::Recompute::none(), lower::Recompute::full()}) {
    Strategy strategy;
    strategy.recompute = recompute;
    const TrainingProfile profile = make_profile(c.question.setup, profile_key(strategy, 4096));
    EXPECT_EQ(profile.kinds[0].encoded, Bytes(0));
    for (const std::size_t kind : {1u, 2u}) EXPECT_EQ(profile.kinds[kind].encoded, Bytes(2.0 * 4096 * 2560));
    EXPECT_EQ(profile.boundary, Bytes(2.0 * 2.0 * 4096 * 2560));
    if (recompute == lower::Recompute::full()) EXPECT_EQ(profile.kinds[1].kept, Bytes(2.0 * 4096 * 2560));
  }
}

TEST(TrainingMemory, ReplicasReduceTheirPartOfShardedGradients) {
  const MemoryCase c("llama-3-8b", "h100-sxm:64");
  Strategy strategy;
  strategy.parallelism.data = 4, strategy.parallelism.fsdp = 16;
  const TrainingProfile profile = make_profile(c.question.setup, profile_key(strategy, 4096));
  int found = 0;
  for (const Traffic& traffic : profile.kinds[0].backward.traffic)
    if (traffic.once && traffic.over == role_bit(Role::data)) {
      EXPECT_EQ(traffic.divided, role_bit(Role::fsdp));
      ++found;
    }
  EXPECT_GT(found, 0);
}

// Mixtral on eight devices that have an expert each: what is gathered and reduced of a layer is its attention, router
// and norms alone, twice as they are used, once more as gradients and once in fp32.
TEST(TrainingMemory, ExpertsOfTheirOwnDevicesNeedNoBuffers) {
  MemoryCase c("mixtral-8x7b", "h100-sxm:8");
  c.question.sequences = 8;
  Strategy strategy;
  strategy.parallelism.fsdp = strategy.parallelism.expert = 8;
  const double dense = 4096.0 * (2 * 4096 + 2 * 1024) + 4096.0 * 8 + 2 * 4096;
  EXPECT_DOUBLE_EQ(price_strategy(c.question, 1024, c.cluster, strategy)->memory.buffers.value(),
                   (2 * 2 + 2 + 4) * dense);
}

// Projections into the space of experts are shared out as all that is dense: a 64th of all weights, whatever experts
// do.
TEST(TrainingMemory, ProjectionsThatExpertsShareAreSharedOut) {
  MemoryCase c("nemotron-3-super", "h200-sxm:64");
  c.question.sequences = 64;
  Strategy strategy;
  strategy.parallelism.fsdp = 64;
  const double whole = price_strategy(c.question, 1024, c.cluster, strategy)->memory.weights.value();
  strategy.parallelism.expert = 64;
  EXPECT_NEAR(price_strategy(c.question, 1024, c.cluster, strategy)->memory.weights.value(), whole, 1.0);
}

}  // namespace
}  // namespace assay::training

#include "assay/predict/training/limits.h"

#include <gtest/gtest.h>

#include "assay/model/accounting.h"
#include "assay/testing/small_models.h"

namespace assay::training {
namespace {

TrainingCost balanced_cost() {
  TrainingCost cost;
  cost.compute = Seconds(4.0);
  cost.memory_time = Seconds(1.0);
  cost.network[static_cast<std::size_t>(Role::fsdp)] = Seconds(3.0);
  cost.end_network[static_cast<std::size_t>(Role::fsdp)] = Seconds(1.0);
  cost.network[static_cast<std::size_t>(Role::tensor)] = Seconds(2.0);
  return cost;
}

hardware::Cluster cluster_of_nodes() {
  hardware::Cluster cluster;
  cluster.chips_per_node = 8;
  cluster.chip.memory.resize(1);
  cluster.chip.memory.front().capacity.value = Bytes(100.0);
  return cluster;
}

TEST(StepLimits, TheLongestIsFirst) {
  TrainingCost cost = balanced_cost();
  EXPECT_EQ(limiter_of(cost), "compute");
  cost.fill = Seconds(5.0);
  EXPECT_EQ(limiter_of(cost), "bubble");
}

TEST(StepLimits, WaitingCountsOnlyWhereLinksAreNotTheBusiest) {
  TrainingCost cost = balanced_cost();
  cost.parts.tensor = 10_s;
  EXPECT_EQ(limiter_of(cost), "waiting");
  cost.network[static_cast<std::size_t>(Role::fsdp)] = Seconds(6.0);
  EXPECT_EQ(limiter_of(cost), "network");
}

// Eight sequences of 10 tokens in four microbatches of two on one device. Weights take 2 s of 4 s of arithmetic in
// each: equal at 20 tokens x 2/4. Gradients take 1 s once: arithmetic is that much longer at 1/(4 - 2) of the batch.
TEST(LimitThresholds, HandWorked) {
  TrainingQuestion question;
  question.sequences = 8.0;
  Strategy strategy;
  strategy.micro_batch = 2;
  strategy.parallelism.tensor = 2;
  const LimitThresholds out = limit_thresholds(question, 10, cluster_of_nodes(), strategy, balanced_cost());
  EXPECT_DOUBLE_EQ(*out.compute_over_weights_traffic, 4.0 / 3.0);
  EXPECT_EQ(*out.microbatch_where_weights_traffic_limits, Tokens(10.0));
  ASSERT_TRUE(out.reduces_gradients);
  EXPECT_EQ(*out.batch_where_gradients_limit, Tokens(40.0));
  EXPECT_DOUBLE_EQ(*out.compute_over_tensor_traffic, 2.0);
  EXPECT_DOUBLE_EQ(*out.largest_tensor_parallelism, 3.0);
  EXPECT_DOUBLE_EQ(*out.compute_over_memory_traffic, 4.0);
  EXPECT_EQ(out.memory_left, Bytes(100.0));
}

TEST(LimitThresholds, NoBatchIsLargeEnoughWhereWeightsLimitEveryMicrobatch) {
  TrainingQuestion question;
  question.sequences = 8.0;
  TrainingCost cost = balanced_cost();
  cost.network[static_cast<std::size_t>(Role::fsdp)] = Seconds(9.0);
  const LimitThresholds out = limit_thresholds(question, 10, cluster_of_nodes(), {}, cost);
  EXPECT_TRUE(out.reduces_gradients);
  EXPECT_FALSE(out.batch_where_gradients_limit);
}

TEST(LimitThresholds, NothingWithoutTraffic) {
  TrainingCost cost;
  cost.compute = Seconds(1.0);
  const LimitThresholds out = limit_thresholds({}, 10, cluster_of_nodes(), {}, cost);
  EXPECT_FALSE(out.compute_over_weights_traffic || out.compute_over_tensor_traffic || out.compute_over_memory_traffic);
  EXPECT_FALSE(out.reduces_gradients);
}

// Four chips share 8 sequences of 256 tokens: each takes the FLOP of two. At 2 s a step, executed FLOP of 60 over a
// peak of 100 per second are 30 %.
TEST(Utilisation, HandWorked) {
  const model::Transformer model = testing::by_hand::small_llama();
  TrainingQuestion question;
  question.setup.model = &model;
  question.sequences = 8.0;
  question.chips = 4.0;
  const Flops sequence = model::training_flops(model, 256, 0);
  EXPECT_EQ(model_flops_per_chip(question, 256), 2.0 * sequence);
  TrainingCost cost;
  cost.estimate = Seconds(2.0);
  cost.executed_flops = Flops(60.0);
  const Utilisation out = utilisation(question, 256, cost, FlopsPerSecond(100.0));
  EXPECT_EQ(out.useful, sequence / 1_s);
  EXPECT_DOUBLE_EQ(out.mfu, sequence.value() / 100.0);
  EXPECT_DOUBLE_EQ(out.hfu, 0.3);
  EXPECT_EQ(out.rate, TokensPerSecond(1024.0));
  EXPECT_EQ(out.chip_rate, TokensPerSecond(256.0));
}

TEST(Utilisation, IsRelativeToTheFasterFormat) {
  hardware::Chip chip = *hardware::Catalogue::builtin().chip("h100-sxm", "test");
  EXPECT_EQ(utilisation_format(chip, Dtype::bf16, Dtype::fp32), Dtype::bf16);
  EXPECT_EQ(utilisation_format(chip, Dtype::fp8, Dtype::bf16), Dtype::fp8);
  chip.peak[static_cast<std::size_t>(Dtype::fp8)]->value = 1_TFLOP_per_s;
  EXPECT_EQ(utilisation_format(chip, Dtype::fp8, Dtype::bf16), Dtype::bf16);
}

// The other strategy computes 1 s longer, 3 s of recomputation included: its kernels are 2 s faster.
TEST(SlowestDifference, SeparatesRecomputationFromKernels) {
  TrainingCost best = balanced_cost(), other = best;
  best.parts.compute = 10_s;
  other.parts.compute = 11_s;
  other.parts.recompute = 3_s;
  other.parts.bubble = 1_s;
  EXPECT_EQ(slowest_difference(best, other).name, "recomputation");
  EXPECT_EQ(slowest_difference(best, other).time, 3_s);
  EXPECT_EQ(slowest_difference(other, best).name, "less efficient kernels");
  EXPECT_EQ(slowest_difference(other, best).time, 2_s);
  EXPECT_EQ(slowest_difference(best, best).time, 0_s);
}

}  // namespace
}  // namespace assay::training

#include "assay/training/limits.h"

#include <gtest/gtest.h>

namespace assay::training {
namespace {

TrainingCost balanced_cost() {
  TrainingCost cost;
  cost.compute = 4.0;
  cost.memory_time = 1.0;
  cost.network[static_cast<std::size_t>(Role::fsdp)] = 3.0;
  cost.end_network[static_cast<std::size_t>(Role::fsdp)] = 1.0;
  cost.network[static_cast<std::size_t>(Role::tensor)] = 2.0;
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
  cost.fill = 5.0;
  EXPECT_EQ(limiter_of(cost), "bubble");
}

TEST(StepLimits, WaitingCountsOnlyWhereLinksAreNotTheBusiest) {
  TrainingCost cost = balanced_cost();
  cost.parts.tensor = 10.0;
  EXPECT_EQ(limiter_of(cost), "waiting");
  cost.network[static_cast<std::size_t>(Role::fsdp)] = 6.0;
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
  cost.network[static_cast<std::size_t>(Role::fsdp)] = 9.0;
  const LimitThresholds out = limit_thresholds(question, 10, cluster_of_nodes(), {}, cost);
  EXPECT_TRUE(out.reduces_gradients);
  EXPECT_FALSE(out.batch_where_gradients_limit);
}

TEST(LimitThresholds, NothingWithoutTraffic) {
  TrainingCost cost;
  cost.compute = 1.0;
  const LimitThresholds out = limit_thresholds({}, 10, cluster_of_nodes(), {}, cost);
  EXPECT_FALSE(out.compute_over_weights_traffic || out.compute_over_tensor_traffic || out.compute_over_memory_traffic);
  EXPECT_FALSE(out.reduces_gradients);
}

}  // namespace
}  // namespace assay::training

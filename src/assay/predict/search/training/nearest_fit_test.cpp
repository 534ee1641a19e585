#include "assay/predict/search/training/nearest_fit.h"

#include <gtest/gtest.h>

#include "assay/model/accounting.h"
#include "assay/testing/training_search_case.h"

namespace assay::search {
namespace {

using namespace testing::training_search;

training::Strategy data_parallel(std::int64_t ways) {
  training::Strategy strategy;
  strategy.parallelism.data = ways;
  strategy.micro_batch = 4;
  return strategy;
}

void set_capacity(SearchCase& c, Bytes capacity) { c.cluster.chip.memory.front().capacity.value = capacity; }

// bf16 weights, fp32 gradients and 12 bytes of optimizer states: 18 bytes per parameter, on chips of 100 MB.
TEST(NearestFit, CountsTheChipsThatTheStatesNeed) {
  SearchCase c("h100-sxm:8");
  set_capacity(c, 100_MB);
  const auto parameters = static_cast<double>(model::parameter_counts(c.model).total);
  const lower::Formats& formats = c.question.setup.formats;
  const double each = storage(formats.weights, 1.0).value() + storage(formats.gradients, 1.0).value() +
                      c.question.setup.optimizer.state_bytes().value();
  const NearestFit found = nearest_fit(c.question, sequence, c.cluster, data_parallel(8));
  EXPECT_DOUBLE_EQ(found.states.value(), parameters * each);
  EXPECT_EQ(found.chips, std::ceil(parameters * each / 1e8));
}

TEST(NearestFit, NoChangeHelpsWhereEveryStrategyIsTooLarge) {
  SearchCase c("h100-sxm:8");
  set_capacity(c, 1_MB);
  const NearestFit found = nearest_fit(c.question, sequence, c.cluster, data_parallel(8));
  EXPECT_FALSE(found.change);
  EXPECT_GT(found.chips, 8.0);
}

TEST(NearestFit, TakesTheChangeThatNeedsTheLeastMemory) {
  SearchCase c("h100-sxm:8");
  const training::Strategy strategy = data_parallel(8);
  const auto cost = training::price_strategy(c.question, sequence, c.cluster, strategy);
  ASSERT_TRUE(cost);
  set_capacity(c, Bytes(cost->memory.total().value() - 1.0));
  const NearestFit found = nearest_fit(c.question, sequence, c.cluster, strategy);
  ASSERT_TRUE(found.change);
  EXPECT_TRUE(found.change->fits);
  EXPECT_LT(found.change->on_chip.value(), cost->memory.total().value());
  EXPECT_EQ(found.change->host_shortfall, Bytes(0));
  for (const auto& edit :
       {+[](training::Strategy& s) { s.recompute = lower::Recompute::full(); },
        +[](training::Strategy& s) { s.parallelism.zero = 3; }, +[](training::Strategy& s) { s.micro_batch = 1; }}) {
    training::Strategy other = strategy;
    edit(other);
    const auto needs = training::price_strategy(c.question, sequence, c.cluster, other);
    ASSERT_TRUE(needs);
    EXPECT_GE(needs->memory.total().value(), found.change->on_chip.value());
  }
}

// With hardly any host memory, offloading lacks all that it would move there.
TEST(NearestFit, HostMemoryIsALimitToo) {
  SearchCase c("h100-sxm:1");
  c.question.host = {BytesPerSecond(30e9), 0.8, BytesPerSecond(40e9), Bytes(1.0)};
  training::Strategy strategy;
  strategy.recompute = lower::Recompute::full();
  const auto cost = training::price_strategy(c.question, sequence, c.cluster, strategy);
  set_capacity(c, Bytes(cost->memory.total().value() - 1.0));
  const NearestFit found = nearest_fit(c.question, sequence, c.cluster, strategy);
  ASSERT_TRUE(found.change);
  EXPECT_FALSE(found.change->fits);
  EXPECT_DOUBLE_EQ(found.change->host_shortfall.value(), found.change->on_host.value() - 1.0);
}

}  // namespace
}  // namespace assay::search

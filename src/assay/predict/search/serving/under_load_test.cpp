#include "assay/predict/search/serving/under_load.h"

#include <gtest/gtest.h>

#include "assay/testing/serving_case.h"

namespace assay::search {
namespace {

serving::LoadedTimes times_at(const testing::ServingCase& c, const serving::ServingPoint& point, Hertz rate) {
  const auto server = *serving::loaded_server(c.question, c.cluster, point);
  return serving::loaded_times(server, rate / server.replicas);
}

TEST(UnderLoad, NoPointOfTheFrontEndsRequestsEarlier) {
  const testing::ServingCase c("llama-3-8b", "h100-sxm:2");
  const ServingSearch found = c.search();
  for (const Hertz rate : {Hertz(0.1), Hertz(4.0)}) {
    const auto best = best_under_load(c.question, c.cluster, found, {}, rate);
    ASSERT_TRUE(best);
    const serving::LoadedTimes times = times_at(c, *best, rate);
    ASSERT_TRUE(times.stable);
    for (const serving::ServingPoint& other : found.front) {
      // Step times are interpolated in a table up to the largest batch, so smaller batches differ by some 1e-4.
      const serving::LoadedTimes its = times_at(c, other, rate);
      if (its.stable) EXPECT_LE(times.last_token, its.last_token * (1.0 + 1e-3)) << other.batch;
    }
  }
}

TEST(UnderLoad, WhereNothingKeepsUpTheMostIsServed) {
  const testing::ServingCase c("llama-3-8b", "h100-sxm:2");
  const ServingSearch found = c.search();
  constexpr Hertz rate(1e6);
  const auto best = best_under_load(c.question, c.cluster, found, {}, rate);
  ASSERT_TRUE(best);
  const auto saturation = [&](const serving::ServingPoint& point) {
    return times_at(c, point, rate).saturation * static_cast<double>(point.strategy.data);
  };
  for (const serving::ServingPoint& other : found.front)
    EXPECT_GE(saturation(*best), saturation(other) * (1.0 - 1e-9)) << other.batch;
}

TEST(UnderLoad, AGivenBatchIsKept) {
  const testing::ServingCase c("llama-3-8b", "h100-sxm:2");
  ServingChoices choices;
  choices.batch = 8;
  const ServingSearch found = c.search(choices);
  EXPECT_EQ(best_under_load(c.question, c.cluster, found, choices, Hertz(1.0))->strategy, found.best->strategy);
}

TEST(UnderLoad, LimitsHoldForBothPercentiles) {
  serving::LoadedTimes times;
  times.stable = true;
  times.first_token.p99 = Seconds(0.5);
  times.per_token.p99 = Seconds(0.02);
  ServingChoices choices;
  EXPECT_TRUE(meets_limits(times, choices));
  choices.first_token = Seconds(0.5);
  choices.per_token = Seconds(0.02);
  EXPECT_TRUE(meets_limits(times, choices));
  choices.per_token = Seconds(0.01);
  EXPECT_FALSE(meets_limits(times, choices));
  times.stable = false;
  EXPECT_FALSE(meets_limits(times, {}));
}

}  // namespace
}  // namespace assay::search

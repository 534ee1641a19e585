#include "assay/predict/training/run.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

namespace assay::training {
namespace {

// M = 1000 s, R = 500 s, C = 50 s, T = 300 s: 0.3 / (e^0.5 (e^0.35 - 1)) = 0.3 / (1.6487 x 0.41907) = 0.4342.
TEST(UsefulShare, HandWorked) { EXPECT_NEAR(useful_share(1000_s, 500_s, 50_s, 300_s), 0.4342, 1e-4); }

TEST(UsefulShare, IsWhatARunWithRandomFailuresReaches) {
  constexpr double every = 1000.0, restart = 500.0, checkpoint = 50.0, interval = 300.0;
  std::mt19937_64 random(1);
  std::exponential_distribution<double> until_failure(1.0 / every);
  double now = 0.0, failure = until_failure(random);
  constexpr int intervals = 200'000;
  for (int done = 0; done < intervals;) {
    if (failure >= now + interval + checkpoint) {
      now += interval + checkpoint;
      ++done;
      continue;
    }
    do {  // a restart may fail as well
      now = failure;
      failure = now + until_failure(random);
    } while (failure < now + restart);
    now += restart;
  }
  EXPECT_NEAR(intervals * interval / now, useful_share(1000_s, 500_s, 50_s, 300_s), 0.003);
}

TEST(UsefulShare, NoFailuresCostTheCheckpointsOnly) {
  EXPECT_NEAR(useful_share(Seconds(1e12), 500_s, 50_s, 450_s), 0.9, 1e-6);
}

TEST(BestInterval, NoOtherIsBetter) {
  for (const Seconds every : {10_s, 100_s, 1000_s, 1000000_s}) {
    const Seconds best = best_interval(every, 50_s);
    for (const double other : {0.9, 0.99, 1.01, 1.1})
      EXPECT_LT(useful_share(every, 100_s, 50_s, other * best), useful_share(every, 100_s, 50_s, best)) << other;
  }
}

TEST(BestInterval, IsThatOfYoungWhereFailuresAreRare) {
  EXPECT_NEAR(best_interval(Seconds(1e9), 50_s) / Seconds(std::sqrt(2.0 * 50.0 * 1e9)), 1.0, 1e-3);
}

TEST(TrainingRun, FailuresStretchTimeAndCost) {
  TrainingCost step;
  step.lower = Seconds(1.0);
  step.estimate = Seconds(2.0);
  step.upper = Seconds(3.0);
  RunQuestion question;
  question.steps = 100.0;
  question.chips = 4.0;
  question.price = DollarsPerSecond(0.5);
  const TrainingRun without = training_run(step, question);
  EXPECT_EQ(without.time, 200_s);
  EXPECT_EQ(*without.cost, Dollars(400.0));
  // A checkpoint of 50 s and an interval of 300 s, as in the case worked by hand above.
  question.failures = Failures{1000_s, 500_s, Bytes(5e9), BytesPerSecond(1e8), 300_s};
  const TrainingRun run = training_run(step, question);
  EXPECT_EQ(run.goodput->checkpoint_time, 50_s);
  EXPECT_NEAR(run.goodput->goodput, 0.4342, 1e-4);
  EXPECT_DOUBLE_EQ(run.time.value(), 200.0 / run.goodput->goodput);
  EXPECT_DOUBLE_EQ(run.cost->value(), 400.0 / run.goodput->goodput);
}

TEST(TrainingRun, NeverEndsWhereRestartsOutlastFailures) {
  TrainingCost step;
  step.estimate = Seconds(1.0);
  RunQuestion question;
  question.failures = Failures{1_s, 1000_s, Bytes(1e9), BytesPerSecond(1e9)};
  const TrainingRun run = training_run(step, question);
  EXPECT_FALSE(run.ends());
  EXPECT_TRUE(std::isinf(run.time.value()));
}

TEST(PowerPerChip, ALimitLowersTheChipOnly) {
  hardware::Power power;
  power.chip.value = Watts(700.0);
  EXPECT_EQ(chip_power(Plain{}, power, Watts(500.0)), Watts(500.0));
  power.system.emplace();
  power.system->value = Watts(1000.0);
  EXPECT_EQ(chip_power(Plain{}, power, std::nullopt), Watts(1000.0));
  EXPECT_EQ(chip_power(Plain{}, power, Watts(500.0)), Watts(800.0));
}

}  // namespace
}  // namespace assay::training

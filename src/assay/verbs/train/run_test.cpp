#include "assay/verbs/train/run.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

namespace assay::verbs::train {
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
      now += interval + checkpoint, ++done;
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

}  // namespace
}  // namespace assay::verbs::train

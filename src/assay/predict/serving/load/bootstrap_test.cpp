#include "assay/predict/serving/load/bootstrap.h"

#include <gtest/gtest.h>

#include <cmath>

#include "assay/predict/serving/load/random.h"

namespace assay::serving {
namespace {

/// Values of an exponential time; `together`: so many in a row are the same.
struct Drawn {
  Quantiles all;
  BlockedCounts blocks{2};
  Drawn(std::uint64_t seed, int requests, int together) {
    Random random(seed);
    double value = 0.0;
    for (int i = 0; i < requests; ++i) {
      if (i % together == 0) value = random.exponential(1.0);
      blocks.add(1, 0.01 * i, all.add(value));
    }
  }
};

// The 90th percentile of an exponential time is ln 10; 95 of 100 intervals should hold it, at least 88 of them do.
TEST(BlockedCounts, IntervalsHoldThePercentileAsOftenAsTheySay) {
  for (const int together : {1, 20}) {
    int held = 0;
    for (std::uint64_t seed = 1; seed <= 100; ++seed) {
      const auto found = Drawn(seed, 5000, together).blocks.intervals(1, {0.9}, seed);
      ASSERT_EQ(found.size(), 1u);
      held += found[0].low <= std::log(10.0) && std::log(10.0) <= found[0].high;
    }
    EXPECT_GE(held, 88) << together;
  }
}

TEST(BlockedCounts, RequestsThatAreLateTogetherSayLess) {
  const auto width = [](int together) {
    const auto found = Drawn(1, 20000, together).blocks.intervals(1, {0.9}, 1);
    return found[0].high - found[0].low;
  };
  EXPECT_GT(width(100), 2.0 * width(1));
}

TEST(BlockedCounts, TheyHoldThePercentileItselfAndFollowFromTheSeed) {
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    const Drawn drawn(seed, 5000, 1);
    const std::vector<double> shares{0.5, 0.9, 0.99};
    const auto found = drawn.blocks.intervals(1, shares, 3), same = drawn.blocks.intervals(1, shares, 3);
    for (std::size_t i = 0; i < shares.size(); ++i) {
      EXPECT_LE(found[i].low, drawn.all.at(shares[i]));
      EXPECT_GE(found[i].high, drawn.all.at(shares[i]));
      EXPECT_EQ(found[i].low, same[i].low);
    }
  }
}

TEST(BlockedCounts, FewRequestsSayNothing) {
  EXPECT_TRUE(Drawn(1, 99, 1).blocks.intervals(1, {0.5}, 1).empty());
  EXPECT_TRUE(BlockedCounts(2).intervals(0, {0.5}, 1).empty());
}

}  // namespace
}  // namespace assay::serving

#include "assay/predict/search/threshold.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <utility>
#include <vector>

namespace assay::search {
namespace {

TEST(Threshold, FindsTheSmallestValueThatMeetsACondition) {
  const Threshold found = find_threshold([](std::int64_t n) { return n >= 652800; }, {});
  EXPECT_EQ(found.kind, Threshold::Kind::smallest);
  EXPECT_EQ(found.value, 652800);
  EXPECT_EQ(found.nearest_failing, 652799);
  EXPECT_TRUE(found.exact);
  EXPECT_LT(found.tested.size(), 60u);
}

TEST(Threshold, FindsTheLargestValueWhenTheConditionHoldsAtTheStart) {
  const Threshold found = find_threshold([](std::int64_t n) { return n <= 113; }, {});
  EXPECT_EQ(found.kind, Threshold::Kind::largest);
  EXPECT_EQ(found.value, 113);
  EXPECT_EQ(found.nearest_failing, 114);
}

TEST(Threshold, StepsOverValuesThatAreNotAllowed) {
  // Only divisors of 8960 are allowed; the smallest of at least 30 is 32.
  const auto divisor = [](std::int64_t n) -> std::optional<bool> {
    if (n > 8960 || 8960 % n != 0) return std::nullopt;
    return n >= 30;
  };
  const Threshold found = find_threshold(divisor, {});
  EXPECT_EQ(found.value, 32);
  EXPECT_EQ(found.nearest_failing, 28);
}

TEST(Threshold, KeepsToMultiplesWhereOnlyTheseAreAllowed) {
  const auto multiple = [](std::int64_t n) -> std::optional<bool> {
    if (n % 4096 != 0) return std::nullopt;
    return n >= 435200;
  };
  const Threshold found = find_threshold(multiple, {});
  EXPECT_EQ(found.value, 438272);  // 107 x 4096; 106 x 4096 = 434176 is below
  EXPECT_EQ(found.nearest_failing, 434176);
}

TEST(Threshold, AConditionThatComesAndGoesIsAnsweredByItsOutermostValue) {
  // Batches of 16384 tokens: even ones from 44 up and all from 50 up.
  const auto test = [](std::int64_t n) -> std::optional<bool> {
    if (n % 16384 != 0) return std::nullopt;
    const std::int64_t k = n / 16384;
    return k >= 50 || (k >= 44 && k % 2 == 0);
  };
  const Threshold found = find_threshold(test, {});
  EXPECT_EQ(found.kind, Threshold::Kind::smallest);
  EXPECT_EQ(found.value, 44 * 16384);
  EXPECT_EQ(found.nearest_failing, 43 * 16384);
  EXPECT_TRUE(found.alternates);
  EXPECT_TRUE(found.exact);
  // The largest value is found in the same way.
  const Threshold largest = find_threshold(
      [&](std::int64_t n) -> std::optional<bool> {
        const auto holds = test(n);
        return holds ? std::optional(!*holds) : std::nullopt;
      },
      {});
  EXPECT_EQ(largest.kind, Threshold::Kind::largest);
  EXPECT_EQ(largest.value, 49 * 16384);
  EXPECT_EQ(largest.nearest_failing, 50 * 16384);
  EXPECT_TRUE(largest.alternates);
}

TEST(Threshold, SaysWhenNothingChangesOrNothingIsAllowed) {
  EXPECT_EQ(find_threshold([](std::int64_t) { return true; }, {}).kind, Threshold::Kind::always);
  EXPECT_EQ(find_threshold([](std::int64_t) { return false; }, {}).kind, Threshold::Kind::never);
  EXPECT_EQ(find_threshold([](std::int64_t) { return std::optional<bool>(); }, {}).kind, Threshold::Kind::nothing);
}

RC_GTEST_PROP(Threshold, ASingleChangeIsFoundExactly, ()) {
  const auto at = *rc::gen::inRange<std::int64_t>(2, std::int64_t{1} << 40);
  const bool rises = *rc::gen::arbitrary<bool>();
  const Threshold found = find_threshold([&](std::int64_t n) { return (n >= at) == rises; }, {});
  RC_ASSERT(found.exact);
  RC_ASSERT(found.value == (rises ? at : at - 1));
}

TEST(NearestChange, FindsTheNearerOfTwoSides) {
  const auto above = [](double f) { return f >= 3.1; };
  const auto found = nearest_change(above, 8.0, 1e-4);
  ASSERT_TRUE(found);
  EXPECT_GE(*found, 3.1);
  EXPECT_NEAR(*found, 3.1, 4e-4);
  const auto both = [](double f) { return f >= 3.1 || f <= 0.4; };
  EXPECT_NEAR(nearest_change(both, 8.0, 1e-4).value_or(0.0), 0.4, 1e-4);
  const auto close = [](double f) { return f >= 1.2 || f <= 0.99; };
  EXPECT_NEAR(nearest_change(close, 8.0, 1e-4).value_or(0.0), 0.99, 2e-4);
}

// What is known of a costly test may be wrong about where it ends, but not the answer.
TEST(NearestChange, ACostlyTestGivesTheSameAnswerInFewerCalls) {
  for (const double at : {1.07, 1.4, 1.9, 2.6}) {
    std::vector<double> rivals;  // each beats the present one from some factor up
    int calls = 0;
    const auto changed = [&](double f) {
      ++calls;
      if (f >= at) rivals.push_back(std::max(at, 0.9 * f));
      return f >= at;
    };
    const auto known = [&](double f) {
      return std::any_of(rivals.begin(), rivals.end(), [&](double from) { return f >= from; });
    };
    const auto found = nearest_change(changed, known, 8.0, 1e-3);
    const int costly = std::exchange(calls, 0);
    EXPECT_EQ(found, nearest_change([&](double f) { return ++calls, f >= at; }, 8.0, 1e-3)) << at;
    EXPECT_LT(costly, calls) << at;
  }
}

TEST(NearestChange, IsNothingBeyondItsReach) {
  EXPECT_FALSE(nearest_change([](double f) { return f > 5.0; }, 4.0, 1e-3));
  EXPECT_FALSE(nearest_change([](double) { return false; }, 64.0, 1e-3));
}

// A search may find what pricing again does not: then it is located by searches alone, and ends.
TEST(NearestChange, EndsWhereWhatChangesIsNotKnown) {
  const auto changed = [](double f) { return f >= 1.3; };
  const auto known = [](double f) { return f >= 1.9; };
  EXPECT_NEAR(nearest_change(changed, known, 4.0, 1e-4).value_or(0.0), 1.3, 2e-4);
}

}  // namespace
}  // namespace assay::search

#include "assay/profile/trace/intervals.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

namespace assay::trace {
namespace {

TEST(Intervals, UnionAndDifferenceByHand) {
  const Intervals all = united({{5, 9}, {0, 3}, {2, 4}, {9, 10}});
  ASSERT_EQ(all.size(), 2u);
  EXPECT_EQ(covered(all), 9);  // 0 to 4 and 5 to 10
  EXPECT_EQ(covered(difference(all, united({{1, 6}}))), 5);
}

RC_GTEST_PROP(Intervals, PartsAddUpToTheUnion,
              (const std::vector<std::pair<std::uint8_t, std::uint8_t>>& first,
               const std::vector<std::pair<std::uint8_t, std::uint8_t>>& second)) {
  const auto intervals = [](const auto& pairs) {
    std::vector<Interval> out;
    for (const auto& [start, length] : pairs) out.push_back({start, start + length});
    return out;
  };
  std::vector<Interval> both = intervals(first);
  for (const Interval& one : intervals(second)) both.push_back(one);
  const Intervals a = united(intervals(first)), b = united(intervals(second));
  RC_ASSERT(covered(united(both)) == covered(a) + covered(difference(b, a)));
  RC_ASSERT(covered(difference(a, a)) == 0);
}

}  // namespace
}  // namespace assay::trace

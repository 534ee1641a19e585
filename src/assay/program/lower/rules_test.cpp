#include "assay/program/lower/rules.h"

#include <gtest/gtest.h>

namespace assay::lower {
namespace {

constexpr program::AxisList list_of(std::initializer_list<int> axes) {
  program::AxisList list;
  for (const int axis : axes) list = list.pushed(axis);
  return list;
}

TEST(AxisLists, BeginWithTheirOuterAxes) {
  EXPECT_TRUE(begins_with(list_of({0, 1}), {}));
  EXPECT_TRUE(begins_with(list_of({0, 1}), list_of({0})));
  EXPECT_TRUE(begins_with(list_of({0, 1}), list_of({0, 1})));
  EXPECT_FALSE(begins_with(list_of({0, 1}), list_of({1})));
  EXPECT_FALSE(begins_with(list_of({0, 1}), list_of({1, 0})));
  EXPECT_FALSE(begins_with(list_of({0}), list_of({0, 1})));
}

TEST(AxisLists, HaveACommonPrefix) {
  EXPECT_EQ(common_prefix(list_of({0, 1, 2}), list_of({0, 1, 3})), list_of({0, 1}));
  EXPECT_EQ(common_prefix(list_of({0, 1}), list_of({0, 1, 3})), list_of({0, 1}));
  EXPECT_EQ(common_prefix(list_of({0, 1, 2}), list_of({0, 2, 1})), list_of({0}));
  EXPECT_EQ(common_prefix(list_of({0, 1}), list_of({1, 0})), program::AxisList());
  EXPECT_EQ(common_prefix({}, list_of({1})), program::AxisList());
}

TEST(AxisLists, LoseAxesAndAreJoined) {
  EXPECT_EQ(remaining(list_of({2, 0, 1}), program::axis_bit(0)), list_of({2, 1}));
  EXPECT_EQ(joined(list_of({2}), list_of({0, 1})), list_of({2, 0, 1}));
}

}  // namespace
}  // namespace assay::lower

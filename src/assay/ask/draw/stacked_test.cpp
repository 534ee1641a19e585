#include "assay/ask/draw/stacked.h"

#include <gtest/gtest.h>

namespace assay::draw {
namespace {

TEST(Stacked, TheSecondLiesBelowTheFirst) {
  Scene upper, lower;
  upper.width = 100;
  upper.height = 40;
  upper.title = "a";
  upper.description = "A.";
  lower.width = 120;
  lower.height = 30;
  lower.title = "b";
  lower.description = "B.";
  upper.add(Rectangle{1, 2, 3, 4});
  lower.add(Rectangle{1, 2, 3, 4});
  lower.add(Polyline{{{5, 6}, {7, 8}}, {}});
  lower.add(Polygon{{{5, 6}}, {}});
  lower.add(Marker{{9, 10}});
  lower.add(Label{{11, 12}, "x"});
  const Scene both = stacked(upper, lower);
  EXPECT_EQ(both.width, 120);
  EXPECT_EQ(both.height, 70);
  EXPECT_EQ(both.title, "a; b");
  EXPECT_EQ(both.description, "A. B.");
  ASSERT_EQ(both.items.size(), 6u);
  EXPECT_EQ(std::get<Rectangle>(both.items[0].shape).y, 2);
  EXPECT_EQ(std::get<Rectangle>(both.items[1].shape).y, 42);
  EXPECT_EQ(std::get<Polyline>(both.items[2].shape).points[1].y, 48);
  EXPECT_EQ(std::get<Polygon>(both.items[3].shape).points[0].y, 46);
  EXPECT_EQ(std::get<Marker>(both.items[4].shape).centre.y, 50);
  EXPECT_EQ(std::get<Label>(both.items[5].shape).at.y, 52);
}

}  // namespace
}  // namespace assay::draw

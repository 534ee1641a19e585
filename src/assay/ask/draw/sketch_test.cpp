#include "assay/ask/draw/sketch.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "assay/ask/draw/lettering.h"

namespace assay::draw {
namespace {

TEST(Sketch, CoversItsShapesAndItsText) {
  Sketch sketch;
  EXPECT_TRUE(sketch.empty());
  sketch.add(Rectangle{10, 20, 30, 40});
  sketch.add(Label{{0, 100}, "wide", 10.0, Anchor::end});
  EXPECT_DOUBLE_EQ(sketch.bounds().left, -text_width("wide", 10.0));
  EXPECT_DOUBLE_EQ(sketch.bounds().top, 20.0);
  EXPECT_DOUBLE_EQ(sketch.bounds().right, 40.0);
  EXPECT_DOUBLE_EQ(sketch.bounds().bottom, 102.5);
}

TEST(Sketch, IsMovedAsAWhole) {
  Sketch part, whole;
  part.line({0, 0}, {3, 4}, {});
  part.add(Marker{.centre = {1, 1}, .radius = 2.0});
  whole.append(part, 10, 20);
  EXPECT_DOUBLE_EQ(whole.bounds().left, 9.0);
  EXPECT_DOUBLE_EQ(whole.bounds().bottom, 24.0);
  EXPECT_EQ(whole.items().size(), 2u);
}

TEST(Sketch, TextBlocksAreAsHighAsTheySay) {
  Sketch sketch;
  sketch.text_block({0, 0}, {"a", "b", "c"}, Anchor::start, 10.0);
  EXPECT_DOUBLE_EQ(sketch.bounds().top, 0.0);
  EXPECT_DOUBLE_EQ(sketch.bounds().bottom, text_block_height(3, 10.0));
}

TEST(RoundedPath, KeepsItsEndsAndCutsItsCorners) {
  const auto path = rounded_path({{0, 0}, {10, 0}, {10, 10}}, {4.0});
  EXPECT_EQ(path.front().x, 0.0);
  EXPECT_EQ(path.back().y, 10.0);
  // The nearest point to the corner of a quarter circle of radius 4 is 4 (sqrt(2) - 1) away from it.
  double nearest = 100.0;
  for (const PlotPoint& point : path) nearest = std::min(nearest, std::hypot(point.x - 10.0, point.y));
  EXPECT_NEAR(nearest, 4.0 * (std::sqrt(2.0) - 1.0), 1e-9);
}

TEST(RoundedPath, NeighbouringCornersShareTheLineBetweenThem) {
  const auto path = rounded_path({{0, 0}, {10, 0}, {10, 6}, {0, 6}}, {100.0, 200.0});
  for (std::size_t i = 1; i < path.size(); ++i) EXPECT_GE(path[i].y, path[i - 1].y - 1e-9);
}

TEST(HalfEllipse, GoesFromEndToEndByWayOfItsBulge) {
  const auto path = half_ellipse({0, 0}, {10, 0}, {0, -3});
  EXPECT_NEAR(path.back().x, 10.0, 1e-12);
  EXPECT_NEAR(path[path.size() / 2].y, -3.0, 1e-12);
}

TEST(RowSlots, LongRowsHaveAGap) {
  const RowSlots all = row_slots(16, 16, 8, 4);
  EXPECT_EQ(all.size(), 16u);
  EXPECT_FALSE(all.broken());
  const RowSlots some = row_slots(10'000'000, 16, 8, 4);
  EXPECT_TRUE(some.broken());
  EXPECT_EQ(some.size(), 12u);
  EXPECT_EQ(some.index.back(), 9'999'999);
  EXPECT_EQ(some.head, 8u);
  EXPECT_EQ(row_slots(0, 16, 8, 4).size(), 0u);
}

}  // namespace
}  // namespace assay::draw

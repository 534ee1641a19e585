#include "assay/ask/draw/chart/curve.h"

#include <gtest/gtest.h>

#include <cmath>

namespace assay::draw {
namespace {

constexpr PlotFrame square = {0, 0, 100, 100};
const AxisScale across = {ScaleKind::linear, {0, 10}, 0, 100};
const AxisScale up = {ScaleKind::linear, {0, 10}, 100, 0};

double polygon_area(const std::vector<PlotPoint>& points) {
  double twice = 0.0;
  for (std::size_t i = 0; i < points.size(); ++i) {
    const PlotPoint& a = points[i];
    const PlotPoint& b = points[(i + 1) % points.size()];
    twice += a.x * b.y - b.x * a.y;
  }
  return std::abs(twice) / 2.0;
}

TEST(Traced, BreaksWhereAPointHasNoPlace) {
  const auto runs =
      traced({{0, 0}, {1, 1}, {2, std::nan("")}, {3, 3}, {INFINITY, 4}, {5, 5}, {6, 6}}, across, up, false);
  ASSERT_EQ(runs.size(), 3u);
  EXPECT_EQ(runs[0].size(), 2u);
  EXPECT_EQ(runs[1].size(), 1u);
  EXPECT_EQ(runs[2].size(), 2u);
  EXPECT_DOUBLE_EQ(runs[1][0].x, 30);
  EXPECT_DOUBLE_EQ(runs[1][0].y, 70);
}

TEST(Traced, DropsWhatALogarithmicAxisCannotShow) {
  const AxisScale log = {ScaleKind::log, {1, 100}, 100, 0};
  EXPECT_EQ(traced({{1, 0}, {2, -5}, {3, 10}}, across, log, false).size(), 1u);
}

TEST(Traced, StepsHoldTheirValueUntilTheNextPoint) {
  const auto runs = traced({{0, 1}, {5, 2}}, across, up, true);
  ASSERT_EQ(runs.size(), 1u);
  ASSERT_EQ(runs[0].size(), 3u);
  EXPECT_DOUBLE_EQ(runs[0][1].x, 50);
  EXPECT_DOUBLE_EQ(runs[0][1].y, 90);
}

TEST(Traced, MergesPointsThatNoReaderCouldTellApart) {
  std::vector<PlotPoint> data;
  for (int i = 0; i < 100000; ++i) data.push_back({i * 1e-4, 5});
  EXPECT_LT(traced(data, across, up, false)[0].size(), 6000u);
}

TEST(Clipped, KeepsThePartsInTheFrame) {
  const auto parts = clipped({{-50, 50}, {50, 50}, {50, 250}, {90, 250}, {90, 50}}, square);
  ASSERT_EQ(parts.size(), 2u);
  EXPECT_NEAR(parts[0].front().x, 0, 0.02);
  EXPECT_NEAR(parts[0].back().y, 100, 0.02);
  EXPECT_NEAR(parts[1].front().y, 100, 0.02);
}

TEST(Clipped, ALineAlongTheEdgeIsInTheFrame) { EXPECT_EQ(clipped({{0, -1e-12}, {100, -1e-12}}, square).size(), 1u); }

TEST(Clipped, NothingIsLeftOfALineOutside) {
  EXPECT_TRUE(clipped({{-10, -10}, {200, -5}}, square).empty());
  EXPECT_TRUE(clipped({{-10, 50}}, square).empty());
  EXPECT_TRUE(clipped({}, square).empty());
}

TEST(LengthWithin, CountsOnlyThePartInTheFrame) {
  EXPECT_NEAR(length_within({-50, 50}, {150, 50}, square), 100, 0.05);
  EXPECT_EQ(length_within({-50, -50}, {-10, 50}, square), 0.0);
}

TEST(ClippedArea, IsThatBetweenTheLineAndTheBase) {
  EXPECT_NEAR(polygon_area(clipped_area({{0, 50}, {100, 50}}, 100, square)), 5000, 1e-6);
  EXPECT_NEAR(polygon_area(clipped_area({{-100, -400}, {300, -400}}, 100, square)), 10000, 1e-6);
  EXPECT_TRUE(clipped_area({{50, 50}}, 100, square).empty());
}

TEST(PlacesAlong, AreEquallyFarApartAcrossCorners) {
  const auto places = places_along({{{0, 0}, {50, 0}, {50, 50}}}, 20, 10);
  ASSERT_EQ(places.size(), 5u);
  EXPECT_DOUBLE_EQ(places[0].x, 10);
  EXPECT_DOUBLE_EQ(places[2].x, 50);
  EXPECT_DOUBLE_EQ(places[3].y, 20);
}

}  // namespace
}  // namespace assay::draw

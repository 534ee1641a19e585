#include "assay/ask/draw/chart/label_placement.h"

#include <gtest/gtest.h>

namespace assay::draw {
namespace {

constexpr PlotFrame frame = {0, 0, 400, 300};

bool touching(const LabelBox& a, const LabelBox& b) {
  return a.x < b.x + b.width && b.x < a.x + a.width && a.y < b.y + b.height && b.y < a.y + a.height;
}

bool inside(const LabelBox& box) {
  return box.x >= frame.left && box.y >= frame.top && box.x + box.width <= frame.right &&
         box.y + box.height <= frame.bottom;
}

TEST(PlaceLabels, ALonelyPointHasItsNameToTheRight) {
  const auto placed = place_labels({around_point({100, 100}, 60, 15)}, {}, frame);
  ASSERT_TRUE(placed[0]);
  EXPECT_GT(placed[0]->box.x, 100);
  EXPECT_EQ(placed[0]->anchor, Anchor::start);
  EXPECT_FALSE(placed[0]->leader);
}

TEST(PlaceLabels, NamesStayInsideTheFrame) {
  for (const PlotPoint corner : {PlotPoint{0, 0}, PlotPoint{400, 0}, PlotPoint{0, 300}, PlotPoint{400, 300}}) {
    const auto placed = place_labels({around_point(corner, 80, 15)}, {}, frame);
    ASSERT_TRUE(placed[0]);
    EXPECT_TRUE(inside(placed[0]->box));
  }
}

TEST(PlaceLabels, NamesOfOnePlaceDoNotTouch) {
  const std::vector<std::vector<LabelPlace>> labels(8, around_point({200, 150}, 70, 15));
  const auto placed = place_labels(labels, {}, frame);
  for (std::size_t i = 0; i < placed.size(); ++i) {
    ASSERT_TRUE(placed[i]) << i;
    for (std::size_t j = 0; j < i; ++j) EXPECT_FALSE(touching(placed[i]->box, placed[j]->box));
  }
}

TEST(PlaceLabels, WhatHasNoRoomIsLeftOutAndNeverOverlaps) {
  const std::vector<std::vector<LabelPlace>> labels(200, around_point({200, 150}, 120, 15));
  const auto placed = place_labels(labels, {}, frame);
  std::size_t missing = 0;
  for (std::size_t i = 0; i < placed.size(); ++i) {
    if (!placed[i]) ++missing;
    for (std::size_t j = 0; j < i; ++j) {
      EXPECT_FALSE(placed[i] && placed[j] && touching(placed[i]->box, placed[j]->box));
    }
  }
  EXPECT_GT(missing, 0u);
  EXPECT_LT(missing, placed.size());
  EXPECT_FALSE(place_labels({around_point({200, 150}, 1000, 15)}, {}, frame)[0]);
}

TEST(PlaceLabels, NamesKeepOffLinesWhereTheyCan) {
  const Obstacles obstacles = {{}, {{{0, 150}, {400, 150}}}};
  const auto placed = place_labels({around_point({200, 150}, 60, 15)}, obstacles, frame);
  ASSERT_TRUE(placed[0]);
  EXPECT_TRUE(placed[0]->box.y > 150 || placed[0]->box.y + placed[0]->box.height < 150);
}

TEST(PlaceLabels, ANameDoesNotSeemToBelongToAnotherPoint) {
  const Obstacles obstacles = {{{196, 146, 8, 8}, {214, 146, 8, 8}}, {}};
  const auto placed = place_labels({around_point({200, 150}, 60, 15)}, obstacles, frame);
  ASSERT_TRUE(placed[0]);
  EXPECT_LT(placed[0]->box.x + placed[0]->box.width, 214.0);
}

TEST(PlaceLabels, AHorizontalLineIsNamedAboveItsRightEnd) {
  const auto placed = place_labels({along_horizontal(100, frame, 60, 15)}, {}, frame);
  ASSERT_TRUE(placed[0]);
  EXPECT_LT(placed[0]->box.y + placed[0]->box.height, 100);
  EXPECT_GT(placed[0]->box.x, 300);
}

TEST(AroundPoint, DistantNamesHaveALeaderThatEndsAtTheName) {
  for (const LabelPlace& place : around_point({200, 150}, 60, 15)) {
    if (!place.leader) continue;
    const PlotPoint end = place.leader->to;
    EXPECT_GE(end.x, place.box.x - 2.0);
    EXPECT_LE(end.x, place.box.x + place.box.width + 2.0);
    EXPECT_GE(end.y, place.box.y - 2.0);
    EXPECT_LE(end.y, place.box.y + place.box.height + 2.0);
  }
}

}  // namespace
}  // namespace assay::draw

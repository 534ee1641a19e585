#include "assay/ask/draw/chart/top_names.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "assay/ask/draw/lettering.h"

namespace assay::draw {
namespace {

constexpr AxisRange room = {0, 600};
const AxisScale linear = {ScaleKind::linear, {0, 10}, 50, 550};

void expect_no_crossing(const TopNames& top) {
  for (const TopName& a : top.names) {
    for (const TopName& b : top.names) {
      if (&a == &b || a.row == 0 || b.row == 0) continue;
      const double half_a = text_width(a.text, 12) / 2.0;
      const double half_b = text_width(b.text, 12) / 2.0;
      EXPECT_TRUE(a.row != b.row || std::abs(a.middle - b.middle) >= half_a + half_b) << a.text << b.text;
      EXPECT_TRUE(a.row >= b.row || std::abs(a.middle - b.centre()) >= half_a) << a.text << b.text;
    }
  }
}

TEST(TopNames, AWideRegionHasItsNameInTheStrip) {
  const TopNames top = top_names({.regions = {{2, 6, "steady", RegionRole::good}}}, linear, room, 12);
  ASSERT_EQ(top.names.size(), 1u);
  EXPECT_TRUE(top.strip);
  EXPECT_EQ(top.rows, 0u);
  EXPECT_EQ(top.names[0].row, 0u);
  EXPECT_DOUBLE_EQ(top.names[0].left, 150);
  EXPECT_DOUBLE_EQ(top.names[0].middle, 250);
}

TEST(TopNames, NarrowRegionsAndLinesAreNamedAboveWithoutCrossing) {
  Chart chart;
  chart.regions = {{1, 1.2, "narrow region one"}, {1.2, 1.4, "narrow region two"}, {1.4, 1.5, "narrow three"}};
  chart.lines = {{Orientation::vertical, 8, "knee at 8"}, {Orientation::vertical, 8.5, "knee at 8.5"}};
  const TopNames top = top_names(chart, linear, room, 12);
  EXPECT_EQ(top.names.size(), 5u);
  EXPECT_EQ(top.omitted, 0);
  for (const TopName& name : top.names) EXPECT_GT(name.row, 0u);
  expect_no_crossing(top);
}

TEST(TopNames, RegionsThatOverlapHaveTheirNamesApart) {
  const TopNames top = top_names({.regions = {{2, 8, "wide"}, {1, 9, "wider"}}}, linear, room, 12);
  ASSERT_EQ(top.names.size(), 2u);
  EXPECT_EQ(top.names[0].row, 0u);
  EXPECT_EQ(top.names[1].row, 1u);
}

TEST(TopNames, CountsWhatItHadToLeaveOut) {
  Chart chart;
  for (int i = 0; i < 60; ++i) chart.lines.push_back({Orientation::vertical, 0.1 * i, "a line with a long name"});
  const TopNames top = top_names(chart, linear, room, 12);
  EXPECT_EQ(top.names.size(), 60u);
  EXPECT_GT(top.omitted, 40);
  EXPECT_LT(top.omitted, 60);
  expect_no_crossing(top);
}

TEST(TopNames, EndsBeyondTheAxisReachTheFrame) {
  const AxisScale log = {ScaleKind::log, {1, 100}, 50, 550};
  const TopNames top = top_names({.regions = {{0, 10, "low"}, {10, HUGE_VAL, "high"}}}, log, room, 12);
  ASSERT_EQ(top.names.size(), 2u);
  EXPECT_DOUBLE_EQ(top.names[0].left, 50);
  EXPECT_DOUBLE_EQ(top.names[0].right, 300);
  EXPECT_DOUBLE_EQ(top.names[1].right, 550);
}

TEST(TopNames, WhatCannotBeSeenIsLeftOutQuietly) {
  Chart chart;
  chart.regions = {{20, 30, "beyond"}, {6, 2, "backwards"}, {std::nan(""), 5, "nowhere"}};
  chart.lines = {{Orientation::vertical, -1, "before"},
                 {Orientation::vertical, std::nan(""), "nowhere"},
                 {Orientation::horizontal, 5, "not at the top"}};
  const TopNames top = top_names(chart, linear, room, 12);
  EXPECT_TRUE(top.names.empty());
  EXPECT_FALSE(top.strip);
  EXPECT_EQ(top.omitted, 0);
}

}  // namespace
}  // namespace assay::draw

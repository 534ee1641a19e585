#include "assay/ask/draw/chart/layout.h"

#include <gtest/gtest.h>

namespace assay::draw {
namespace {

TEST(ChartLayout, NamesAtOneLineEndAreSpreadInTheOrderOfTheLines) {
  Chart chart;
  chart.series = {{"third", {{0, 0}, {1, 1.00}}}, {"second", {{0, 0}, {1, 1.01}}}, {"first", {{0, 0}, {1, 1.02}}}};
  const ChartLayout layout = chart_layout(chart, {});
  ASSERT_EQ(layout.keys.size(), 3u);
  EXPECT_EQ(layout.keys[0].lines[0], "first");
  EXPECT_EQ(layout.keys[2].lines[0], "third");
  EXPECT_GE(layout.keys[1].at.y - layout.keys[0].at.y, 12.0);
  EXPECT_GE(layout.keys[2].at.y - layout.keys[1].at.y, 12.0);
}

TEST(ChartLayout, OnePointAloneIsInTheMiddle) {
  for (const ScaleKind kind : {ScaleKind::linear, ScaleKind::log}) {
    Chart chart;
    chart.x.scale = kind;
    chart.y.scale = kind;
    chart.series = {{"one", {{7, 7}}, SeriesStyle::markers}};
    const ChartLayout layout = chart_layout(chart, {});
    const PlotPoint place = {position(layout.x, 7), position(layout.y, 7)};
    EXPECT_GT(place.x, layout.frame.left + 50);
    EXPECT_LT(place.x, layout.frame.right - 50);
    EXPECT_GT(place.y, layout.frame.top + 50);
    EXPECT_LT(place.y, layout.frame.bottom - 50);
  }
}

TEST(ChartLayout, AFixedRangeIsKeptAndAnImpossibleOneIsNot) {
  Chart chart;
  chart.series = {{"", {{1, 1}, {100, 100}}}};
  chart.y.range = AxisRange{0, 50};
  EXPECT_EQ(shown_range(chart, Orientation::horizontal).to, 50);
  chart.y.scale = ScaleKind::log;
  EXPECT_GT(shown_range(chart, Orientation::horizontal).from, 0.0);
  EXPECT_GT(shown_range(chart, Orientation::horizontal).to, 100.0);
}

TEST(ChartLayout, AmountsStartAtZeroUnlessTheyHardlyDiffer) {
  Chart chart;
  chart.series = {{"", {{1, 20}, {100, 100}}}};
  EXPECT_EQ(shown_range(chart, Orientation::horizontal).from, 0.0);
  chart.series[0].points[0].y = 99;
  EXPECT_GT(shown_range(chart, Orientation::horizontal).from, 90.0);
}

TEST(ChartLayout, TheTitleOfTheYAxisSharesARowWithNamesItDoesNotMeet) {
  Chart chart;
  chart.series = {{"", {{0, 1}, {10, 2}}}};
  chart.y.label = "Rate";
  const double without = chart_layout(chart, {}).frame.top;
  chart.lines = {{Orientation::vertical, 5, "far right of it"}};
  EXPECT_DOUBLE_EQ(chart_layout(chart, {}).frame.top, without);
  chart.lines[0].at = 0;
  EXPECT_GT(chart_layout(chart, {}).frame.top, without);
}

TEST(ChartLayout, TickTextsThatWouldRunTogetherAreThinnedOut) {
  Chart chart;
  chart.width = 320;
  chart.x = {.scale = ScaleKind::log, .range = AxisRange{1e9, 2e11}, .numbers = NumberStyle::si};
  chart.series = {{"", {{1e9, 1}, {2e11, 2}}}};
  std::string texts;
  for (const AxisTick& tick : chart_layout(chart, {}).x_ticks) texts += tick.text.empty() ? "" : tick.text + ";";
  EXPECT_EQ(texts, "1 G;10 G;100 G;");
}

}  // namespace
}  // namespace assay::draw

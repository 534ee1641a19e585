#include "assay/ask/draw/chart/text.h"

#include <gtest/gtest.h>

namespace assay::draw {
namespace {

TEST(ChartText, UnitsFollowTheirPrefix) {
  EXPECT_EQ(value_text(1.97e14, {.unit = "FLOP/s", .numbers = NumberStyle::si}), "197 TFLOP/s");
  EXPECT_EQ(value_text(5, {.unit = "FLOP/s", .numbers = NumberStyle::si}), "5 FLOP/s");
  EXPECT_EQ(value_text(0.5, {.unit = "of peak", .numbers = NumberStyle::percent}), "50%");
  EXPECT_EQ(axis_title({.label = "Time", .unit = "s"}), "Time, s");
  EXPECT_EQ(axis_title({.unit = "s"}), "s");
}

TEST(ChartText, ASeriesSaysIfItHasNoPointToDraw) {
  Chart chart;
  chart.y.scale = ScaleKind::log;
  chart.series = {{"some", {{1, 0}, {2, 3}}}, {"none", {{1, 0}, {2, -3}}}, {"", {}}};
  EXPECT_EQ(series_text(chart, 0), "some");
  EXPECT_EQ(series_text(chart, 1), "none (no data)");
  EXPECT_EQ(series_text(chart, 2), "");
}

TEST(ChartText, AChartWithoutWordsIsStillDescribed) { EXPECT_EQ(chart_description({}), "values against values"); }

}  // namespace
}  // namespace assay::draw

#include "assay/ask/draw/chart/roofline_chart.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <cmath>
#include <string>

#include "assay/hardware/catalogue.h"

namespace assay::draw {
namespace {

const RoofLine hbm{"hbm", 100_TFLOP_per_s, 1_TB_per_s};     // knee at 100 FLOP/B
const RoofLine vmem{"vmem", 100_TFLOP_per_s, 10_TB_per_s};  // knee at 10 FLOP/B

/// The rate that a roof allows at an intensity.
double attainable(const RoofLine& roof, double intensity) {
  return std::min(roof.peak.value(), intensity * roof.bandwidth.value());
}

void expect_regions_tile_the_axis(const Chart& chart) {
  ASSERT_TRUE(chart.x.range);
  ASSERT_FALSE(chart.regions.empty());
  EXPECT_EQ(chart.regions.front().from, chart.x.range->from);
  EXPECT_EQ(chart.regions.back().to, chart.x.range->to);
  for (std::size_t i = 0; i < chart.regions.size(); ++i) {
    EXPECT_LT(chart.regions[i].from, chart.regions[i].to);
    if (i) EXPECT_EQ(chart.regions[i].from, chart.regions[i - 1].to);
  }
}

TEST(RooflineChart, ARoofRisesToItsKneeAndStaysAtThePeak) {
  const Chart chart = roofline_chart("t", "s", {hbm}, {});
  ASSERT_EQ(chart.series.size(), 1U);
  const auto& points = chart.series[0].points;
  ASSERT_EQ(points.size(), 3U);
  EXPECT_EQ(points[1].x, 100);
  EXPECT_EQ(points[1].y, 1e14);
  EXPECT_EQ(points[2].y, 1e14);
  for (const PlotPoint& point : points) EXPECT_DOUBLE_EQ(point.y, attainable(hbm, point.x));
}

TEST(RooflineChart, RegionsTellWhereEveryRoofSomeAndNoneIsBoundByBandwidth) {
  const Chart chart = roofline_chart("t", "s", {hbm, vmem}, {});
  expect_regions_tile_the_axis(chart);
  ASSERT_EQ(chart.regions.size(), 3U);
  EXPECT_EQ(chart.regions[0].to, 10);
  EXPECT_EQ(chart.regions[1].to, 100);
  EXPECT_EQ(chart.regions[0].role, RegionRole::bad);
  EXPECT_EQ(chart.regions[2].role, RegionRole::good);
  EXPECT_EQ(roofline_chart("t", "s", {hbm}, {}).regions.size(), 2U);
}

TEST(RooflineChart, TheAxisReachesEveryPoint) {
  const Chart chart = roofline_chart(
      "t", "s", {hbm}, {{"small", FlopsPerByte(1e-3), 1_PFLOP_per_s}, {"large", FlopsPerByte(1e7), 1_PFLOP_per_s}});
  ASSERT_EQ(chart.points.size(), 2U);
  for (const NamedPoint& point : chart.points) {
    EXPECT_LT(chart.x.range->from, point.x);
    EXPECT_GT(chart.x.range->to, point.x);
  }
}

TEST(RooflineChart, WorkWithoutBytesOrWithoutArithmeticHasNoPlaceOnALogAxis) {
  const Chart chart = roofline_chart(
      "t", "s", {hbm}, {{"none", FlopsPerByte(0), FlopsPerSecond(0)}, {"all", FlopsPerByte(HUGE_VAL), 1_PFLOP_per_s}});
  EXPECT_TRUE(chart.points.empty());
  EXPECT_TRUE(std::isfinite(chart.x.range->to));
  EXPECT_GT(chart.x.range->from, 0);
}

TEST(RooflineChart, EveryChipHasAPictureOfAllItsLevels) {
  const hardware::Catalogue catalogue = hardware::Catalogue::builtin();
  for (const std::string& id : catalogue.chip_ids()) {
    const hardware::Chip chip = *catalogue.chip(id, "test");
    const Chart chart = chip_chart(chip);
    expect_regions_tile_the_axis(chart);
    for (const hardware::MemoryRoof& roof : hardware::memory_roofs(chip))
      EXPECT_TRUE(std::any_of(chart.series.begin(), chart.series.end(),
                              [&](const ChartSeries& line) { return line.name.starts_with(roof.name + " "); }))
          << id << " " << roof.name;
    EXPECT_FALSE(draw(chart).items.empty()) << id;
  }
}

SizeCurve curve_to(double largest, std::optional<double> knee) {
  SizeCurve curve{"B", {}, knee};
  for (double size = 1; size <= largest; size *= 2) curve.points.push_back({size, std::min(1e14, size * 1e12)});
  return curve;
}

TEST(SizeChart, TheKneeIsMarkedOnThePeakWhereItIsInSight) {
  const Chart chart = size_chart("t", "s", "B", {curve_to(512, 100.0)}, 100_TFLOP_per_s);
  ASSERT_EQ(chart.points.size(), 1U);
  EXPECT_EQ(chart.points[0].label, "B = 100");
  EXPECT_EQ(chart.points[0].x, 100);
  EXPECT_EQ(chart.points[0].y, 1e14);
  EXPECT_TRUE(size_chart("t", "s", "B", {curve_to(64, 100.0)}, 100_TFLOP_per_s).points.empty());
  EXPECT_TRUE(size_chart("t", "s", "B", {curve_to(64, std::nullopt)}, 100_TFLOP_per_s).points.empty());
}

TEST(SizeChart, ThePeakIsALineWithinTheFrame) {
  const Chart chart = size_chart("t", "s", "B", {curve_to(512, 100.0)}, 100_TFLOP_per_s);
  ASSERT_EQ(chart.lines.size(), 1U);
  EXPECT_EQ(chart.lines[0].at, 1e14);
  EXPECT_EQ(chart.lines[0].label, "peak 100 TFLOP/s");
  EXPECT_GT(chart.y.range->to, 1e14);
}

TEST(SizeChart, ManyDecadesTakeALogAxis) {
  EXPECT_EQ(size_chart("t", "s", "B", {curve_to(1024, {})}, 1_PFLOP_per_s).x.scale, ScaleKind::linear);
  EXPECT_EQ(size_chart("t", "s", "B", {curve_to(4096, {})}, 1_PFLOP_per_s).x.scale, ScaleKind::log);
}

RC_GTEST_PROP(RooflineChartLaws, EveryRoofIsDrawnWhereItsFormulaSays, ()) {
  const auto real = [](double low, double high) {
    return low * std::pow(high / low, *rc::gen::inRange(0, 1001) / 1000.0);
  };
  std::vector<RoofLine> roofs;
  for (int i = *rc::gen::inRange(1, 6); i > 0; --i)
    roofs.push_back({"roof", FlopsPerSecond(real(1e10, 1e16)), BytesPerSecond(real(1e8, 1e14))});
  const Chart chart = roofline_chart("t", "s", roofs, {{"p", FlopsPerByte(real(1e-6, 1e9)), 1_TFLOP_per_s}});
  RC_ASSERT(chart.series.size() == roofs.size());
  for (std::size_t i = 0; i < roofs.size(); ++i)
    for (const PlotPoint& point : chart.series[i].points)
      RC_ASSERT(std::abs(point.y / attainable(roofs[i], point.x) - 1) < 1e-12);
  RC_ASSERT(chart.x.range->from < chart.points[0].x);
  RC_ASSERT(chart.x.range->to > chart.points[0].x);
  RC_ASSERT(!draw(chart).items.empty());
}

}  // namespace
}  // namespace assay::draw

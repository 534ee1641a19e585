#include "assay/ask/draw/chart/chart.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "assay/ask/draw/chart/layout.h"
#include "assay/ask/draw/lettering.h"
#include "assay/testing/scene_text.h"

namespace assay::draw {
namespace {

using testing::labels_of;
using testing::shows;

Chart roofline() {
  Chart chart;
  chart.title = "Roofline";
  chart.subtitle = "One chip";
  chart.x = {.label = "Arithmetic intensity", .unit = "FLOP/B", .scale = ScaleKind::log, .range = AxisRange{0.1, 1e4}};
  chart.y = {.label = "Rate", .unit = "FLOP/s", .scale = ScaleKind::log, .numbers = NumberStyle::si};
  const auto roof = [](double bandwidth, double peak) {
    return std::vector<PlotPoint>{{0.1, 0.1 * bandwidth}, {peak / bandwidth, peak}, {1e4, peak}};
  };
  chart.series = {{"hbm, bf16", roof(8e11, 2e14)}, {"hbm, int8", roof(8e11, 4e14), SeriesStyle::dashed}};
  chart.regions = {{0, 120, "bandwidth-bound", RegionRole::bad},
                   {120, 250, "partly bound", RegionRole::partial},
                   {250, HUGE_VAL, "compute-bound", RegionRole::good}};
  chart.points = {{"matmul B=240", 240, 1.9e14}, {"dot(N)", 0.5, 4e11}, {"add(N)", 1.0 / 6.0, 1.3e11}};
  chart.lines = {{Orientation::horizontal, 2e14, "peak"}, {Orientation::vertical, 500, "knee"}};
  chart.footnote = "Dense peaks.";
  return chart;
}

// Every text is inside the drawing and no two texts overlap, by the widths of the widest font.
void expect_tidy(const Scene& scene) {
  const auto labels = labels_of(scene);
  const auto left = [](const Label& label) {
    const double width = text_width(label.text, label.size, label.bold);
    return label.at.x - (label.anchor == Anchor::start ? 0.0 : label.anchor == Anchor::middle ? width / 2.0 : width);
  };
  const auto right = [&](const Label& label) { return left(label) + text_width(label.text, label.size, label.bold); };
  for (std::size_t i = 0; i < labels.size(); ++i) {
    const Label& a = labels[i];
    EXPECT_GE(left(a), 0.0) << a.text;
    EXPECT_LE(right(a), scene.width) << a.text;
    EXPECT_GE(a.at.y - a.size, 0.0) << a.text;
    EXPECT_LE(a.at.y, scene.height) << a.text;
    for (std::size_t j = 0; j < i; ++j) {
      const Label& b = labels[j];
      const bool beside = right(a) <= left(b) || right(b) <= left(a);
      const bool above = a.at.y <= b.at.y - 0.75 * b.size || b.at.y <= a.at.y - 0.75 * a.size;
      EXPECT_TRUE(beside || above) << a.text << " over " << b.text;
    }
  }
}

void expect_finite(const Scene& scene) {
  const std::string svg = to_svg(scene);
  EXPECT_EQ(svg.find("nan"), std::string::npos);
  EXPECT_EQ(svg.find("inf"), std::string::npos);
}

TEST(Chart, ARooflineShowsAllItsWordsWithoutOverlap) {
  const Scene scene = draw(roofline());
  for (const char* text : {"Roofline", "One chip", "Arithmetic intensity, FLOP/B", "Rate, FLOP/s", "100 G", "10 T",
                           "1k", "hbm, bf16", "hbm, int8", "bandwidth-bound", "partly bound", "compute-bound",
                           "matmul B=240", "dot(N)", "add(N)", "peak", "knee", "Dense peaks."}) {
    EXPECT_TRUE(shows(scene, text)) << text;
  }
  expect_tidy(scene);
  expect_finite(scene);
}

TEST(Chart, EqualChartsGiveEqualBytes) { EXPECT_EQ(to_svg(draw(roofline())), to_svg(draw(roofline()))); }

TEST(Chart, DescribesItselfUnlessToldHow) {
  Chart chart = roofline();
  EXPECT_EQ(draw(chart).description,
            "Rate in FLOP/s against Arithmetic intensity in FLOP/B; series: hbm, bf16, hbm, int8; regions: "
            "bandwidth-bound, partly bound, compute-bound; lines: peak, knee; points: matmul B=240 at 240 FLOP/B, "
            "190 TFLOP/s, dot(N) at 0.5 FLOP/B, 400 GFLOP/s, add(N) at 0.167 FLOP/B, 130 GFLOP/s");
  chart.description = "my words";
  EXPECT_EQ(draw(chart).description, "my words");
}

TEST(Chart, ASeriesIsKnownByItsMarkerAsWellAsItsColour) {
  Chart chart;
  for (int i = 0; i < 8; ++i) chart.series.push_back({"s" + std::to_string(i), {{0, 1.0 * i}, {1, 2.0 * i}}});
  std::vector<MarkerShape> shapes;
  for (const SceneItem& item : draw(chart).items) {
    if (const Marker* marker = std::get_if<Marker>(&item.shape)) shapes.push_back(marker->shape);
  }
  std::sort(shapes.begin(), shapes.end());
  EXPECT_EQ(std::unique(shapes.begin(), shapes.end()) - shapes.begin(), 8);
}

TEST(Chart, DashedSeriesDifferInTheirDashes) {
  Chart chart;
  for (int i = 0; i < 8; ++i) chart.series.push_back({"", {{0, 1.0 * i}, {1, 2.0 * i}}, SeriesStyle::dashed});
  std::vector<Dash> dashes;
  for (const SceneItem& item : draw(chart).items) {
    const Polyline* line = std::get_if<Polyline>(&item.shape);
    if (line && line->paint.dash != Dash::solid) dashes.push_back(line->paint.dash);
  }
  std::sort(dashes.begin(), dashes.end());
  EXPECT_EQ(std::unique(dashes.begin(), dashes.end()) - dashes.begin(), 8);
}

TEST(Chart, UpToFourSeriesAreNamedBesideTheirEndsAndMoreInALegend) {
  Chart chart;
  for (int i = 0; i < 5; ++i) {
    chart.series.push_back({"series " + std::to_string(i), {{0, 0}, {1, 1.0 + i}}});
    const ChartLayout layout = chart_layout(chart, {});
    EXPECT_EQ(layout.legend, i >= 4);
    for (const SeriesKey& key : layout.keys) {
      EXPECT_EQ(key.at.x > layout.frame.right, i < 4);
      EXPECT_EQ(key.at.y < layout.frame.top, i >= 4);
    }
    expect_tidy(draw(chart));
  }
}

TEST(Chart, AnEmptyChartSaysSo) {
  const Scene scene = draw({});
  EXPECT_TRUE(shows(scene, "no data"));
  expect_tidy(scene);
}

TEST(Chart, ASeriesWithoutPointsIsNamedAsSuch) {
  Chart chart;
  chart.series = {{"empty", {}}, {"full", {{0, 1}, {1, 2}}}};
  EXPECT_TRUE(shows(draw(chart), "empty (no data)"));
  chart.series = {{"all below zero", {{1, -1}, {2, -2}}}};
  chart.y.scale = ScaleKind::log;
  EXPECT_TRUE(shows(draw(chart), "all below zero (no data)"));
}

TEST(Chart, APointBetweenTwoGapsIsStillSeen) {
  Chart chart;
  chart.series = {{"", {{0, 1}, {1, std::nan("")}, {2, 3}, {3, HUGE_VAL}, {4, 1}, {5, 2}}}};
  int markers = 0;
  int lines = 0;
  for (const SceneItem& item : draw(chart).items) {
    if (std::holds_alternative<Marker>(item.shape)) ++markers;
    const Polyline* line = std::get_if<Polyline>(&item.shape);
    if (line && line->paint.stroke == ColourRole::series_1) ++lines;
  }
  EXPECT_EQ(markers, 2);
  EXPECT_EQ(lines, 1);
}

TEST(Chart, OddNumbersNeverReachTheDrawing) {
  const std::vector<double> odd = {0.0,   -1.0,   1.0,      1e-320,       1e-300, 1e300,
                                   1e308, -1e308, HUGE_VAL, std::nan(""), 5.0,    -HUGE_VAL};
  for (const ScaleKind x : {ScaleKind::linear, ScaleKind::log}) {
    for (const ScaleKind y : {ScaleKind::linear, ScaleKind::log}) {
      for (const SeriesStyle style : {SeriesStyle::line, SeriesStyle::step_area, SeriesStyle::markers}) {
        Chart chart;
        chart.x.scale = x;
        chart.y.scale = y;
        chart.series = {{"odd", {}, style}};
        for (const double a : odd) {
          for (const double b : odd) chart.series[0].points.push_back({a, b});
          chart.regions.push_back({a, -a, "region"});
          chart.lines.push_back({Orientation::vertical, a, "v"});
          chart.lines.push_back({Orientation::horizontal, a, "h"});
          chart.points.push_back({"p", a, 1.0});
        }
        const Scene scene = draw(chart);
        expect_finite(scene);
        expect_tidy(scene);
      }
    }
  }
}

TEST(Chart, LongWordsAreShortenedAndKeptInside) {
  const std::string lorem = "an exceedingly long text that nobody would ever want to see in a chart ";
  const std::string text = lorem + lorem + lorem + lorem + "Donaudampfschifffahrtsgesellschaftskapitaensmuetzenband";
  Chart chart = roofline();
  chart.title = chart.subtitle = chart.footnote = chart.x.label = chart.y.label = text;
  for (ChartSeries& series : chart.series) series.name = text;
  for (ChartRegion& region : chart.regions) region.label = text;
  for (NamedPoint& point : chart.points) point.label = text;
  for (ReferenceLine& line : chart.lines) line.label = text;
  expect_tidy(draw(chart));
  for (int i = 0; i < 8; ++i) chart.series.push_back({text, {{1, 1e12}, {10, 1e13}}});
  expect_tidy(draw(chart));
}

TEST(Chart, EverySizeHasRoomToPlot) {
  for (const double size : {-1.0, 0.0, 1.0, 200.0, 360.0, 2000.0, std::nan(""), HUGE_VAL}) {
    Chart chart = roofline();
    chart.width = size;
    chart.height = size;
    const ChartLayout layout = chart_layout(chart, {});
    EXPECT_GT(layout.frame.right - layout.frame.left, 100.0) << size;
    EXPECT_GT(layout.frame.bottom - layout.frame.top, 100.0) << size;
    expect_tidy(draw(chart));
  }
}

TEST(Chart, CountsTheLabelsItHadNoRoomFor) {
  Chart chart;
  for (int i = 0; i < 60; ++i) chart.points.push_back({"point number " + std::to_string(i), 1.0, 1.0});
  const Scene scene = draw(chart);
  expect_tidy(scene);
  const auto labels = labels_of(scene);
  EXPECT_NE(labels.back().text.find("labels were omitted for lack of space."), std::string::npos);
}

}  // namespace
}  // namespace assay::draw

#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "assay/ask/draw/chart/axis.h"
#include "assay/ask/draw/chart/chart.h"
#include "assay/ask/draw/chart/curve.h"
#include "assay/ask/draw/chart/top_names.h"

namespace assay::draw {

/// Sizes of type and spaces that every part of a chart shares, in CSS pixels.
struct ChartMetrics {
  double margin = 24.0;
  double title_size = 18.0;
  double subtitle_size = 13.0;
  double text_size = 12.0;
  double footnote_size = 11.0;
  double key_width = 30.0;  // the sample of a line in front of a series' name
  double key_gap = 7.0;

  /// The distance from one line of text to the next.
  static constexpr double line_height(double size) { return 1.4 * size; }
};

/// A line of text with its place.
struct PlacedText {
  PlotPoint at = {};
  std::string text = {};
};

/// The name of a series next to its key; `at` is where the key starts, half-way up the first line of the name.
struct SeriesKey {
  std::size_t series = 0;
  PlotPoint at = {};
  std::vector<std::string> lines = {};
};

/// Where the parts of a chart go, before anything is drawn.
struct ChartLayout {
  double width = 0.0;
  double height = 0.0;
  PlotFrame frame = {};
  AxisScale x = {};
  AxisScale y = {};
  std::vector<AxisTick> x_ticks = {};
  std::vector<AxisTick> y_ticks = {};
  std::vector<PlacedText> title = {};
  std::vector<PlacedText> subtitle = {};
  std::vector<PlacedText> footnote = {};
  PlacedText x_title = {};
  PlacedText y_title = {};
  bool legend = false;  // otherwise the keys are next to the ends of the series
  std::vector<SeriesKey> keys = {};
  TopNames top = {};
  double top_row_height = 20.0;
};

/// The range shown by an axis: the requested one if it can be drawn, otherwise what the chart's data need.
AxisRange shown_range(const Chart& chart, Orientation across);

/// The layout of a chart.
ChartLayout chart_layout(const Chart& chart, const ChartMetrics& metrics);

}  // namespace assay::draw

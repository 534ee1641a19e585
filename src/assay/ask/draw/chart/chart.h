#pragma once

#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "assay/ask/draw/chart/axis.h"
#include "assay/ask/draw/scene.h"

namespace assay::draw {

/// One axis of a chart; without a range it covers the chart's data.
struct ChartAxis {
  std::string label = {};
  std::string unit = {};
  ScaleKind scale = ScaleKind::linear;
  std::optional<AxisRange> range = {};
  NumberStyle numbers = NumberStyle::compact;
};

/// How a series is drawn; with steps, each value holds until the next point. Markers beyond `most_markers` are drawn as
/// a density.
inline constexpr std::size_t most_markers = 600;
enum class SeriesStyle { line, dashed, step, markers, area, step_area };

/// A named sequence of points, in the order they are joined.
/// A point that is not finite, or not above 0 on a logarithmic axis, is not drawn and leaves a gap.
struct ChartSeries {
  std::string name = {};
  std::vector<PlotPoint> points = {};
  SeriesStyle style = SeriesStyle::line;
  int colour = 0;  // 1 to 8; 0 takes the series' place in the chart
};

/// What a region of a chart means to the reader.
enum class RegionRole { bad, partial, good };

/// A shaded stretch of the x axis with its name above; infinite ends reach the frame.
struct ChartRegion {
  double from = -std::numeric_limits<double>::infinity();
  double to = std::numeric_limits<double>::infinity();
  std::string label = {};
  RegionRole role = RegionRole::good;
};

/// The direction of a reference line.
enum class Orientation { vertical, horizontal };

/// A thin line across the whole plot, at an x value if vertical, else at a y value.
struct ReferenceLine {
  Orientation orientation = Orientation::vertical;
  double at = 0.0;
  std::string label = {};
};

/// A point with its name next to it.
struct NamedPoint {
  std::string label = {};
  double x = 0.0;
  double y = 0.0;
  int colour = 0;  // 1 to 8 as for series; 0 is the colour of text
};

/// A plot on two axes, described by its data; `draw` decides where everything goes.
struct Chart {
  std::string title = {};
  std::string subtitle = {};
  ChartAxis x = {};
  ChartAxis y = {};
  std::vector<ChartSeries> series = {};
  std::vector<ChartRegion> regions = {};
  std::vector<ReferenceLine> lines = {};
  std::vector<NamedPoint> points = {};
  std::string footnote = {};
  std::string description = {};  // read out instead of the drawing; generated from the rest if empty
  double width = 880.0;
  double height = 540.0;
};

/// Draws the chart at its width, and at its height or more if that would leave no room to plot.
/// Up to four series are named next to their ends, more in a legend. Labels never overlap; labels without
/// room are left out and counted in the footnote.
Scene draw(const Chart& chart);

}  // namespace assay::draw

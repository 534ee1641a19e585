#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "assay/ask/draw/chart/axis.h"
#include "assay/ask/draw/chart/chart.h"

namespace assay::draw {

/// What a name above the plot belongs to.
enum class TopNameOwner { region, line };

/// A visible region or vertical line, and the position of its name above the plot.
struct TopName {
  TopNameOwner owner = TopNameOwner::region;
  std::size_t index = 0;  // among the chart's regions or lines
  double left = 0.0;      // of the region; for a line, left and right are equal
  double right = 0.0;
  std::string text = {};
  double middle = 0.0;  // of the text
  std::size_t row = 0;  // 0 is the strip on top of the frame; from higher rows a line leads down

  /// The middle of what is named.
  double centre() const { return (left + right) / 2.0; }
};

/// The names above a plot.
struct TopNames {
  std::vector<TopName> names = {};
  bool strip = false;    // whether there is a row 0, which holds the names of regions that are wide enough
  std::size_t rows = 0;  // rows above that
  int omitted = 0;       // names without room
};

/// Places the names of a chart's regions and vertical lines so that neither names nor the lines down from them cross;
/// `room` limits the names, in positions of the x axis.
TopNames top_names(const Chart& chart, const AxisScale& x, AxisRange room, double text_size);

}  // namespace assay::draw

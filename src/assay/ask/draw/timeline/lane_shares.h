// How a lane of a timeline spends its time, where its bars are too many to draw one by one.
#pragma once
#include <vector>

#include "assay/ask/draw/timeline/timeline_scene.h"

namespace assay::draw {

/// The share of each stretch of time that each class of bars takes, of all members of the lane together.
struct LaneShares {
  std::vector<std::vector<double>> by_class;  ///< [class][stretch], 0 to 1
  std::vector<double> whole;                  ///< of each class, over the whole time
};
LaneShares lane_shares(const std::vector<const TimelineBar*>& bars, Seconds end, std::size_t stretches, double members);

/// Outlines of stacked columns, one area for each run of a class: x in stretches, y from 0 (idle) up to 1.
/// Shares are rounded to twelfths, so that equal columns merge into one edge.
struct ShareArea {
  std::size_t colour_class = 0;
  std::vector<PlotPoint> outline;
};
std::vector<ShareArea> share_areas(const LaneShares& shares);

}  // namespace assay::draw

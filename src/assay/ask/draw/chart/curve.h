#pragma once

#include <vector>

#include "assay/ask/draw/chart/axis.h"
#include "assay/ask/draw/scene.h"

namespace assay::draw {

/// The part of a drawing filled by a plot, given by its edges.
struct PlotFrame {
  double left = 0.0;
  double top = 0.0;
  double right = 0.0;
  double bottom = 0.0;
};

/// A line without gaps.
using CurveRun = std::vector<PlotPoint>;

/// Whether a point is inside the frame or on its edge.
bool contains(const PlotFrame& frame, PlotPoint point);

/// The data as lines in the drawing, broken where a point has no place on the axes.
/// As steps, each value holds until the next point.
std::vector<CurveRun> traced(const std::vector<PlotPoint>& data, const AxisScale& x, const AxisScale& y, bool steps);

/// The parts of a line inside the frame.
std::vector<CurveRun> clipped(const CurveRun& run, const PlotFrame& frame);

/// The length of the segment from `a` to `b` inside the frame.
double length_within(PlotPoint a, PlotPoint b, const PlotFrame& frame);

/// The part inside the frame of the area between a line and the horizontal at `base`; empty if there is none.
std::vector<PlotPoint> clipped_area(const CurveRun& run, double base, const PlotFrame& frame);

/// Points along lines at every `spacing`, the first after `offset`.
std::vector<PlotPoint> places_along(const std::vector<CurveRun>& runs, double spacing, double offset);

}  // namespace assay::draw

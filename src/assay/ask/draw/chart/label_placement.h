#pragma once

#include <cstddef>
#include <optional>
#include <vector>

#include "assay/ask/draw/chart/curve.h"
#include "assay/ask/draw/scene.h"

namespace assay::draw {

/// An upright box around text or a marker.
struct LabelBox {
  double x = 0.0;
  double y = 0.0;
  double width = 0.0;
  double height = 0.0;
};

/// A line from what a label names to the label.
struct Leader {
  PlotPoint from = {};
  PlotPoint to = {};
};

/// One possible place for a label, and its own penalty compared with the best place.
struct LabelPlace {
  LabelBox box = {};
  double cost = 0.0;
  Anchor anchor = Anchor::start;
  std::optional<Leader> leader = {};
  std::optional<PlotPoint> named = {};  // the named point, if the label names a point
};

/// What labels should avoid: above all markers, and lines if possible.
struct Obstacles {
  std::vector<LabelBox> markers = {};
  std::vector<Leader> lines = {};
};

/// The places for a label of the given size that names a point: around it, nearest first, farther ones with a leader.
std::vector<LabelPlace> around_point(PlotPoint point, double width, double height);

/// The places for a label of the given size that names a horizontal line: above or below, from the right leftwards.
std::vector<LabelPlace> along_horizontal(double y, const PlotFrame& frame, double width, double height);

/// One place for each label, such that no two labels touch and none leaves the frame, and that obstacles,
/// leaders and long distances are avoided where possible; empty for a label without room.
std::vector<std::optional<LabelPlace>> place_labels(const std::vector<std::vector<LabelPlace>>& labels,
                                                    const Obstacles& obstacles, const PlotFrame& frame);

}  // namespace assay::draw

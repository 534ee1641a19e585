#include "assay/ask/draw/chart/curve.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>

namespace assay::draw {
namespace {

// Points closer than this are one point to any reader; leaving them out keeps drawings of long series small.
constexpr double same_place = 0.02;

// Rounding must not hide a line along the edge of the frame.
constexpr double edge_slack = 0.01;

void append(CurveRun& run, PlotPoint point) {
  if (!run.empty() && std::hypot(run.back().x - point.x, run.back().y - point.y) < same_place) return;
  run.push_back(point);
}

// The part of a segment within the frame as two parameters in 0..1 (Liang and Barsky 1984); false if there is none.
bool visible_part(PlotPoint a, PlotPoint b, const PlotFrame& frame, double& enter, double& leave) {
  enter = 0.0;
  leave = 1.0;
  const double dx = b.x - a.x;
  const double dy = b.y - a.y;
  const std::array<PlotPoint, 4> edges = {{{-dx, a.x - frame.left + edge_slack},
                                           {dx, frame.right + edge_slack - a.x},
                                           {-dy, a.y - frame.top + edge_slack},
                                           {dy, frame.bottom + edge_slack - a.y}}};
  for (const auto [direction, distance] : edges) {
    if (direction == 0.0) {
      if (distance < 0.0) return false;
      continue;
    }
    const double t = distance / direction;
    if (direction < 0.0) {
      enter = std::max(enter, t);
    } else {
      leave = std::min(leave, t);
    }
  }
  return enter <= leave;
}

// Keeps the part on the inner side of one edge (Sutherland and Hodgman 1974); `depth` is positive inside.
template <class Depth>
std::vector<PlotPoint> cut(const std::vector<PlotPoint>& polygon, Depth depth) {
  std::vector<PlotPoint> kept;
  for (std::size_t i = 0; i < polygon.size(); ++i) {
    const PlotPoint a = polygon[i];
    const PlotPoint b = polygon[(i + 1) % polygon.size()];
    const double from = depth(a);
    const double to = depth(b);
    if (from >= 0.0) kept.push_back(a);
    if ((from < 0.0) != (to < 0.0)) kept.push_back(between(a, b, from / (from - to)));
  }
  return kept;
}

}  // namespace

bool contains(const PlotFrame& frame, PlotPoint point) {
  return point.x >= frame.left - edge_slack && point.x <= frame.right + edge_slack &&
         point.y >= frame.top - edge_slack && point.y <= frame.bottom + edge_slack;
}

std::vector<CurveRun> traced(const std::vector<PlotPoint>& data, const AxisScale& x, const AxisScale& y, bool steps) {
  std::vector<CurveRun> runs;
  bool open = false;
  for (const PlotPoint& value : data) {
    if (!placeable(x.kind, value.x) || !placeable(y.kind, value.y)) {
      open = false;
      continue;
    }
    const PlotPoint place = {position(x, value.x), position(y, value.y)};
    if (!open) runs.emplace_back();
    if (open && steps) append(runs.back(), {place.x, runs.back().back().y});
    append(runs.back(), place);
    open = true;
  }
  return runs;
}

std::vector<CurveRun> clipped(const CurveRun& run, const PlotFrame& frame) {
  std::vector<CurveRun> parts;
  if (run.size() == 1 && contains(frame, run.front())) parts.push_back(run);
  bool open = false;
  for (std::size_t i = 0; i + 1 < run.size(); ++i) {
    double enter = 0.0;
    double leave = 1.0;
    if (!visible_part(run[i], run[i + 1], frame, enter, leave)) {
      open = false;
      continue;
    }
    if (!open || enter > 0.0) parts.push_back({between(run[i], run[i + 1], enter)});
    append(parts.back(), between(run[i], run[i + 1], leave));
    open = leave >= 1.0;
  }
  return parts;
}

double length_within(PlotPoint a, PlotPoint b, const PlotFrame& frame) {
  double enter = 0.0;
  double leave = 1.0;
  return visible_part(a, b, frame, enter, leave) ? (leave - enter) * std::hypot(b.x - a.x, b.y - a.y) : 0.0;
}

std::vector<PlotPoint> clipped_area(const CurveRun& run, double base, const PlotFrame& frame) {
  if (run.size() < 2) return {};
  std::vector<PlotPoint> area = run;
  area.push_back({run.back().x, base});
  area.push_back({run.front().x, base});
  area = cut(area, [&](PlotPoint p) { return p.x - frame.left; });
  area = cut(area, [&](PlotPoint p) { return frame.right - p.x; });
  area = cut(area, [&](PlotPoint p) { return p.y - frame.top; });
  area = cut(area, [&](PlotPoint p) { return frame.bottom - p.y; });
  return area.size() < 3 ? std::vector<PlotPoint>{} : area;
}

std::vector<PlotPoint> places_along(const std::vector<CurveRun>& runs, double spacing, double offset) {
  std::vector<PlotPoint> places;
  double ahead = offset;
  for (const CurveRun& run : runs) {
    for (std::size_t i = 0; i + 1 < run.size(); ++i) {
      const double length = std::hypot(run[i + 1].x - run[i].x, run[i + 1].y - run[i].y);
      double done = 0.0;
      while (spacing > 0.0 && done + ahead <= length) {
        done += ahead;
        ahead = spacing;
        places.push_back(between(run[i], run[i + 1], done / length));
      }
      ahead -= length - done;
    }
  }
  return places;
}

}  // namespace assay::draw

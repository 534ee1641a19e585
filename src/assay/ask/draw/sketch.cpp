#include "assay/ask/draw/sketch.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <numbers>
#include <utility>

#include "assay/ask/draw/lettering.h"

namespace assay::draw {
namespace {

constexpr double line_spacing = 1.35;

SketchBounds around(const std::vector<PlotPoint>& points) {
  SketchBounds box{points.front().x, points.front().y, points.front().x, points.front().y};
  for (const PlotPoint& point : points) {
    box.left = std::min(box.left, point.x);
    box.right = std::max(box.right, point.x);
    box.top = std::min(box.top, point.y);
    box.bottom = std::max(box.bottom, point.y);
  }
  return box;
}

struct Measure {
  SketchBounds operator()(const Polyline& line) const { return around(line.points); }
  SketchBounds operator()(const Polygon& area) const { return around(area.points); }
  SketchBounds operator()(const Rectangle& box) const { return {box.x, box.y, box.x + box.width, box.y + box.height}; }
  SketchBounds operator()(const Marker& marker) const {
    const auto [x, y] = marker.centre;
    return {x - marker.radius, y - marker.radius, x + marker.radius, y + marker.radius};
  }
  SketchBounds operator()(const Label& label) const {
    const double width = text_width(label.text, label.size, label.bold);
    const double share = label.anchor == Anchor::start ? 0.0 : label.anchor == Anchor::middle ? 0.5 : 1.0;
    const double left = label.at.x - share * width;
    return {left, label.at.y - 0.8 * label.size, left + width, label.at.y + 0.25 * label.size};
  }
};

struct Move {
  double dx;
  double dy;
  void operator()(Polyline& line) const { move(line.points); }
  void operator()(Polygon& area) const { move(area.points); }
  void operator()(Rectangle& box) const {
    box.x += dx;
    box.y += dy;
  }
  void operator()(Marker& marker) const {
    marker.centre.x += dx;
    marker.centre.y += dy;
  }
  void operator()(Label& label) const {
    label.at.x += dx;
    label.at.y += dy;
  }
  void move(std::vector<PlotPoint>& points) const {
    for (PlotPoint& point : points) {
      point.x += dx;
      point.y += dy;
    }
  }
};

double distance(PlotPoint a, PlotPoint b) { return std::hypot(a.x - b.x, a.y - b.y); }

}  // namespace

void Sketch::add(SceneShape shape, std::string tooltip) {
  const SketchBounds box = std::visit(Measure{}, shape);
  if (empty()) {
    bounds_ = box;
  } else {
    bounds_ = {std::min(bounds_.left, box.left), std::min(bounds_.top, box.top), std::max(bounds_.right, box.right),
               std::max(bounds_.bottom, box.bottom)};
  }
  items_.push_back({std::move(shape), std::move(tooltip)});
}

void Sketch::line(PlotPoint from, PlotPoint to, const Paint& paint, std::string tooltip) {
  add(Polyline{{from, to}, paint}, std::move(tooltip));
}

void Sketch::text_block(PlotPoint at, const std::vector<std::string>& lines, Anchor anchor, double size) {
  double baseline = at.y + 0.8 * size;
  for (const std::string& text : lines) {
    const bool heading = &text == &lines.front();
    add(Label{{at.x, baseline}, text, size, anchor, heading ? ColourRole::ink : ColourRole::muted, heading});
    baseline += line_spacing * size;
  }
}

void Sketch::append(const Sketch& other, double dx, double dy) {
  for (const SceneItem& item : other.items()) add(moved(item.shape, dx, dy), item.tooltip);
}

SceneShape moved(SceneShape shape, double dx, double dy) {
  std::visit(Move{dx, dy}, shape);
  return shape;
}

double text_block_height(std::size_t lines, double size) {
  return lines == 0 ? 0.0 : size * (1.05 + line_spacing * static_cast<double>(lines - 1));
}

std::vector<PlotPoint> rounded_path(const std::vector<PlotPoint>& corners, const std::vector<double>& radii) {
  if (corners.size() < 3) return corners;
  constexpr int steps = 8;
  std::vector<PlotPoint> path = {corners.front()};
  for (std::size_t i = 1; i + 1 < corners.size(); ++i) {
    const PlotPoint corner = corners[i];
    // Two neighbouring corners share the line between them in the ratio of their radii.
    const double before = i == 1 ? 1.0 : radii[i - 1] / (radii[i - 2] + radii[i - 1]);
    const double after = i + 2 == corners.size() ? 1.0 : radii[i - 1] / (radii[i - 1] + radii[i]);
    const double r =
        std::min({radii[i - 1], before * distance(corners[i - 1], corner), after * distance(corner, corners[i + 1])});
    if (!(r > 0.0)) continue;
    const PlotPoint start = between(corner, corners[i - 1], r / distance(corner, corners[i - 1]));
    const PlotPoint end = between(corner, corners[i + 1], r / distance(corner, corners[i + 1]));
    // A quarter of a circle if the lines meet at right angles, and smooth at other angles, too.
    for (int step = 0; step <= steps; ++step) {
      const double angle = std::numbers::pi / 2.0 * step / steps;
      const double a = 1.0 - std::sin(angle), b = 1.0 - std::cos(angle);
      path.push_back({corner.x + a * (start.x - corner.x) + b * (end.x - corner.x),
                      corner.y + a * (start.y - corner.y) + b * (end.y - corner.y)});
    }
  }
  path.push_back(corners.back());
  return path;
}

std::vector<PlotPoint> half_ellipse(PlotPoint from, PlotPoint to, PlotPoint bulge) {
  constexpr int steps = 24;
  std::vector<PlotPoint> path;
  for (int step = 0; step <= steps; ++step) {
    const double angle = std::numbers::pi * step / steps;
    const PlotPoint on_chord = between(from, to, (1.0 - std::cos(angle)) / 2.0);
    path.push_back({on_chord.x + bulge.x * std::sin(angle), on_chord.y + bulge.y * std::sin(angle)});
  }
  return path;
}

RowSlots row_slots(std::int64_t count, std::int64_t most, std::int64_t head, std::int64_t tail) {
  constexpr double gap = 1.0;  // in pitches, beyond the usual distance
  RowSlots slots;
  const bool all = count <= most || count <= head + tail;
  for (std::int64_t i = 0; i < (all ? count : head); ++i) {
    slots.index.push_back(i);
    slots.place.push_back(static_cast<double>(i));
  }
  slots.head = slots.size();
  for (std::int64_t i = 0; i < (all ? 0 : tail); ++i) {
    slots.index.push_back(count - tail + i);
    slots.place.push_back(static_cast<double>(head + i) + gap);
  }
  return slots;
}

}  // namespace assay::draw

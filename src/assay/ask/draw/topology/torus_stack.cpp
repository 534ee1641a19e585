// A small torus of three axes, chip by chip: X to the right, Z up, Y into the depth of an oblique projection.
#include <fmt/format.h>

#include <algorithm>

#include "assay/ask/draw/topology/torus_sketch.h"

namespace assay::draw {
namespace {

// A step along Y. Among shallow steps, this one keeps chips of up to four layers farthest from each other.
constexpr double stack_depth_x = 0.36;
constexpr double stack_depth_y = 0.22;

struct StackStyle {
  double pitch = 60.0;
  double radius = 6.5;
  bool labels = true;
};

class StackPainter {
 public:
  StackPainter(const hardware::Cluster& cluster, std::vector<hardware::Axis> axes, hardware::Shape host,
               StackStyle style)
      : cluster_(cluster), axes_(std::move(axes)), host_(std::move(host)), style_(style) {}

  SliceSketch paint() {
    add_hosts();
    for (std::size_t axis = 0; style_.labels && axis < 3; ++axis) add_wraps(axis);
    add_lines(1, size(1) - 1);
    for (std::int64_t y = size(1) - 1; y >= 0; --y) {
      add_lines(0, y);
      add_lines(2, y);
      add_chips(y);
    }
    if (style_.labels) add_axis_names();
    return {std::move(sketch_), place(last(0) / 2.0, last(1), last(2))};
  }

 private:
  std::int64_t size(std::size_t axis) const { return axes_[axis].size; }
  double last(std::size_t axis) const { return static_cast<double>(axes_[axis].size - 1); }

  PlotPoint place(double x, double y, double z) const {
    return {style_.pitch * (x + stack_depth_x * y), -style_.pitch * (z + stack_depth_y * y)};
  }

  void add_hosts() {
    if (host_.size() != 3 || host_[2] != 1) return;
    constexpr double x_margin = 0.2, y_margin = 0.32;
    for (std::int64_t z = 0; z < size(2); ++z)
      for (std::int64_t y = size(1) - host_[1]; y >= 0; y -= host_[1])
        for (std::int64_t x = 0; x < size(0); x += host_[0]) {
          const double left = static_cast<double>(x) - x_margin,
                       right = static_cast<double>(x + host_[0] - 1) + x_margin;
          const double front = static_cast<double>(y) - y_margin,
                       back = static_cast<double>(y + host_[1] - 1) + y_margin;
          const auto level = static_cast<double>(z);
          sketch_.add(Polygon{{place(left, front, level), place(right, front, level), place(right, back, level),
                               place(left, back, level)},
                              host_paint()},
                      fmt::format("host of {} chips", hardware::shape_text(host_)));
        }
  }

  /// Lines of links along X and Z in the layer at depth `y`, or all lines along Y.
  void add_lines(std::size_t axis, std::int64_t y) {
    if (size(axis) < 2) return;
    const auto depth = static_cast<double>(y);
    Paint paint = link_paint(axis);
    paint.stroke_opacity = axis == 1 ? 0.75 : 1.0 - 0.1 * depth;
    paint.stroke_width = style_.labels ? 1.6 : 1.2;
    const std::string tooltip = style_.labels ? axis_text(cluster_, axis).front() : "";
    const std::size_t across = axis == 2 ? 0 : 2;
    for (std::int64_t i = 0; i < size(across); ++i) {
      const auto level = static_cast<double>(i);
      if (axis == 0) sketch_.line(place(0, depth, level), place(last(0), depth, level), paint, tooltip);
      if (axis == 2) sketch_.line(place(level, depth, 0), place(level, depth, last(2)), paint, tooltip);
      for (std::int64_t x = 0; axis == 1 && x < size(0); ++x)
        sketch_.line(place(static_cast<double>(x), 0, level), place(static_cast<double>(x), last(1), level), paint,
                     tooltip);
    }
  }

  void add_chips(std::int64_t y) {
    // Chips at the back are smaller and paler.
    const auto depth = static_cast<double>(y);
    const double radius = style_.radius * (1.0 - 0.05 * depth);
    for (std::int64_t z = 0; z < size(2); ++z)
      for (std::int64_t x = 0; x < size(0); ++x)
        sketch_.add(Marker{.centre = place(static_cast<double>(x), depth, static_cast<double>(z)),
                           .radius = radius,
                           .paint = {.fill = y == 0 ? ColourRole::ink : ColourRole::muted,
                                     .stroke = ColourRole::surface,
                                     .stroke_width = 1.0}},
                    style_.labels ? fmt::format("chip {},{},{}", x, y, z) : "");
  }

  /// Along the six edges of the outline, two for each axis; the wraparound links of inner lines are left out.
  void add_wraps(std::size_t axis) {
    if (!axes_[axis].ring || size(axis) < 2) return;
    const double x = last(0), y = last(1), z = last(2);
    const double out = 0.62 * style_.pitch;
    const hardware::Torus& torus = *cluster_.torus;
    const Paint paint = wrap_paint(axis);
    const std::string tooltip = axis_text(cluster_, axis).front() + ": wraparound";
    const auto draw = [&](std::vector<PlotPoint> path) { sketch_.add(Polyline{std::move(path), paint}, tooltip); };
    const std::string twist = twist_text(torus, axis);
    const bool climbs = twist == fmt::format("{} by {}", axes_[2].name, size(axis));
    if (!twist.empty() && !climbs) {
      // The other end is not straight across, so both ends are left open.
      const PlotPoint step = axis == 0 ? PlotPoint{1, 0} : axis == 1 ? PlotPoint{0.85, -0.52} : PlotPoint{0, -1};
      const auto stub = [&](PlotPoint from, double length) {
        draw({from, {from.x + length * step.x, from.y + length * step.y}});
      };
      const PlotPoint low = axis == 1 ? place(x, 0, 0) : place(0, 0, 0),
                      high = axis == 1 ? place(0, y, z) : place(x, y, z);
      stub(low, -0.6 * out);
      stub(axis == 0 ? place(x, 0, 0) : axis == 1 ? place(x, y, 0) : place(0, 0, z), 0.6 * out);
      stub(axis == 0 ? place(0, y, z) : axis == 1 ? place(0, 0, z) : place(x, y, 0), -0.6 * out);
      stub(high, 0.6 * out);
      return;
    }
    if (climbs) {
      // Leaving the short axis also climbs half of Z; the picture has one such link at the bottom and one at the top.
      const auto half = static_cast<double>(size(axis));
      const PlotPoint low = place(x, 0, 0), high = place(0, y, z);
      const PlotPoint low_end = axis == 0 ? place(0, 0, half) : place(x, y, half);
      const PlotPoint high_end = axis == 0 ? place(x, y, z - half) : place(0, 0, z - half);
      const double aside = axis == 0 ? 1.75 * out : 1.3 * out;
      const double left = place(0, 0, 0).x - aside, right = place(x, y, 0).x + aside;
      const double low_turn = low.y + out, high_turn = high.y - out;
      if (axis == 0) {
        draw(rounded_path({low, {low.x, low_turn}, {left, low_turn}, {left, low_end.y}, low_end}, {out, out, out}));
        draw(rounded_path({high, {high.x, high_turn}, {right, high_turn}, {right, high_end.y}, high_end},
                          {out, out, out}));
      } else {
        draw(rounded_path({low, {right, low.y}, {right, low_end.y}, low_end}, {out, out, out}));
        draw(rounded_path({high, {left, high.y}, {left, high_end.y}, high_end}, {out, out}));
      }
      return;
    }
    if (axis == 0) {
      draw(half_ellipse(place(0, 0, 0), place(x, 0, 0), {0, 0.8 * out}));
      draw(half_ellipse(place(0, y, z), place(x, y, z), {0, -0.8 * out}));
    } else if (axis == 1) {
      draw(half_ellipse(place(x, 0, 0), place(x, y, 0), {0.75 * out, 0.45 * out}));
      draw(half_ellipse(place(0, 0, z), place(0, y, z), {-0.75 * out, -0.45 * out}));
    } else {
      draw(half_ellipse(place(0, 0, 0), place(0, 0, z), {-0.8 * out, 0}));
      draw(half_ellipse(place(x, y, 0), place(x, y, z), {0.8 * out, 0}));
    }
  }

  void add_axis_names() {
    const SketchBounds box = sketch_.bounds();
    const auto half_height = [&](std::size_t axis) {
      return text_block_height(axis_text(cluster_, axis).size()) / 2.0;
    };
    const double x = last(0), y = last(1), z = last(2);
    if (size(0) > 1) add_axis_name(sketch_, {place(x, 0, 0).x + 12.0, box.bottom + 12.0}, cluster_, 0, Anchor::end);
    if (size(1) > 1)
      add_axis_name(sketch_, {box.right + 14.0, place(x, y / 2.0, 0).y - half_height(1)}, cluster_, 1, Anchor::start);
    if (size(2) > 1)
      add_axis_name(sketch_, {box.left - 14.0, place(0, 0, z / 2.0).y - half_height(2)}, cluster_, 2, Anchor::end);
  }

  const hardware::Cluster& cluster_;
  std::vector<hardware::Axis> axes_;
  hardware::Shape host_;
  StackStyle style_;
  Sketch sketch_;
};

}  // namespace

SliceSketch sketch_torus_stack(const hardware::Cluster& cluster) {
  return StackPainter(cluster, cluster.torus->axes, host_tile(cluster), {}).paint();
}

Sketch sketch_cube_inside(const hardware::Cluster& cluster, std::int64_t side, double pitch) {
  std::vector<hardware::Axis> axes = cluster.torus->axes;
  for (hardware::Axis& axis : axes) axis = {axis.name, side, false};
  hardware::Shape host = host_tile(cluster);
  if (std::any_of(host.begin(), host.end(), [&](std::int64_t edge) { return side % edge != 0; })) host.clear();
  return StackPainter(cluster, std::move(axes), std::move(host),
                      {.pitch = pitch, .radius = 0.12 * pitch, .labels = false})
      .paint()
      .sketch;
}

}  // namespace assay::draw

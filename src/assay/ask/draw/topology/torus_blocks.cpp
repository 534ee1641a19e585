// A large torus of three axes: whole cubes as a solid block in oblique projection, with one cube shown from inside.
#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "assay/ask/draw/topology/torus_sketch.h"
#include "assay/base/text.h"

namespace assay::draw {
namespace {

constexpr double block_depth_x = 0.5;
constexpr double block_depth_y = 0.32;

class BlockPainter {
 public:
  explicit BlockPainter(const hardware::Cluster& cluster) : cluster_(cluster), side_(block_side(cluster)) {
    double longest = 1.0;
    for (std::size_t i = 0; i < 3; ++i) {
      slots_[i] = row_slots(cluster.torus->axes[i].size / side_, 8, 4, 2);
      longest = std::max(longest, slots_[i].length() + 1.0);
    }
    pitch_ = std::clamp(340.0 / longest, 40.0, 66.0);
  }

  SliceSketch paint() {
    // Back to front, bottom to top, left to right: later shapes may hide earlier ones.
    for (const Span& y : reversed(spans(1)))
      for (const Span& z : spans(2))
        for (const Span& x : spans(0)) add_piece(x, y, z);
    add_gaps();
    frame_ = sketch_.bounds();
    for (std::size_t axis = 0; axis < 3; ++axis) add_wrap(axis);
    add_axis_names();
    add_inside();
    return {std::move(sketch_), place(length(0) / 2.0, length(1), length(2))};
  }

 private:
  /// A run of cubes without a gap.
  struct Span {
    double from = 0.0;
    int count = 0;
  };

  std::vector<Span> spans(std::size_t axis) const {
    const RowSlots& slots = slots_[axis];
    std::vector<Span> all = {{0.0, static_cast<int>(slots.head)}};
    if (slots.broken()) all.push_back({slots.place[slots.head], static_cast<int>(slots.size() - slots.head)});
    return all;
  }

  static std::vector<Span> reversed(std::vector<Span> all) {
    std::reverse(all.begin(), all.end());
    return all;
  }

  double length(std::size_t axis) const { return slots_[axis].length() + 1.0; }

  PlotPoint place(double x, double y, double z) const {
    return {pitch_ * (x + block_depth_x * y), -pitch_ * (z + block_depth_y * y)};
  }

  /// `columns` x `rows` faces of cubes, each spanned by `u` and `v`.
  void add_side(PlotPoint origin, PlotPoint u, int columns, PlotPoint v, int rows, double tint) {
    const auto corner = [&](int a, int b) {
      return PlotPoint{origin.x + a * u.x + b * v.x, origin.y + a * u.y + b * v.y};
    };
    const auto face = [&](int a, int b, int width, int height) {
      return std::vector<PlotPoint>{corner(a, b), corner(a + width, b), corner(a + width, b + height),
                                    corner(a, b + height)};
    };
    sketch_.add(Polygon{face(0, 0, columns, rows), {.fill = ColourRole::surface}});
    const Paint paint = {.fill = ColourRole::muted,
                         .fill_opacity = tint,
                         .stroke = ColourRole::ink,
                         .stroke_opacity = 0.6,
                         .stroke_width = 1.0};
    for (int a = 0; a < columns; ++a)
      for (int b = 0; b < rows; ++b) sketch_.add(Polygon{face(a, b, 1, 1), paint});
  }

  void add_piece(const Span& x, const Span& y, const Span& z) {
    const PlotPoint across = {pitch_, 0}, up = {0, -pitch_}, deep = {block_depth_x * pitch_, -block_depth_y * pitch_};
    add_side(place(x.from, y.from, z.from), across, x.count, up, z.count, 0.12);
    add_side(place(x.from, y.from, z.from + z.count), across, x.count, deep, y.count, 0.04);
    add_side(place(x.from + x.count, y.from, z.from), deep, y.count, up, z.count, 0.26);
  }

  /// Dotted lines over the gap of a broken axis, along the visible edges of the block.
  void add_gaps() {
    for (std::size_t axis = 0; axis < 3; ++axis) {
      if (!slots_[axis].broken()) continue;
      const auto head = static_cast<double>(slots_[axis].head), rest = slots_[axis].place[slots_[axis].head];
      const double x = length(0), y = length(1), z = length(2);
      Paint dotted = link_paint(axis);
      dotted.dash = Dash::dotted;
      const auto draw = [&](PlotPoint from, PlotPoint to) { sketch_.line(from, to, dotted); };
      if (axis == 0)
        draw(place(head, 0, 0), place(rest, 0, 0)), draw(place(head, 0, z), place(rest, 0, z)),
            draw(place(head, y, z), place(rest, y, z));
      if (axis == 1)
        draw(place(0, head, z), place(0, rest, z)), draw(place(x, head, z), place(x, rest, z)),
            draw(place(x, head, 0), place(x, rest, 0));
      if (axis == 2)
        draw(place(0, 0, head), place(0, 0, rest)), draw(place(x, 0, head), place(x, 0, rest)),
            draw(place(x, y, head), place(x, y, rest));
    }
  }

  /// One arc along an edge of the outline for a ring, dashed where it is twisted; a straight dimension line for a line.
  void add_wrap(std::size_t axis) {
    const hardware::Axis& along = cluster_.torus->axes[axis];
    const double x = length(0), y = length(1), z = length(2);
    const std::array<PlotPoint, 3> from = {place(0, 0, 0), place(x, 0, 0), place(0, 0, 0)};
    const std::array<PlotPoint, 3> to = {place(x, 0, 0), place(x, y, 0), place(0, 0, z)};
    const std::array<PlotPoint, 3> out = {PlotPoint{0, 1}, PlotPoint{0.62, 0.78}, PlotPoint{-1, 0}};
    const PlotPoint a = from[axis], b = to[axis], n = out[axis];
    Paint paint = wrap_paint(axis);
    paint.stroke_width = 2.0;
    if (!twist_text(*cluster_.torus, axis).empty()) paint.dash = Dash::dashed;
    const std::string tooltip = axis_text(cluster_, axis).front();
    if (along.ring) {
      sketch_.add(Polyline{half_ellipse(a, b, {30.0 * n.x, 30.0 * n.y}), paint}, tooltip);
      return;
    }
    const auto moved = [&](PlotPoint p, double by) { return PlotPoint{p.x + by * n.x, p.y + by * n.y}; };
    sketch_.line(moved(a, 14.0), moved(b, 14.0), paint, tooltip);
    for (const PlotPoint& end : {a, b}) sketch_.line(moved(end, 9.0), moved(end, 19.0), paint, tooltip);
  }

  void add_axis_names() {
    const SketchBounds box = sketch_.bounds();
    const double x = length(0), y = length(1), z = length(2);
    const double height = text_block_height(axis_text(cluster_, 2).size());
    y_name_top_ = place(x, y / 2.0, 0).y - 2.0;
    add_axis_name(sketch_, {place(x, 0, 0).x, box.bottom + 10.0}, cluster_, 0, Anchor::end);
    add_axis_name(sketch_, {box.right + 14.0, y_name_top_}, cluster_, 1, Anchor::start);
    add_axis_name(sketch_, {box.left - 12.0, place(0, 0, z / 2.0).y - height / 2.0}, cluster_, 2, Anchor::end);
  }

  /// One cube, opened, to the right of the block.
  void add_inside() {
    if (side_ < 2) return;
    const Sketch inside = sketch_cube_inside(cluster_, side_, 34.0);
    const SketchBounds box = inside.bounds();
    const double x = length(0), y = length(1), z = length(2);
    constexpr double pad = 16.0;
    // High enough for the panel and its text to stay clear of the name of Y.
    const double below = 10.0 + text_block_height(2) + 16.0;
    const double top = std::min(frame_.top, y_name_top_ - below - box.height() - 2.0 * pad);
    const double left = frame_.right + 44.0;
    const Rectangle panel = {
        left,
        top,
        box.width() + 2.0 * pad,
        box.height() + 2.0 * pad,
        8.0,
        {.fill = ColourRole::surface, .stroke = ColourRole::muted, .stroke_opacity = 0.6, .stroke_width = 1.0}};
    // The opened cube is the one at the upper right of the back.
    const PlotPoint low = place(x, y, z - 1.0), high = place(x, y, z);
    const Paint ray = {
        .stroke = ColourRole::muted, .stroke_opacity = 0.8, .stroke_width = 0.9, .dash = Dash::short_dashed};
    sketch_.line(high, {panel.x, panel.y}, ray);
    sketch_.line(low, {panel.x, panel.y + panel.height}, ray);
    const Paint edge = {.stroke = ColourRole::ink, .stroke_width = 2.0};
    sketch_.add(Polygon{{place(x, y - 1.0, z - 1.0), low, high, place(x, y - 1.0, z)}, edge});
    sketch_.add(Polygon{{place(x - 1.0, y - 1.0, z), place(x, y - 1.0, z), high, place(x - 1.0, y, z)}, edge});
    if (y == 1.0)
      sketch_.add(
          Polygon{{place(x - 1.0, 0, z - 1.0), place(x, 0, z - 1.0), place(x, 0, z), place(x - 1.0, 0, z)}, edge});
    sketch_.add(panel);
    sketch_.append(inside, panel.x + pad - box.left, panel.y + pad - box.top);
    const std::int64_t chips = side_ * side_ * side_;
    std::vector<std::string> text = {fmt::format("one cube of {0}x{0}x{0} chips", side_)};
    const std::int64_t per_host = cluster_.chip.host.chips.value;
    text.push_back(chips % per_host == 0 ? fmt::format("{} chips on {} hosts", chips, chips / per_host)
                                         : fmt::format("{} chips", chips));
    sketch_.text_block({panel.x, panel.y + panel.height + 10.0}, text, Anchor::start);
  }

  const hardware::Cluster& cluster_;
  std::int64_t side_;
  std::array<RowSlots, 3> slots_;
  double pitch_ = 0.0;
  SketchBounds frame_;
  double y_name_top_ = 0.0;
  Sketch sketch_;
};

}  // namespace

SliceSketch sketch_torus_blocks(const hardware::Cluster& cluster) { return BlockPainter(cluster).paint(); }

}  // namespace assay::draw

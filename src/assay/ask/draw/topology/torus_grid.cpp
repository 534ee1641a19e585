// A torus of two axes: chips on a plane, X to the right and Y down; wraparound links run around the outside.
#include <fmt/format.h>

#include <algorithm>

#include "assay/ask/draw/lettering.h"
#include "assay/ask/draw/topology/torus_sketch.h"
#include "assay/base/text.h"

namespace assay::draw {
namespace {

constexpr std::int64_t most_per_axis = 16;
constexpr std::int64_t most_numbered = 32;
constexpr double clearance = 12.0;  // from the outermost hosts to the first wraparound link

/// The drawn part of an axis; where it is broken, the gap falls between hosts.
RowSlots axis_slots(std::int64_t size, std::int64_t host) {
  const std::int64_t head = std::max<std::int64_t>(1, 8 / host) * host,
                     tail = std::max<std::int64_t>(1, 4 / host) * host;
  return host <= 8 ? row_slots(size, most_per_axis, head, tail) : row_slots(size, most_per_axis, 8, 4);
}

class GridPainter {
 public:
  explicit GridPainter(const hardware::Cluster& cluster) : cluster_(cluster), torus_(*cluster.torus) {
    host_ = host_tile(cluster);
    for (std::size_t i = 0; i < 2; ++i) slots_[i] = axis_slots(size(i), host_.size() == 2 ? host_[i] : 1);
    pitch_ = std::max(slots_[0].size(), slots_[1].size()) <= 8 ? 48.0 : 34.0;
  }

  SliceSketch paint() {
    add_hosts();
    for (std::size_t axis = 0; axis < torus_.axes.size(); ++axis) add_links(axis);
    for (std::size_t axis = 0; axis < torus_.axes.size(); ++axis) add_wraps(axis);
    add_chips();
    add_axis_names();
    return {std::move(sketch_), {right() / 2.0, -host_margin()}};
  }

 private:
  std::int64_t size(std::size_t axis) const { return axis < torus_.axes.size() ? torus_.axes[axis].size : 1; }
  bool ring(std::size_t axis) const { return axis < torus_.axes.size() && torus_.axes[axis].ring && size(axis) > 1; }
  double chip_side() const { return numbered() ? 28.0 : 0.5 * pitch_; }
  double host_margin() const { return 0.5 * pitch_ - 3.0; }
  bool numbered() const { return torus_.chips() <= most_numbered; }
  double at(std::size_t axis, std::size_t slot) const { return pitch_ * slots_[axis].place[slot]; }
  double right() const { return pitch_ * slots_[0].length(); }
  double bottom() const { return pitch_ * slots_[1].length(); }

  void add_hosts() {
    if (host_.size() != 2) return;
    if (slots_[0].broken() && host_[0] > 8) return;
    if (slots_[1].broken() && host_[1] > 8) return;
    const auto width = static_cast<std::size_t>(host_[0]), height = static_cast<std::size_t>(host_[1]);
    const double margin = host_margin();
    for (std::size_t y = 0; y + height <= slots_[1].size(); y += height)
      for (std::size_t x = 0; x + width <= slots_[0].size(); x += width)
        sketch_.add(Rectangle{at(0, x) - margin, at(1, y) - margin, at(0, x + width - 1) - at(0, x) + 2.0 * margin,
                              at(1, y + height - 1) - at(1, y) + 2.0 * margin, 7.0, host_paint()},
                    fmt::format("host of {}x{} chips", host_[0], host_[1]));
  }

  PlotPoint point(std::size_t axis, double along, double across) const {
    return axis == 0 ? PlotPoint{along, across} : PlotPoint{across, along};
  }

  void add_links(std::size_t axis) {
    if (size(axis) < 2) return;
    const RowSlots &along = slots_[axis], &across = slots_[1 - axis];
    const Paint paint = link_paint(axis);
    Paint dotted = paint;
    dotted.dash = Dash::dotted;
    const std::string tooltip = axis_text(cluster_, axis).front();
    for (std::size_t i = 0; i < across.size(); ++i) {
      const double level = at(1 - axis, i);
      const auto segment = [&](std::size_t from, std::size_t to, const Paint& with) {
        if (from < to)
          sketch_.line(point(axis, at(axis, from), level), point(axis, at(axis, to), level), with, tooltip);
      };
      segment(0, along.head - 1, paint);
      if (!along.broken()) continue;
      segment(along.head - 1, along.head, dotted);
      segment(along.head, along.size() - 1, paint);
    }
  }

  /// Rows of the upper half go around above the grid and the others below, each on a track of its own; columns likewise
  /// to the left and right, outside of the rows' tracks. Where the torus is twisted, both ends are left open.
  void add_wraps(std::size_t axis) {
    if (!ring(axis)) return;
    const std::size_t lines = slots_[1 - axis].size(), half = (lines + 1) / 2;
    const double spacing = std::clamp(36.0 / static_cast<double>(half), 4.0, 8.0);
    const double first = host_margin() + clearance + (axis == 1 ? row_tracks_ : 0.0);
    const double end = axis == 0 ? right() : bottom(), far = axis == 0 ? bottom() : right();
    const std::string tooltip = axis_text(cluster_, axis).front() + ": wraparound";
    for (std::size_t i = 0; i < lines; ++i) {
      const double level = at(1 - axis, i);
      const bool low = i < half;
      const std::size_t track = low ? i : lines - 1 - i;
      const double out = first + spacing * static_cast<double>(track);
      const double turn = low ? -out : far + out;
      if (!twist_text(torus_, axis).empty()) {
        for (double from : {0.0, end})
          sketch_.line(point(axis, from, level), point(axis, from == 0.0 ? -first : end + first, level),
                       wrap_paint(axis), tooltip);
        continue;
      }
      const std::vector<PlotPoint> corners = {point(axis, end, level),      point(axis, end + out, level),
                                              point(axis, end + out, turn), point(axis, -out, turn),
                                              point(axis, -out, level),     point(axis, 0.0, level)};
      // The outer corners of all tracks share one centre; the inner ones are as round as space allows.
      const double wide = 0.55 * first + spacing * static_cast<double>(track);
      const double tight = std::min(out, 0.45 * first + pitch_ * static_cast<double>(track));
      sketch_.add(Polyline{rounded_path(corners, {tight, wide, wide, tight}), wrap_paint(axis)}, tooltip);
    }
    if (axis == 0) row_tracks_ = spacing * static_cast<double>(half - 1) + 9.0;
  }

  void add_chips() {
    const double side = chip_side();
    for (std::size_t y = 0; y < slots_[1].size(); ++y)
      for (std::size_t x = 0; x < slots_[0].size(); ++x) {
        const PlotPoint centre = {at(0, x), at(1, y)};
        const std::string name = fmt::format("{},{}", slots_[0].index[x], slots_[1].index[y]);
        sketch_.add(Rectangle{centre.x - side / 2.0, centre.y - side / 2.0, side, side, 0.18 * side, chip_paint()},
                    numbered() ? "" : "chip " + name);
        if (numbered()) sketch_.add(Label{{centre.x, centre.y + 3.6}, name, 10.0, Anchor::middle, ColourRole::surface});
      }
  }

  void add_axis_names() {
    const SketchBounds box = sketch_.bounds();
    if (size(0) > 1) add_axis_name(sketch_, {right() / 2.0, box.bottom + 14.0}, cluster_, 0, Anchor::middle);
    if (size(1) < 2) return;
    const double height = text_block_height(axis_text(cluster_, 1).size());
    add_axis_name(sketch_, {box.left - 16.0, (bottom() - height) / 2.0}, cluster_, 1, Anchor::end);
  }

  const hardware::Cluster& cluster_;
  const hardware::Torus& torus_;
  hardware::Shape host_;
  RowSlots slots_[2];
  double pitch_ = 0.0;
  double row_tracks_ = 0.0;
  Sketch sketch_;
};

}  // namespace

SliceSketch sketch_torus_grid(const hardware::Cluster& cluster) { return GridPainter(cluster).paint(); }

}  // namespace assay::draw

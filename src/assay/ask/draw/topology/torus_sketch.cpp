#include "assay/ask/draw/topology/torus_sketch.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "assay/base/text.h"

namespace assay::draw {
namespace {

constexpr std::int64_t most_stacked_chips = 128;
constexpr std::int64_t longest_stacked_axis = 8;

}  // namespace

TorusView torus_view(const hardware::Torus& torus) {
  if (torus.axes.size() < 3) return TorusView::grid;
  const bool short_axes = std::all_of(torus.axes.begin(), torus.axes.end(),
                                      [](const hardware::Axis& axis) { return axis.size <= longest_stacked_axis; });
  return short_axes && torus.chips() <= most_stacked_chips ? TorusView::stack : TorusView::blocks;
}

SliceSketch sketch_torus(const hardware::Cluster& cluster) {
  switch (torus_view(*cluster.torus)) {
    case TorusView::grid:
      return sketch_torus_grid(cluster);
    case TorusView::stack:
      return sketch_torus_stack(cluster);
    case TorusView::blocks:
      break;
  }
  return sketch_torus_blocks(cluster);
}

SliceSketch sketch_slice_outline(const hardware::Cluster& cluster, double size) {
  constexpr int most_cells = 8;
  const hardware::Torus& torus = *cluster.torus;
  const std::size_t rank = std::min<std::size_t>(torus.axes.size(), 3);
  std::int64_t longest = 1;
  for (const hardware::Axis& axis : torus.axes) longest = std::max(longest, axis.size);
  std::array<double, 3> length = {};
  std::array<int, 3> cells = {1, 1, 1};
  for (std::size_t i = 0; i < rank; ++i) {
    // A very long slice keeps a visible width, and one of many cubes or hosts a visible pattern.
    length[i] = size * std::max(0.3, static_cast<double>(torus.axes[i].size) / static_cast<double>(longest));
    const std::int64_t side = rank == 3 ? block_side(cluster) : 2;
    cells[i] = static_cast<int>(std::clamp<std::int64_t>(torus.axes[i].size / side, 1, most_cells));
  }
  Sketch sketch;
  const auto add_side = [&](PlotPoint origin, PlotPoint u, int columns, PlotPoint v, int rows, double tint) {
    const auto at = [&](double a, double b) {
      return PlotPoint{origin.x + a * u.x + b * v.x, origin.y + a * u.y + b * v.y};
    };
    const Paint line = {.stroke = ColourRole::muted, .stroke_opacity = 0.5, .stroke_width = 0.7};
    sketch.add(
        Polygon{{at(0, 0), at(1, 0), at(1, 1), at(0, 1)},
                {.fill = ColourRole::muted, .fill_opacity = tint, .stroke = ColourRole::muted, .stroke_width = 1.0}});
    for (int i = 1; i < columns; ++i) sketch.line(at(1.0 * i / columns, 0), at(1.0 * i / columns, 1), line);
    for (int i = 1; i < rows; ++i) sketch.line(at(0, 1.0 * i / rows), at(1, 1.0 * i / rows), line);
  };
  const bool flat = rank < 3;
  const PlotPoint across = {length[0], 0}, up = {0, -(flat ? std::max(length[1], 0.3 * size) : length[2])};
  add_side({0, 0}, across, cells[0], up, flat ? cells[1] : cells[2], 0.12);
  if (flat) return {std::move(sketch), {length[0] / 2.0, up.y}};
  const PlotPoint deep = {0.4 * length[1], -0.26 * length[1]};
  add_side(up, across, cells[0], deep, cells[1], 0.04);
  add_side(across, deep, cells[1], up, cells[2], 0.26);
  return {std::move(sketch), {deep.x + length[0] / 2.0, up.y + deep.y}};
}

hardware::Shape host_tile(const hardware::Cluster& cluster) {
  const hardware::Torus& torus = *cluster.torus;
  if (!cluster.chip.host.shape) return {};
  hardware::Shape tile = cluster.chip.host.shape->value;
  if (tile.size() != torus.axes.size()) return {};
  const std::int64_t hosts = hardware::host_count(cluster) / cluster.slices;
  const auto tiles = [&](const hardware::Shape& shape) {
    std::int64_t count = 1;
    for (std::size_t i = 0; i < shape.size(); ++i) {
      const std::int64_t side = std::min(shape[i], torus.axes[i].size);
      if (torus.axes[i].size % side != 0) return false;
      count *= torus.axes[i].size / side;
    }
    return count == hosts;
  };
  if (!tiles(tile)) {
    std::sort(tile.begin(), tile.end());
    while (!tiles(tile))
      if (!std::next_permutation(tile.begin(), tile.end())) return {};
  }
  for (std::size_t i = 0; i < tile.size(); ++i) tile[i] = std::min(tile[i], torus.axes[i].size);
  return tile;
}

std::int64_t block_side(const hardware::Cluster& cluster) {
  const hardware::ScaleUp& up = *cluster.chip.network.scale_up;
  if (up.wrap_rule != "cube" || !up.wrap_length) return 1;
  const std::int64_t side = up.wrap_length->value;
  const auto& axes = cluster.torus->axes;
  const bool whole =
      std::all_of(axes.begin(), axes.end(), [&](const hardware::Axis& axis) { return axis.size % side == 0; });
  return whole ? side : 1;
}

ColourRole axis_colour(std::size_t axis) { return series_colour(static_cast<int>(axis) + 1); }

std::string twist_text(const hardware::Torus& torus, std::size_t axis) {
  std::string text;
  if (!torus.twisted) return text;
  const std::int64_t size = torus.axes[axis].size;
  for (const hardware::Axis& other : torus.axes)
    if (other.size == 2 * size) text += fmt::format("{}{} by {}", text.empty() ? "" : " and ", other.name, size);
  return text;
}

std::vector<std::string> axis_text(const hardware::Cluster& cluster, std::size_t axis) {
  const hardware::Torus& torus = *cluster.torus;
  const hardware::Axis& along = torus.axes[axis];
  const std::int64_t side = torus_view(torus) == TorusView::blocks ? block_side(cluster) : 1;
  std::string chips = fmt::format("{} {}", human_count(along.size), along.size == 1 ? "chip" : "chips");
  if (side > 1) chips += fmt::format(" = {} {}", human_count(along.size / side), along.size == side ? "cube" : "cubes");
  std::vector<std::string> lines = {fmt::format("{}: {}, {}", along.name, chips, along.ring ? "ring" : "line"),
                                    human(cluster.chip.network.scale_up->link_bandwidth.value) + " one way per link"};
  if (const std::string twist = twist_text(torus, axis); !twist.empty()) lines.push_back("twisted: shifts " + twist);
  return lines;
}

void add_axis_name(Sketch& sketch, PlotPoint at, const hardware::Cluster& cluster, std::size_t axis, Anchor anchor) {
  constexpr double size = 12.0, sample = 16.0, gap = 7.0;
  Paint paint = link_paint(axis);
  paint.stroke_width = 3.0;
  // The sample is where the text is anchored, since the other end of the text depends on the font.
  PlotPoint from = {at.x - (anchor == Anchor::end ? sample : 0.0), at.y + 0.45 * size};
  if (anchor == Anchor::middle) {
    from = {at.x - sample / 2.0, at.y + 1.5};
    at.y += gap;
  } else
    at.x += anchor == Anchor::end ? -sample - gap : sample + gap;
  sketch.line(from, {from.x + sample, from.y}, paint);
  sketch.text_block(at, axis_text(cluster, axis), anchor, size);
}

Paint link_paint(std::size_t axis) { return {.stroke = axis_colour(axis), .stroke_width = 1.8}; }

Paint wrap_paint(std::size_t axis) {
  return {.stroke = axis_colour(axis), .stroke_opacity = 0.75, .stroke_width = 1.3};
}

Paint host_paint() {
  return {.fill = ColourRole::muted,
          .fill_opacity = 0.11,
          .stroke = ColourRole::muted,
          .stroke_opacity = 0.55,
          .stroke_width = 0.9};
}

Paint chip_paint(double opacity) {
  return {.fill = ColourRole::ink, .fill_opacity = opacity, .stroke = ColourRole::surface, .stroke_width = 1.0};
}

}  // namespace assay::draw

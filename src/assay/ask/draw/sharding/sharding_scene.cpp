#include "assay/ask/draw/sharding/sharding_scene.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "assay/ask/draw/lettering.h"
#include "assay/ask/draw/page.h"
#include "assay/base/text.h"

namespace assay::draw {
namespace {

constexpr double shard_text_size = 11.0;
constexpr double least_cell = 32.0;

/// The maximum number of cells in a row of devices or shards before its middle is left out.
RowSlots slots(std::int64_t count) { return row_slots(count, 8, 4, 2); }
RowSlots layer_slots(std::int64_t count) { return row_slots(count, 4, 2, 1); }
/// Panels have up to three grids side by side.
RowSlots panel_layer_slots(std::int64_t count) { return row_slots(count, 2, 1, 1); }

std::vector<std::int64_t> shard_counts(const program::Mesh& mesh, const program::Tensor& tensor) {
  std::vector<std::int64_t> counts;
  for (std::size_t d = 0; d < tensor.dims.size(); ++d)
    counts.push_back(static_cast<std::int64_t>(program::shard_count(mesh, tensor.sharding.dims[d].set())));
  return counts;
}

std::string index_text(const std::vector<std::int64_t>& index) {
  std::vector<std::string> parts;
  for (std::int64_t i : index) parts.push_back(std::to_string(i));
  return parts.empty() ? "all" : join(parts, ",");
}

/// Neighbouring shards differ in hue; after eight shards the hues repeat, fainter or stronger.
Paint shard_paint(const std::vector<std::int64_t>& index, const std::vector<std::int64_t>& counts) {
  std::int64_t number = 0;
  for (std::size_t d = 0; d < index.size(); ++d) number = number * counts[d] + index[d];
  const ColourRole colour = series_colour(static_cast<int>(number % series_colour_count) + 1);
  constexpr double strengths[] = {0.30, 0.12, 0.46};
  return {.fill = colour,
          .fill_opacity = strengths[static_cast<std::size_t>(number / series_colour_count % 3)],
          .stroke = colour,
          .stroke_width = 1.3};
}

/// Diagonal lines over a box.
void hatch(Sketch& sketch, double x, double y, double width, double height, const std::string& tooltip) {
  constexpr double pitch = 8.0;
  const Paint paint{.stroke = ColourRole::ink, .stroke_opacity = 0.32, .stroke_width = 1.0};
  for (double c = pitch; c < width + height; c += pitch) {  // the line x + y = c, cut at the box
    const double x0 = std::max(0.0, c - height), x1 = std::min(width, c);
    sketch.line({x + x0, y + c - x0}, {x + x1, y + c - x1}, paint, tooltip);
  }
}

struct Cell {
  std::vector<std::int64_t> index, counts;
  std::string tooltip;
  bool partial = false;
};

void draw_cell(Sketch& sketch, double x, double y, double width, double height, const Cell& cell) {
  sketch.add(Rectangle{x, y, width, height, 3.0, shard_paint(cell.index, cell.counts)}, cell.tooltip);
  if (cell.partial) hatch(sketch, x, y, width, height, cell.tooltip);
  sketch.add(Label{{x + width / 2.0, y + height / 2.0 + 0.35 * shard_text_size},
                   index_text(cell.index),
                   shard_text_size,
                   Anchor::middle,
                   ColourRole::ink,
                   false,
                   cell.partial},
             cell.tooltip);
}

/// Marks the omitted middle of a row.
void draw_gap(Sketch& sketch, const RowSlots& row, double pitch, double across, bool down) {
  if (!row.broken()) return;
  const double at = (row.place[row.head - 1] + row.place[row.head] + 1.0) / 2.0 * pitch - 1.5;
  sketch.add(Label{down ? PlotPoint{across, at + 4.0} : PlotPoint{at, across + 4.0}, down ? "\u22ee" : "\u2026", 14.0,
                   Anchor::middle, ColourRole::muted});
}

/// Mesh axes longer than one: the first two span the grid of a layer, the others number the layers.
struct GridAxes {
  std::vector<std::size_t> all;
  std::int64_t rows = 1, columns = 1, layers = 1;
  std::size_t row = program::max_mesh_axes, column = program::max_mesh_axes;

  explicit GridAxes(const program::Mesh& mesh) {
    for (std::size_t i = 0; i < mesh.axes.size(); ++i)
      if (mesh.axes[i].size > 1) all.push_back(i);
    if (!all.empty()) {
      column = all.size() == 1 ? all[0] : all[1];
      columns = mesh.axes[column].size;
    }
    if (all.size() > 1) {
      row = all[0];
      rows = mesh.axes[row].size;
    }
    for (std::size_t i = 2; i < all.size(); ++i) layers *= mesh.axes[all[i]].size;
  }
  std::vector<std::int64_t> coordinates(const program::Mesh& mesh, std::int64_t r, std::int64_t c,
                                        std::int64_t layer) const {
    std::vector<std::int64_t> at(mesh.axes.size(), 0);
    if (row < at.size()) at[row] = r;
    if (column < at.size()) at[column] = c;
    for (std::size_t i = all.size(); i-- > 2;) {
      at[all[i]] = layer % mesh.axes[all[i]].size;
      layer /= mesh.axes[all[i]].size;
    }
    return at;
  }
};

std::string coordinates_text(const program::Mesh& mesh, const std::vector<std::int64_t>& at) {
  std::vector<std::string> parts;
  for (std::size_t i = 0; i < at.size(); ++i) parts.push_back(fmt::format("{}={}", mesh.axes[i].name, at[i]));
  return join(parts, ", ");
}

void label_axis(Sketch& sketch, PlotPoint at, const std::string& text, Anchor anchor, bool bold = false) {
  sketch.add(Label{at, text, picture_text_size, anchor, bold ? ColourRole::ink : ColourRole::muted, bold});
}

double cell_width(const program::Mesh& mesh, const program::Tensor& tensor) {
  std::vector<std::int64_t> last = shard_counts(mesh, tensor);
  for (std::int64_t& n : last) --n;
  return std::max(least_cell, text_width(index_text(last), shard_text_size) + 8.0);
}

/// One layer of devices, a grid with its upper left corner at 0, 0.
Sketch sketch_layer(const program::Mesh& mesh, const program::Tensor& tensor, const GridAxes& axes,
                    std::int64_t layer) {
  const double width = cell_width(mesh, tensor), pitch_x = width + 3.0, pitch_y = least_cell + 3.0;
  const RowSlots rows = slots(axes.rows), columns = slots(axes.columns);
  Sketch sketch;
  for (std::size_t r = 0; r < rows.size(); ++r)
    for (std::size_t c = 0; c < columns.size(); ++c) {
      const auto at = axes.coordinates(mesh, rows.index[r], columns.index[c], layer);
      Cell cell{shard_index(mesh, tensor, at), shard_counts(mesh, tensor), {}, tensor.sharding.unreduced != 0};
      cell.tooltip = fmt::format("device {}: {} {}", coordinates_text(mesh, at),
                                 cell.partial ? "partial sum of shard" : "shard", index_text(cell.index));
      draw_cell(sketch, columns.place[c] * pitch_x, rows.place[r] * pitch_y, width, least_cell, cell);
    }
  draw_gap(sketch, columns, pitch_x, rows.length() * pitch_y / 2.0 + least_cell / 2.0, false);
  draw_gap(sketch, rows, pitch_y, columns.length() * pitch_x / 2.0 + width / 2.0, true);
  return sketch;
}

/// All devices, with the names of the mesh axes along the sides.
Sketch sketch_devices(const program::Mesh& mesh, const program::Tensor& tensor,
                      RowSlots (*drawn_layers)(std::int64_t)) {
  const GridAxes axes(mesh);
  const RowSlots layers = drawn_layers(axes.layers);
  Sketch sketch;
  double x = 0.0;
  for (std::size_t i = 0; i < layers.size(); ++i) {
    const Sketch layer = sketch_layer(mesh, tensor, axes, layers.index[i]);
    if (layers.broken() && i == layers.head) {
      label_axis(sketch, {x + 4.0, layer.bounds().middle_y() + 4.0}, "\u2026", Anchor::middle, true);
      x += 24.0;
    }
    sketch.append(layer, x, 0.0);
    const double middle = x + layer.bounds().middle_x();
    if (axes.column < mesh.axes.size())
      label_axis(sketch, {middle, -7.0}, fmt::format("{} = {} \u2192", mesh.axes[axes.column].name, axes.columns),
                 Anchor::middle);
    if (axes.layers > 1) {
      const auto at = axes.coordinates(mesh, 0, 0, layers.index[i]);
      std::vector<std::string> parts;
      for (std::size_t k = 2; k < axes.all.size(); ++k)
        parts.push_back(fmt::format("{} = {}", mesh.axes[axes.all[k]].name, at[axes.all[k]]));
      label_axis(sketch, {middle, layer.bounds().bottom + 17.0}, join(parts, ", "), Anchor::middle);
    }
    x += layer.bounds().right + 20.0;
  }
  if (axes.row < mesh.axes.size()) {
    Sketch named;
    label_axis(named, {-9.0, sketch.bounds().top + 22.0 + least_cell / 2.0},
               fmt::format("{} = {}", mesh.axes[axes.row].name, axes.rows), Anchor::end);
    label_axis(named, {-9.0, sketch.bounds().top + 38.0 + least_cell / 2.0}, "\u2193", Anchor::end);
    sketch.append(named, 0.0, 0.0);
  }
  return sketch;
}

std::string dimension_text(const program::Mesh& mesh, const program::Tensor& tensor, std::size_t d) {
  const program::Dimension& dim = tensor.dims[d];
  const std::string size =
      dim.name == std::to_string(dim.size) ? dim.name : fmt::format("{} = {}", dim.name, human_count(dim.size));
  const program::AxisList axes = tensor.sharding.dims[d];
  if (axes.empty()) return size;
  return fmt::format("{} over {}", size, program::axes_text(mesh, axes));
}

/// The array cut into shards: its last two dimensions as a grid, further ones as grids side by side.
Sketch sketch_array(const program::Mesh& mesh, const program::Tensor& tensor) {
  const std::vector<std::int64_t> counts = shard_counts(mesh, tensor);
  const std::size_t rank = counts.size();
  const std::int64_t row_count = rank > 1 ? counts[rank - 2] : 1, column_count = rank > 0 ? counts[rank - 1] : 1;
  std::int64_t layer_count = 1;
  for (std::size_t d = 0; d + 2 < rank; ++d) layer_count *= counts[d];
  const RowSlots rows = slots(row_count), columns = slots(column_count), layers = layer_slots(layer_count);
  // Longer sides are drawn longer, within reason.
  const double tall = rank > 1 ? static_cast<double>(tensor.dims[rank - 2].size) : 1.0;
  const double wide = rank > 0 ? static_cast<double>(tensor.dims[rank - 1].size) : 1.0;
  const double ratio = std::clamp(std::sqrt(wide / tall), 0.6, 1.8);
  const double width = std::max(cell_width(mesh, tensor), 170.0 * ratio / (columns.length() + 1.0)),
               height = std::max(least_cell, 170.0 / ratio / (rows.length() + 1.0));
  Sketch sketch;
  double x = 0.0;
  for (std::size_t l = 0; l < layers.size(); ++l) {
    Sketch layer;
    std::vector<std::int64_t> index(rank, 0);
    std::int64_t rest = layers.index[l];
    for (std::size_t d = rank; d-- > 0;)
      if (d + 2 < rank) {
        index[d] = rest % counts[d];
        rest /= counts[d];
      }
    for (std::size_t r = 0; r < rows.size(); ++r)
      for (std::size_t c = 0; c < columns.size(); ++c) {
        if (rank > 1) index[rank - 2] = rows.index[r];
        if (rank > 0) index[rank - 1] = columns.index[c];
        draw_cell(layer, columns.place[c] * width, rows.place[r] * height, width, height,
                  {index, counts, fmt::format("shard {}", index_text(index)), tensor.sharding.unreduced != 0});
      }
    draw_gap(layer, columns, width, (rows.length() + 1.0) * height / 2.0, false);
    draw_gap(layer, rows, height, (columns.length() + 1.0) * width / 2.0, true);
    if (layers.broken() && l == layers.head) {
      label_axis(sketch, {x + 4.0, layer.bounds().middle_y()}, "\u2026", Anchor::middle, true);
      x += 24.0;
    }
    sketch.append(layer, x, 0.0);
    x += layer.bounds().right + 18.0;
  }
  const SketchBounds box = sketch.bounds();
  if (rank > 0) label_axis(sketch, {box.middle_x(), -7.0}, dimension_text(mesh, tensor, rank - 1), Anchor::middle);
  if (rank > 1) {
    const std::string text = dimension_text(mesh, tensor, rank - 2);
    sketch.add(Label{{-9.0, box.middle_y() + 4.0}, text, picture_text_size, Anchor::end, ColourRole::muted});
  }
  std::vector<std::string> outer;
  for (std::size_t d = 0; d + 2 < rank; ++d) outer.push_back(dimension_text(mesh, tensor, d));
  if (!outer.empty())
    label_axis(sketch, {box.middle_x(), box.bottom + 17.0}, "side by side: " + join(outer, ", "), Anchor::middle);
  return sketch;
}

/// A sketch with a line of text centred above it, starting at 0, 0.
Sketch headed(const Sketch& body, const std::string& text, bool bold = true) {
  const double width = std::max(body.bounds().width(), text_width(text, picture_text_size, bold));
  Sketch sketch;
  label_axis(sketch, {width / 2.0, 10.0}, text, Anchor::middle, bold);
  sketch.append(body, (width - body.bounds().width()) / 2.0 - body.bounds().left, 24.0 - body.bounds().top);
  return sketch;
}

std::string holding_text(const program::Mesh& mesh, const program::Tensor& tensor) {
  std::vector<std::string> sides;
  for (std::int64_t n : program::local_shape(mesh, tensor)) sides.push_back(human_count(n));
  std::string text = fmt::format("[{}], {} on each of {} devices", join(sides, " x "),
                                 human(program::local_bytes(mesh, tensor)), human_count(mesh.devices()));
  if (const std::int64_t copies = program::replication(mesh, tensor); copies > 1)
    text += fmt::format("; each shard held {} times", human_count(copies));
  if (tensor.sharding.unreduced)
    text += fmt::format("; partial sums, to be reduced over {}", program::axes_text(mesh, tensor.sharding.unreduced));
  return text;
}

std::string key_text(bool partial) {
  std::string text = "Devices with the same label and colour hold the same shard; a label counts shards by dimension.";
  if (partial) text += " Hatched: partial sums, not yet reduced.";
  return text;
}

/// An arrow with a name above and a cost below.
Sketch sketch_arrow(const std::string& above, const std::string& below) {
  const double width =
      std::max({90.0, text_width(above, picture_text_size, true) + 16.0, text_width(below, picture_text_size) + 16.0});
  const Paint paint{.stroke = ColourRole::ink, .stroke_width = 1.6};
  Sketch sketch;
  sketch.line({0.0, 0.0}, {width, 0.0}, paint);
  sketch.add(Polygon{{{width + 1.0, 0.0}, {width - 9.0, -5.0}, {width - 9.0, 5.0}}, {.fill = ColourRole::ink}});
  label_axis(sketch, {width / 2.0, -9.0}, above, Anchor::middle, true);
  label_axis(sketch, {width / 2.0, 19.0}, below, Anchor::middle);
  return sketch;
}

Sketch sketch_step(const program::Mesh& mesh, const plan::Plan& plan, const program::Step& step,
                   const std::string& cost) {
  const auto tensor = [&](int id) {
    return headed(sketch_devices(mesh, plan.tensor(id), panel_layer_slots),
                  program::tensor_text(mesh, plan.tensor(id)));
  };
  std::vector<Sketch> parts;
  for (const int id : step.in)
    if (id >= 0) parts.push_back(tensor(id));
  const std::string axes = step.axes ? " over " + program::axes_text(mesh, step.axes) : "";
  parts.push_back(sketch_arrow(fmt::format("{}{}", program::name(step), axes), cost));
  parts.push_back(tensor(step.out[0]));
  double tallest = 0.0;
  for (const Sketch& part : parts) tallest = std::max(tallest, part.bounds().height());
  Sketch row;
  double x = 0.0;
  for (const Sketch& part : parts) {
    row.append(part, x - part.bounds().left, (tallest - part.bounds().height()) / 2.0 - part.bounds().top);
    x += part.bounds().width() + 28.0;
  }
  return row;
}

}  // namespace

std::vector<std::int64_t> shard_index(const program::Mesh& mesh, const program::Tensor& tensor,
                                      const std::vector<std::int64_t>& coordinates) {
  std::vector<std::int64_t> index;
  for (std::size_t d = 0; d < tensor.dims.size(); ++d) {
    std::int64_t at = 0;
    for (int axis : tensor.sharding.dims[d].axes())
      at = at * mesh.size(axis) + coordinates[static_cast<std::size_t>(axis)];
    index.push_back(at);
  }
  return index;
}

Scene draw_sharding(const program::Mesh& mesh, const program::Tensor& tensor) {
  const Sketch devices = headed(sketch_devices(mesh, tensor, layer_slots), "devices"),
               array = headed(sketch_array(mesh, tensor), "array");
  Sketch body;
  double x = 0.0;
  for (const Sketch* part : {&devices, &array}) {
    body.append(*part, x - part->bounds().left, -part->bounds().top);
    x += part->bounds().width() + 70.0;
  }
  const std::string title = fmt::format("{} on {}", program::tensor_text(mesh, tensor), program::mesh_text(mesh));
  Page page(std::max(520.0, body.bounds().width()));
  page.text(title, picture_title_size, ColourRole::ink, true);
  page.text(holding_text(mesh, tensor), 13.0);
  page.space(18.0);
  page.add(body);
  page.space(20.0);
  page.text(key_text(tensor.sharding.unreduced != 0), picture_text_size);
  return page.scene(title, holding_text(mesh, tensor), page.next());
}

Scene draw_plan(const program::Mesh& mesh, const std::string& title, const std::string& subtitle,
                const plan::Plan& plan, const std::vector<std::string>& costs) {
  std::vector<Sketch> panels;
  double width = 560.0;
  bool partial = false;
  std::string description = subtitle;
  std::vector<std::string> texts;
  for (std::size_t i = 0; i < plan.steps.size(); ++i) {
    const program::Step& step = plan.steps[i];
    panels.push_back(sketch_step(mesh, plan, step, costs[i]));
    width = std::max(width, panels.back().bounds().width());
    partial = partial || plan.tensor(step.in[0]).sharding.unreduced || plan.tensor(step.out[0]).sharding.unreduced;
    texts.push_back(program::step_text(mesh, plan.tensors, step));
    description += fmt::format(" {}, {}.", texts.back(), costs[i]);
  }
  Page page(width);
  page.text(title, picture_title_size, ColourRole::ink, true);
  page.text(subtitle, 13.0);
  for (std::size_t i = 0; i < panels.size(); ++i) {
    page.space(14.0);
    page.rule();
    page.space(12.0);
    page.text(fmt::format("{}.  {}", i + 1, texts[i]), 13.0, ColourRole::ink, true);
    page.space(8.0);
    page.add(panels[i]);
  }
  page.space(18.0);
  page.text(key_text(partial), picture_text_size);
  return page.scene(title, description, page.next());
}

}  // namespace assay::draw

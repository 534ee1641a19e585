#include "assay/ask/draw/heat_map.h"

#include <algorithm>
#include <limits>

#include "assay/ask/draw/lettering.h"
#include "assay/ask/draw/page.h"

namespace assay::draw {
namespace {

constexpr double cell_height = 34.0, least_column_width = 56.0, widest_label = 220.0, cell_gap = 2.0;

/// The least and the largest value; equal where there is one.
std::pair<double, double> range_of(const HeatMapInput& input) {
  double low = std::numeric_limits<double>::infinity(), high = -low;
  for (const auto& row : input.cells)
    for (const auto& cell : row)
      if (cell) low = std::min(low, cell->value), high = std::max(high, cell->value);
  return {low, high};
}

double widest(const std::vector<std::string>& texts) {
  double out = 0.0;
  for (const std::string& text : texts) out = std::max(out, text_width(text, picture_text_size));
  return out;
}

double column_width(const HeatMapInput& input) {
  double width = std::max(least_column_width, std::min(widest(input.columns), widest_label));
  for (const auto& row : input.cells)
    for (const auto& cell : row)
      if (cell) width = std::max(width, text_width(cell->text, picture_text_size));
  return width + 16.0;
}

void add_cell(Scene& scene, PlotPoint at, double width, const HeatMapCell& cell, std::pair<double, double> range) {
  constexpr double faintest = 0.08, deepest = 0.55;  // ink stays readable on the deepest
  const double share = range.second > range.first ? (cell.value - range.first) / (range.second - range.first) : 0.5;
  Rectangle box{at.x, at.y, width - cell_gap, cell_height - cell_gap, 3.0, {}};
  box.paint.fill = ColourRole::series_1;
  box.paint.fill_opacity = faintest + share * (deepest - faintest);
  scene.add(std::move(box), cell.tooltip);
  scene.add(Label{{at.x + (width - cell_gap) / 2.0, at.y + cell_height / 2.0 + 3.0},
                  cell.text,
                  picture_text_size,
                  Anchor::middle},
            cell.tooltip);
}

}  // namespace

Scene draw_heat_map(const HeatMapInput& input) {
  const double names = std::min(std::max(widest(input.rows), text_width(input.down, picture_text_size)), widest_label);
  const double width = column_width(input), left = picture_margin + names + 12.0, top = picture_margin + 84.0;
  Scene scene = titled_scene(std::max(left + width * static_cast<double>(input.columns.size()) + picture_margin,
                                      picture_margin * 2.0 + text_width(input.title, picture_title_size, true)),
                             top + cell_height * static_cast<double>(input.rows.size()) + picture_margin, input.title,
                             input.subtitle);
  const auto name = [&](PlotPoint at, const std::string& text, Anchor anchor, double room, ColourRole colour) {
    scene.add(Label{at, shortened(text, picture_text_size, room), picture_text_size, anchor, colour}, text);
  };
  name({left, top - 28.0}, input.across, Anchor::start, widest_label, ColourRole::muted);
  name({left - 12.0, top - 8.0}, input.down, Anchor::end, names, ColourRole::muted);
  for (std::size_t column = 0; column < input.columns.size(); ++column)
    name({left + width * (static_cast<double>(column) + 0.5) - cell_gap / 2.0, top - 8.0}, input.columns[column],
         Anchor::middle, width - 6.0, ColourRole::ink);
  const auto range = range_of(input);
  for (std::size_t row = 0; row < input.rows.size(); ++row) {
    const double y = top + cell_height * static_cast<double>(row);
    name({left - 12.0, y + cell_height / 2.0 + 3.0}, input.rows[row], Anchor::end, names, ColourRole::ink);
    for (std::size_t column = 0; column < input.cells[row].size(); ++column)
      if (const auto& cell = input.cells[row][column])
        add_cell(scene, {left + width * static_cast<double>(column), y}, width, *cell, range);
  }
  return scene;
}

}  // namespace assay::draw

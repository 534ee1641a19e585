// A table whose cells are coloured by their values.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "assay/ask/draw/scene.h"

namespace assay::draw {

struct HeatMapCell {
  double value = 0.0;
  std::string text = {};     ///< in the cell
  std::string tooltip = {};  ///< what it belongs to
};

struct HeatMapInput {
  std::string title, subtitle;
  std::string across, down;  ///< what columns and rows are
  std::vector<std::string> columns, rows;
  std::vector<std::vector<std::optional<HeatMapCell>>> cells;  ///< by row; what is missing stays empty
};

/// The larger a value, the deeper its colour; the text of a cell says it without colour.
Scene draw_heat_map(const HeatMapInput& input);

}  // namespace assay::draw

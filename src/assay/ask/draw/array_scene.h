// What the cells of a matrix unit hold.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "assay/ask/draw/scene.h"

namespace assay::draw {

/// One cycle, row by row.
struct ArrayState {
  std::size_t rows = 1, columns = 1;
  std::vector<double> weights = {}, activations = {}, sums = {};
  std::vector<bool> works = {};  ///< cells that multiply in this cycle
};

/// A cell shows its weight, the activation that it passes to the right and the sum that it passes down; those that
/// multiply are filled.
Scene draw_array(const std::string& title, const std::string& subtitle, const ArrayState& state);

}  // namespace assay::draw

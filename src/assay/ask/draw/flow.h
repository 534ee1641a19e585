// A graph of operations from the top down: boxes with a few lines of text, and what flows between them.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "assay/ask/draw/scene.h"

namespace assay::draw {

struct FlowLine {
  std::string text = {};
  ColourRole colour = ColourRole::ink;
};

struct FlowNode {
  std::string name = {};  ///< above the lines, in bold
  std::vector<FlowLine> lines = {};
  std::vector<std::size_t> inputs = {};  ///< nodes before it whose results it reads
  ColourRole colour = ColourRole::series_1;
};

struct Flow {
  std::string title = {}, subtitle = {};
  std::vector<FlowNode> nodes = {};
};

/// A node is below all that it reads. What passes other nodes by, such as a residual, goes round them on the left.
Scene draw_flow(const Flow& flow);

}  // namespace assay::draw

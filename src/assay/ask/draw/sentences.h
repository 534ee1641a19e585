// An answer that has nothing to draw, as a picture.
#pragma once
#include <string>
#include <vector>

#include "assay/ask/draw/scene.h"

namespace assay::draw {

/// A heading and lines below it, each wrapped to the width of a chart.
Scene sentences(const std::string& heading, const std::vector<std::string>& lines);

}  // namespace assay::draw

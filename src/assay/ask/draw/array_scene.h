// What the cells of a matrix unit hold.
#pragma once
#include <string>

#include "assay/ask/draw/scene.h"
#include "assay/predict/roofline/systolic.h"

namespace assay::draw {

/// A cell shows its weight, the activation that it passes to the right and the sum that it passes down; those that
/// multiply are filled.
Scene draw_array(const std::string& title, const std::string& subtitle, const roofline::SystolicFrame& state);

}  // namespace assay::draw

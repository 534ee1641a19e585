// What a chip is made of: its cores, one of them opened, and its memories.
#pragma once

#include <vector>

#include "assay/ask/draw/scene.h"
#include "assay/hardware/chip.h"

namespace assay::draw {

/// Chips side by side, part by part: all cores, then the matrix units, vector lanes and memories of one, drawn to one
/// scale, then what the cores share.
Scene draw_chips(const std::vector<hardware::Chip>& chips);

}  // namespace assay::draw

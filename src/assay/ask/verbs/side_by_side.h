// Chips side by side: parts that do the same, whatever their makers call them.
#pragma once
#include <vector>

#include "assay/ask/draw/scene.h"
#include "assay/ask/report/document.h"
#include "assay/hardware/chip.h"

namespace assay::verbs {

/// One row a part; a column for each chip, under its id.
report::Items side_by_side(const std::vector<hardware::Chip>& chips);

/// How fast bytes come from each memory and over each network: a row a level, a column a chip.
draw::Scene bandwidth_ladder(const std::vector<hardware::Chip>& chips);

}  // namespace assay::verbs

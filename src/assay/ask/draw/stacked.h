// Two drawings as one, the second below the first.
#pragma once
#include "assay/ask/draw/scene.h"

namespace assay::draw {

/// As wide as the wider drawing; combines both titles and descriptions.
Scene stacked(Scene upper, const Scene& lower);

}  // namespace assay::draw

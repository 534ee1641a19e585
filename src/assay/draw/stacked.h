// Two drawings as one, the second below the first.
#pragma once
#include "assay/draw/scene.h"

namespace assay::draw {

/// As wide as the wider one; title and description are those of both.
Scene stacked(Scene upper, const Scene& lower);

}  // namespace assay::draw

#pragma once

#include "assay/ask/draw/sketch.h"
#include "assay/hardware/cluster.h"

namespace assay::draw {

/// The tree of a switched cluster: one unit of every level drawn in full inside the unit above it, its siblings as a
/// stack of cards with their number, and next to each level what it joins, how fast and with which switches.
/// The cluster has at least one level.
Sketch sketch_switched(const hardware::Cluster& cluster);

}  // namespace assay::draw

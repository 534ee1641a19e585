#pragma once

#include "assay/ask/draw/scene.h"
#include "assay/hardware/cluster.h"

namespace assay::draw {

/// How the chips of a cluster are connected: a torus chip by chip or, if it is large, cube by cube, slices on their
/// data-centre network, or the tree of switches. All bandwidths are one way. However large the cluster, the scene has
/// a few hundred shapes: repeated parts are drawn once and counted.
Scene draw_cluster(const hardware::Cluster& cluster);

}  // namespace assay::draw

// How long real collectives take: latency, bandwidth and pipelining, in a node and across nodes.
#pragma once
#include "assay/hardware/calibration.h"
#include "assay/network/collectives.h"

namespace assay::estimate {

/// The measured curve of a kind of collective, or of the kind that it behaves like.
template <class Calibration>
auto& curve_of(Calibration& fit, program::Collective kind) {
  return fit.*hardware::collective_curves[static_cast<std::size_t>(program::facts(kind).measured_as)];
}

/// Which algorithm a collective uses; `automatic` takes the fastest, as libraries do.
enum class CollectiveAlgorithm { automatic, ring };

/// The estimate for an array of `bytes` (as collective_cost counts them) over the links of a group. Inside a node:
/// latency + member (n - 1) + x / B + 2 sqrt(chunk x / B), x = the bytes a device receives; the square root is the
/// pipelining cost at the best chunk size. Switches may reduce instead. Across nodes the interfaces of all chips of a
/// node work for the group: rings gather and scatter, and reduce from three nodes on; two nodes exchange their partial
/// sums.
Seconds collective_estimate(const hardware::CollectiveCalibration& fit, program::Collective kind, Bytes bytes,
                            const network::CollectiveGroup& group,
                            hardware::Fabric fabric = hardware::Fabric::infiniband,
                            CollectiveAlgorithm algorithm = CollectiveAlgorithm::automatic);

/// The estimate on a chip without a calibration: the share of the network's bandwidth that the chip file says good
/// collectives reach, the hops, and the fixed time of a collective.
Seconds uncalibrated_collective_estimate(const hardware::Chip& chip, const network::CollectiveCost<Plain>& cost,
                                         double devices);

}  // namespace assay::estimate

#include "assay/estimate/collective_models.h"

#include <algorithm>
#include <cmath>

namespace assay::estimate {
namespace {

/// Chunks are pipelined; this part of their latency remains at the best chunk size.
Seconds fill(Seconds stream, Seconds chunk) { return 2.0 * Seconds(std::sqrt(stream.value() * chunk.value())); }
Seconds pipelined(Seconds stream, Seconds chunk) { return stream + fill(stream, chunk); }

/// Bytes over bandwidth between chips of one node.
Seconds inside(const hardware::CollectiveCalibration& fit, program::Collective kind, Bytes bytes,
               const network::CollectiveGroup& group, const network::CollectiveGroup::TreeLevel& node,
               CollectiveAlgorithm algorithm) {
  const hardware::CollectiveCurve& curve = curve_of(fit, kind);
  const double n = node.groups, lanes = std::max(1.0, network::lanes_used(kind, group, node));
  double share = program::received_of_array(kind, n);
  // The array covers all devices, and data for another node goes first to the chip at the same position there.
  if (program::is_exchange(kind))
    share = (n - 1.0) / (n * group.devices) * group.imbalance * group.routing.sent_share(group.devices);
  const BytesPerSecond ring = curve.share * lanes * node.chip_bandwidth / (1.0 + curve.pair / n);
  const Seconds by_ring = share * bytes / ring;
  if (kind != program::Collective::all_reduce || !node.reduces || fit.in_network == 0.0 ||
      algorithm == CollectiveAlgorithm::ring)
    return by_ring;
  const BytesPerSecond added = fit.in_network * lanes * node.chip_bandwidth;
  return std::min(by_ring, bytes / added);
}

}  // namespace

Seconds collective_estimate(const hardware::CollectiveCalibration& fit, program::Collective kind, Bytes bytes,
                            const network::CollectiveGroup& group, hardware::Fabric fabric,
                            CollectiveAlgorithm algorithm) {
  const hardware::AcrossCurve across = fit.across(fabric);
  const hardware::CollectiveCurve& curve = curve_of(fit, kind);
  if (group.devices <= 1.0) return Seconds(0);
  if (!group.axes.empty()) {
    const network::CollectiveCost<Plain> cost = network::collective_cost(Plain{}, kind, bytes, group);
    return curve.latency + cost.latency + pipelined(cost.bandwidth / curve.share, curve.chunk);
  }
  Seconds latency = curve.latency, stream(0);
  double members = 1.0, nodes = 1.0;
  BytesPerSecond out(0);  // bandwidth of the narrowest level above the node, for one node's part of the group
  double lanes = 1.0;
  for (const network::CollectiveGroup::TreeLevel& level : group.levels) {
    if (level.groups <= 1.0) continue;
    if (level.level == 0) {
      members = level.groups;
      stream = inside(fit, kind, bytes, group, level, algorithm);
      continue;
    }
    nodes *= level.groups;
    if (out == BytesPerSecond(0)) lanes = std::max(1.0, network::lanes_used(kind, group, level));
    const BytesPerSecond wide = lanes * level.chip_bandwidth;
    out = out == BytesPerSecond(0) ? wide : std::min(out, wide);
  }
  latency += (members - 1.0) * curve.member;
  latency += fill(stream, curve.chunk);
  if (nodes <= 1.0) return latency + stream;
  const BytesPerSecond rate = across.share * out;
  double share = program::received_of_array(kind, group.devices);
  if (program::is_exchange(kind))  // the part of a node's bytes that leaves it
    share =
        members / group.devices * (1.0 - members / group.devices) * group.imbalance * group.routing.sent_share(nodes);
  Seconds between = share * bytes / rate;
  // Two nodes exchange their partial sums. More nodes forward each byte twice, in trees and rings.
  if (kind == program::Collective::all_reduce && algorithm == CollectiveAlgorithm::automatic && nodes == 2.0) {
    const Seconds added = fit.tree && members > 1.0 ? bytes / *fit.tree : Seconds(0);
    between = std::min(between, std::max(bytes / rate, added));
  }
  latency += std::log2(nodes) * across.latency + fill(between, across.chunk / rate);
  return latency + std::max(stream, between);
}

Seconds uncalibrated_collective_estimate(const hardware::Chip& chip, const network::CollectiveCost<Plain>& cost,
                                         double devices) {
  return cost.bandwidth / hardware::network_efficiency(chip) + cost.latency +
         (devices > 1.0 ? hardware::collective_latency(chip) : Seconds(0));
}

}  // namespace assay::estimate

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

/// The estimate of a kind of collective over a group: latency + per_byte x + fill sqrt(x), x = the bytes of the array
/// as collective_cost() counts them.
template <class N>
struct CollectiveForm {
  NumberOf<N, Seconds> latency{};
  NumberOf<N, SecondsPerByte> per_byte{};
  NumberOf<N, Seconds> fill{};  ///< of an array of one byte: pipelining at the best chunk size
};
inline bool operator==(const CollectiveForm<Plain>& a, const CollectiveForm<Plain>& b) {
  return a.latency == b.latency && a.per_byte == b.per_byte && a.fill == b.fill;
}

/// `count` collectives of `bytes` altogether.
template <class N>
NumberOf<N, Seconds> collective_time(const N& num, const CollectiveForm<N>& form, NumberOf<N, Bytes> bytes,
                                     double count = 1.0) {
  constexpr const char* source = "one after the other";
  const auto time = num.times("collectives", count, source, form.latency) + form.per_byte * bytes;
  if (!(form.fill.value() > 0.0)) return time;
  return time + form.fill * sqrt(num.times("collectives", count, source, bytes / num.constant(1_B)));
}

/// What the numbers of a calibration are, beside the numbers.
struct CollectiveSoftware {
  hardware::Fabric fabric = hardware::Fabric::infiniband;
  CollectiveAlgorithm algorithm = CollectiveAlgorithm::automatic;
  const SourceTable* sources = nullptr;               ///< of the calibration, for explanations
  const network::CollectiveLabels* labels = nullptr;  ///< of the cluster, the same
};

/// Measured collectives. Inside a node: latency + member (n - 1) + x / B + 2 sqrt(chunk x / B), x = the bytes a device
/// receives; the square root is the pipelining cost at the best chunk size. Switches may reduce instead. Across nodes
/// the interfaces of all chips of a node work for the group: rings gather and scatter, and reduce from three nodes on;
/// two nodes exchange their partial sums.
template <class N>
CollectiveForm<N> collective_form(const N& num, const hardware::CollectiveCalibration& fit, program::Collective kind,
                                  const network::CollectiveGroup& group, const CollectiveSoftware& software = {});
/// The same on a chip without a calibration: the share of the network's bandwidth that the chip file says good
/// collectives reach, the hops, and the fixed time of a collective.
template <class N>
CollectiveForm<N> uncalibrated_form(const N& num, const hardware::Chip& chip, program::Collective kind,
                                    const network::CollectiveGroup& group,
                                    const network::CollectiveLabels* labels = nullptr);

/// The measured estimate for an array of `bytes`.
inline Seconds collective_estimate(const hardware::CollectiveCalibration& fit, program::Collective kind, Bytes bytes,
                                   const network::CollectiveGroup& group,
                                   hardware::Fabric fabric = hardware::Fabric::infiniband,
                                   CollectiveAlgorithm algorithm = CollectiveAlgorithm::automatic) {
  return collective_time(Plain{}, collective_form(Plain{}, fit, kind, group, {fabric, algorithm}), bytes);
}

}  // namespace assay::estimate

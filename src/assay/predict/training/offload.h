// Offloading to host memory: what is moved there, and what the host link costs.
#pragma once
#include <cstdint>
#include <string_view>

#include "assay/hardware/cluster.h"

namespace assay::training {

enum class Offload : std::uint8_t {
  none,
  optimizer,    ///< master copy and moments, streamed through the chip in every update
  activations,  ///< sent out in the forward pass, fetched in the backward pass
  both
};
inline constexpr std::string_view offload_names[] = {"none", "optimizer", "activations", "both"};
constexpr std::string_view name(Offload offload) { return offload_names[static_cast<std::size_t>(offload)]; }
constexpr bool moves_states(Offload offload) { return offload == Offload::optimizer || offload == Offload::both; }
constexpr bool moves_activations(Offload offload) {
  return offload == Offload::activations || offload == Offload::both;
}

/// A chip's link to host memory: a lane out, a lane in, and the memory that both share.
template <class N>
struct HostLinkOf {
  using Size = NumberOf<N, Bytes>;
  NumberOf<N, BytesPerSecond> rate{};    ///< one way
  NumberOf<N, double> share{};           ///< fraction of the rates that copies reach
  NumberOf<N, BytesPerSecond> memory{};  ///< of the host's memory, per chip, reads and writes together
  Bytes capacity;                        ///< of the host's memory, per chip

  /// Both copies, concurrently, at the full rates.
  NumberOf<N, Seconds> copy(const Size& out, const Size& in) const {
    return max(max(out / rate, in / rate), (out + in) / memory);
  }
};
using HostLink = HostLinkOf<Plain>;

/// A chip's share of its host's link and memory; zero where the chip's file does not say.
template <class N>
HostLinkOf<N> host_link(const N& num, const hardware::Cluster& cluster);
inline HostLink host_link(const hardware::Cluster& cluster) { return host_link(Plain{}, cluster); }

/// What one layer copies and computes.
template <class N>
struct HostLayerOf {
  NumberOf<N, Bytes> activations{};            ///< per microbatch: out in the forward pass, in in the backward pass
  NumberOf<N, Bytes> states{};                 ///< of the optimizer: in and out once a step
  NumberOf<N, Seconds> forward{}, backward{};  ///< on the chip, including exposed communication
  NumberOf<N, Seconds> update{};               ///< on the chip
};
using HostLayer = HostLayerOf<Plain>;

/// Time of the host link for one stage.
template <class N>
struct HostTimeOf {
  using Time = NumberOf<N, Seconds>;
  Time forward{}, backward{};            ///< per microbatch, beyond the chip's time
  Time first{};                          ///< of the forward passes that also update all weights: all of it
  Time update{};                         ///< the exposed part of it, beyond pass and update
  Time lane_forward{}, lane_backward{};  ///< per microbatch: the busiest lane
  Time ideal{};                          ///< at the full rates, per microbatch
  Time in_turn{};                        ///< the same, one copy after the other
  Time ideal_update{};                   ///< the same of the states

  /// A microbatch passes `layers` of the `held` layers of the stage.
  void add(const N& num, const HostLinkOf<N>& link, const HostLayerOf<N>& layer, double layers, double held,
           bool overlap);
  /// What nothing hides in a step.
  Time of_step(const N& num, double microbatches) const {
    return num.times("microbatches", microbatches, "of a step", forward + backward) + update;
  }
};
using HostTime = HostTimeOf<Plain>;

/// Layers whose activations are on the chip at once: one in use, one in transit.
inline constexpr double layers_on_chip = 2.0;
/// Layers whose states are on the chip at once: one arriving, one in use, one leaving.
inline constexpr double layers_passing = 3.0;

}  // namespace assay::training

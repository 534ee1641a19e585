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
struct HostLink {
  BytesPerSecond rate;    ///< one way
  double share = 1;       ///< fraction of the rates that copies reach
  BytesPerSecond memory;  ///< of the host's memory, per chip, reads and writes together
  Bytes capacity;         ///< of the host's memory, per chip

  /// Both copies, concurrently, at the full rates.
  Seconds copy(Bytes out, Bytes in) const;
};

/// A chip's share of its host's link and memory; zero where the chip's file does not say.
HostLink host_link(const hardware::Cluster& cluster);

/// What one layer copies and computes.
struct HostLayer {
  Bytes activations;          ///< per microbatch: out in the forward pass, in in the backward pass
  Bytes states;               ///< of the optimizer: in and out once a step
  Seconds forward, backward;  ///< on the chip, including exposed communication
  Seconds update;             ///< on the chip
};

/// Time of the host link for one stage.
struct HostTime {
  Seconds forward, backward;            ///< per microbatch, beyond the chip's time
  Seconds first;                        ///< of the forward passes that also update all weights: all of it
  Seconds update;                       ///< the exposed part of it, beyond pass and update
  Seconds lane_forward, lane_backward;  ///< per microbatch: the busiest lane
  Seconds ideal;                        ///< at the full rates, per microbatch
  Seconds in_turn;                      ///< the same, one copy after the other
  Seconds ideal_update;                 ///< the same of the states

  /// A microbatch passes `layers` of the `held` layers of the stage.
  void add(const HostLink& link, const HostLayer& layer, double layers, double held, bool overlap);
};

/// Layers whose activations are on the chip at once: one in use, one in transit.
inline constexpr double layers_on_chip = 2.0;
/// Layers whose states are on the chip at once: one arriving, one in use, one leaving.
inline constexpr double layers_passing = 3.0;

}  // namespace assay::training

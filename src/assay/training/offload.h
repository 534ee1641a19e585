// Offloading to the memory of the host: what lies there instead of on the chip, and what the link between them costs.
#pragma once
#include <cstdint>
#include <string_view>

namespace assay::training {

enum class Offload : std::uint8_t {
  none,
  optimizer,    ///< master copy and moments; they pass through the chip in every update
  activations,  ///< what the backward pass needs; out in the forward, back in the backward pass
  both
};
inline constexpr std::string_view offload_names[] = {"none", "optimizer", "activations", "both"};
constexpr std::string_view name(Offload offload) { return offload_names[static_cast<std::size_t>(offload)]; }
constexpr bool moves_states(Offload offload) { return offload == Offload::optimizer || offload == Offload::both; }
constexpr bool moves_activations(Offload offload) {
  return offload == Offload::activations || offload == Offload::both;
}

/// One chip's way to the memory of its host: a lane out, a lane in, and the memory that both share.
struct HostLink {
  double rate = 0;      ///< bytes a second, one way
  double share = 1;     ///< of the rates that copies reach
  double memory = 0;    ///< bytes a second of the chip's part of the host's memory, reading and writing together
  double capacity = 0;  ///< bytes of the chip's part of the host's memory

  /// Seconds in which both copies are done, side by side, at the full rates.
  double copy(double out, double in) const;
};

/// What one layer copies and what it does meanwhile.
struct HostLayer {
  double activations = 0;            ///< bytes of a microbatch: out in the forward, back in the backward pass
  double states = 0;                 ///< bytes of the optimizer: in and out once a step
  double forward = 0, backward = 0;  ///< seconds of the chip, all that is waited for included
  double update = 0;                 ///< seconds of the chip
};

/// Seconds of the host link for one stage.
struct HostTime {
  double forward = 0, backward = 0;            ///< of a microbatch, beyond what the chip takes
  double first = 0;                            ///< of forward passes that update all weights on their way: all of it
  double update = 0;                           ///< the part of that which neither the pass nor the update takes anyway
  double lane_forward = 0, lane_backward = 0;  ///< of a microbatch: the busiest lane alone
  double ideal = 0;                            ///< at the full rates, of a microbatch
  double in_turn = 0;                          ///< the same, one copy after the other
  double ideal_update = 0;                     ///< the same of the states

  /// A microbatch passes `layers` of those that the stage holds.
  void add(const HostLink& link, const HostLayer& layer, double layers, double held, bool overlap);
};

/// Layers whose activations are on the chip at once: the one at work and the one on its way.
inline constexpr double layers_on_chip = 2.0;
/// Layers whose states are on the chip at once: one comes, one is at work, one leaves.
inline constexpr double layers_passing = 3.0;

}  // namespace assay::training

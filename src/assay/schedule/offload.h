// Offloading to the memory of the host: what lies there instead of on the chip, and what the link between them costs.
#pragma once
#include <cstdint>
#include <string_view>

namespace assay {

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

/// The link of one chip to its host, both directions at once.
struct HostLink {
  double rate = 0;   ///< bytes a second, one way
  double share = 1;  ///< of it that copies reach
};

/// Seconds of the host link for one stage.
struct HostTime {
  double forward = 0, backward = 0;  ///< of a microbatch, as far as computing does not hide it
  double update = 0;                 ///< of the optimizer states, as far as the update itself does not
  double ideal = 0;                  ///< one direction at the full rate, of a microbatch
  double ideal_update = 0;           ///< the same of the states
};

struct HostLoad {
  double activations = 0;            ///< bytes of a microbatch that leave and come back
  double states = 0;                 ///< bytes of the optimizer that come and leave once a step
  double forward = 0, backward = 0;  ///< seconds of a microbatch that can hide copies
  double update = 0;                 ///< seconds of the update on the chip
  bool overlap = true;               ///< copies run while others compute
};
HostTime host_time(const HostLink& link, const HostLoad& load);

/// Layers whose activations are on the chip at once: the one at work and the one on its way.
inline constexpr double layers_on_chip = 2.0;

}  // namespace assay

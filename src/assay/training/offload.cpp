#include "assay/training/offload.h"

#include <algorithm>

namespace assay::training {

HostLink host_link(const hardware::Cluster& cluster) {
  const hardware::Host& host = cluster.chip.host;
  const auto chips = static_cast<double>(hardware::chips_per_host(cluster));
  return {host.pcie.value, hardware::network_efficiency(cluster.chip),
          host.memory_bandwidth ? host.memory_bandwidth->value / chips : BytesPerSecond(),
          host.memory ? host.memory->value / chips : Bytes()};
}

Seconds HostLink::copy(Bytes out, Bytes in) const { return std::max({out / rate, in / rate, (out + in) / memory}); }

// Two layers are on the chip: while one computes, the results of the previous layer leave, or those of the next one to
// compute arrive. In a run of equal layers, each takes as long as its busiest lane. The states of a layer change just
// before its first forward pass of the next step: clipping has seen all gradients by then, and the transfer hides
// behind a whole pass instead of the update alone.
void HostTime::add(const HostLink& link, const HostLayer& layer, double layers, double held, bool overlap) {
  const auto lanes = [&](Seconds chip, Bytes out, Bytes in) {
    const Seconds copy = link.copy(out, in) / link.share;
    return overlap ? std::max(chip, copy) : chip + copy;
  };
  forward += layers * (lanes(layer.forward, layer.activations, Bytes()) - layer.forward);
  backward += layers * (lanes(layer.backward, Bytes(), layer.activations) - layer.backward);
  first += held * lanes(layer.forward + layer.update, layer.activations + layer.states, layer.states);
  const Seconds away = link.copy(layer.activations, Bytes()), back = link.copy(Bytes(), layer.activations);
  lane_forward += layers * away / link.share;
  lane_backward += layers * back / link.share;
  ideal += layers * link.copy(layer.activations, layer.activations);
  in_turn += layers * (away + back);
  ideal_update += held * link.copy(layer.states, layer.states);
}

}  // namespace assay::training

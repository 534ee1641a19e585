#include "assay/predict/training/offload.h"

namespace assay::training {

template <class N>
HostLinkOf<N> host_link(const N& num, const hardware::Cluster& cluster) {
  const hardware::Host& host = cluster.chip.host;
  const auto chips = static_cast<double>(hardware::chips_per_host(cluster));
  const auto& share = cluster.chip.efficiency.network;
  HostLinkOf<N> link{num.given("host link", host.pcie),
                     share ? num.given("share of the bandwidth", *share)
                           : num.given("share of the bandwidth", hardware::network_efficiency(cluster.chip),
                                       "the chip's file gives none"),
                     {},
                     host.memory ? host.memory->value / chips : Bytes()};
  if (host.memory_bandwidth)
    link.memory = num.given("host memory bandwidth", *host.memory_bandwidth) /
                  num.given("chips of a host", chips, "that share its memory");
  return link;
}

// Two layers are on the chip: while one computes, the results of the previous layer leave, or those of the next one to
// compute arrive. In a run of equal layers, each takes as long as its busiest lane. The states of a layer change just
// before its first forward pass of the next step: clipping has seen all gradients by then, and the transfer hides
// behind a whole pass instead of the update alone.
template <class N>
void HostTimeOf<N>::add(const N& num, const HostLinkOf<N>& link, const HostLayerOf<N>& layer, double layers,
                        double held, bool overlap) {
  using Size = NumberOf<N, Bytes>;
  const auto lanes = [&](const Time& chip, const Size& out, const Size& in) {
    const Time copy = num.named("copy to and from the host", link.copy(out, in) / link.share);
    return overlap ? max(chip, copy) : chip + copy;
  };
  const auto passed = [&](Time& sum, const Time& more) {
    sum = sum + num.times("layers", layers, "of the kind on the stage, that a microbatch passes", more);
  };
  const auto beyond = [&](Time& sum, const Time& chip, const Size& out, const Size& in) {
    if (out.value() + in.value() > 0.0) passed(sum, lanes(chip, out, in) - chip);
  };
  const auto once = [&](Time& sum, const Time& more) {
    sum = sum + num.times("layers", held, "of the kind on the stage", more);
  };
  beyond(forward, layer.forward, layer.activations, Size());
  beyond(backward, layer.backward, Size(), layer.activations);
  once(first, lanes(layer.forward + layer.update, layer.activations + layer.states, layer.states));
  const Time away = link.copy(layer.activations, Size()), back = link.copy(Size(), layer.activations);
  passed(lane_forward, away / link.share);
  passed(lane_backward, back / link.share);
  passed(ideal, link.copy(layer.activations, layer.activations));
  passed(in_turn, away + back);
  once(ideal_update, link.copy(layer.states, layer.states));
}

template struct HostTimeOf<Plain>;
template struct HostTimeOf<Traced>;
template HostLinkOf<Plain> host_link(const Plain&, const hardware::Cluster&);
template HostLinkOf<Traced> host_link(const Traced&, const hardware::Cluster&);

}  // namespace assay::training

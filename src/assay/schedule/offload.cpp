#include "assay/schedule/offload.h"

#include <algorithm>

namespace assay {

HostTime host_time(const HostLink& link, const HostLoad& load) {
  HostTime time;
  if (load.activations <= 0.0 && load.states <= 0.0) return time;
  const double reached = link.rate * link.share;
  const double copy = load.activations / reached, states = load.states / reached;
  const auto beyond = [&](double seconds, double hidden) {
    return load.overlap ? std::max(0.0, seconds - hidden) : seconds;
  };
  time.forward = beyond(copy, load.forward);
  time.backward = beyond(copy, load.backward);
  // Clipping needs all gradients before the first state may change: the stream hides behind the update alone.
  time.update = beyond(states, load.update);
  time.ideal = load.activations / link.rate;
  time.ideal_update = load.states / link.rate;
  return time;
}

}  // namespace assay

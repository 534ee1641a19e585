// One pass of a microbatch through layers: the critical chain of steps, and the background traffic it does not hide.
#pragma once
#include <array>
#include <span>
#include <vector>

#include "assay/training/stage_links.h"

namespace assay::training {

/// One pass of one microbatch through some layers: seconds by kind.
struct PassTime {
  double compute = 0, ideal_compute = 0, ideal_memory = 0, recompute = 0;
  double copies = 0;                           ///< of `compute`: weights out of buffers, gradients into them
  double tensor = 0, context = 0, expert = 0;  ///< what critical collectives add: slowed kernels, and waiting
  double weight_gradients = 0;                 ///< of `compute`: may be deferred
  /// Extra time of the pass if weight gradients are deferred and hide no collectives; the parts of it in the chain and
  /// in weight gradients.
  double deferral_cost = 0, deferral_chain = 0, deferral_weight_gradients = 0;
  double exposed = 0;                         ///< what background traffic adds
  std::array<double, roles> ideal_network{};  ///< collectives of each microbatch at full bandwidth, by role
  double all_network = 0;
  double gradients = 0, new_weights = 0;   ///< once per step
  std::array<double, roles> ideal_once{};  ///< the same at full bandwidth, by role
  double all_once = 0;
  double flops = 0, recomputed_flops = 0;

  double chain() const { return compute + tensor + context + expert; }
  /// Adds `times` passes per microbatch; what is done once a step counts for all layers `held`.
  void add(const PassTime& other, double times, double held) {
    compute += times * other.compute;
    ideal_compute += times * other.ideal_compute;
    ideal_memory += times * other.ideal_memory;
    recompute += times * other.recompute;
    copies += times * other.copies;
    tensor += times * other.tensor;
    context += times * other.context;
    expert += times * other.expert;
    deferral_cost += times * other.deferral_cost;
    deferral_chain += times * other.deferral_chain;
    deferral_weight_gradients += times * other.deferral_weight_gradients;
    weight_gradients += times * other.weight_gradients;
    exposed += times * other.exposed;
    for (std::size_t r = 0; r < roles; ++r) ideal_network[r] += times * other.ideal_network[r];
    for (std::size_t r = 0; r < roles; ++r) ideal_once[r] += held * other.ideal_once[r];
    all_network += times * other.all_network;
    all_once += held * other.all_once;
    gradients += held * other.gradients;
    new_weights += held * other.new_weights;
    flops += times * other.flops;
    recomputed_flops += times * other.recomputed_flops;
  }
};

/// What decides the clock of a pass.
template <class N>
struct PassPower {
  NumberOf<N, Seconds> kernels;                  ///< at the clock of matrix units that never idle
  NumberOf<N, Seconds> tensor, context, expert;  ///< what critical collectives add to them
  NumberOf<N, Seconds> busy, slowed, launching;  ///< see PassProfile
};

/// The kernels of a pass. Power is limited on average over many steps: the chip cools while it moves bytes or waits.
template <class N>
NumberOf<N, Seconds> cooled(const N& num, const PassPower<N>& pass) {
  const auto chain = num.named("pass with its collectives", pass.kernels + pass.tensor + pass.context + pass.expert);
  const auto idle =
      num.named("share without full power",
                max(num.given("least", 0.0, "of a share"), num.given("all", 1.0, "of the pass") - pass.busy / chain));
  return max(pass.kernels - idle * pass.slowed, min(pass.kernels, pass.launching));
}

/// What critical collectives add to a pass whose matrix units never idle.
struct PassWaits {
  Seconds tensor, context, expert;
};
PassWaits pass_waits(const PassProfile& pass, const StageLinks& links, bool overlap, const TrainingSetup& setup);

/// `weights` is the traffic of weights and gradients if the profile is without it.
PassTime pass_time(const PassProfile& pass, std::span<const Traffic> weights, const StageLinks& links, bool overlap,
                   const TrainingSetup& setup);

/// What an entry of a pass's traffic takes, and what it adds to the pass.
struct TrafficTime {
  double seconds = 0;          ///< of its collectives by themselves
  double exposed = 0;          ///< that they add: slowed kernels, and waiting; 0 once a step
  double copies = 0;           ///< see PassTime
  bool is_background = false;  ///< hides behind the whole pass, not behind the compute next to it
};

/// A pass and its traffic, in the order of the profile: compute and what all entries add make up the pass.
struct PassReading {
  PassTime time;
  std::vector<TrafficTime> traffic;
};
PassReading read_pass(const PassProfile& pass, const StageLinks& links, bool overlap, const TrainingSetup& setup);

}  // namespace assay::training

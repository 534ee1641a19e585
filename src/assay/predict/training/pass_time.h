// One pass of a microbatch through layers: the critical chain of steps, and the background traffic it does not hide.
#pragma once
#include <array>
#include <span>
#include <vector>

#include "assay/predict/training/link_derivation.h"
#include "assay/predict/training/stage_links.h"

namespace assay::training {

/// One pass of one microbatch through some layers by kind.
template <class N>
struct PassParts {
  using Time = NumberOf<N, Seconds>;
  Time compute{}, recompute{};
  Time copies{};                       ///< of `compute`: weights out of buffers, gradients into them
  Time tensor{}, context{}, expert{};  ///< what critical collectives add: slowed kernels, and waiting
  Time weight_gradients{};             ///< of `compute`: may be deferred
  /// Extra time of the pass if weight gradients are deferred and hide no collectives; the parts of it in the chain and
  /// in weight gradients.
  Time deferral_cost{}, deferral_chain{}, deferral_weight_gradients{};
  Time exposed{};                   ///< what background traffic adds
  Time gradients{}, new_weights{};  ///< once per step

  Time chain() const { return compute + tensor + context + expert; }
  /// Adds `times` passes per microbatch; what is done once a step counts for all layers `held`.
  void add(const N& num, const PassParts& other, double times, double held) {
    const auto passed = [&](Time& sum, const Time& more) {
      sum = sum + num.times("layers", times, "of the kind on the stage, that a microbatch passes", more);
    };
    const auto once = [&](Time& sum, const Time& more) {
      sum = sum + num.times("layers", held, "of the kind on the stage", more);
    };
    passed(compute, other.compute);
    passed(recompute, other.recompute);
    passed(copies, other.copies);
    passed(tensor, other.tensor);
    passed(context, other.context);
    passed(expert, other.expert);
    passed(deferral_cost, other.deferral_cost);
    passed(deferral_chain, other.deferral_chain);
    passed(deferral_weight_gradients, other.deferral_weight_gradients);
    passed(weight_gradients, other.weight_gradients);
    passed(exposed, other.exposed);
    once(gradients, other.gradients);
    once(new_weights, other.new_weights);
  }
};

/// One pass at ideal rates.
template <class N>
struct IdealPass {
  using Time = NumberOf<N, Seconds>;
  Time compute{}, memory{};
  std::array<Time, roles> network{};  ///< collectives of each microbatch at full bandwidth, by role
  std::array<Time, roles> once{};     ///< the same once per step

  void add(const N& num, const IdealPass& other, double times, double held) {
    const auto passed = [&](Time& sum, const Time& more) {
      sum = sum + num.times("layers", times, "of the kind on the stage, that a microbatch passes", more);
    };
    passed(compute, other.compute);
    passed(memory, other.memory);
    for (std::size_t r = 0; r < roles; ++r) {
      passed(network[r], other.network[r]);
      once[r] = once[r] + num.times("layers", held, "of the kind on the stage", other.once[r]);
    }
  }
};

/// The same as a search has it, and at ideal rates.
struct PassTime : PassParts<Plain> {
  IdealPass<Plain> ideal;
  Seconds all_network;  ///< at full bandwidth, one collective after the other
  Seconds all_once;     ///< the same once per step
  Flops flops, recomputed_flops;

  void add(const PassTime& other, double times, double held) {
    PassParts::add(Plain{}, other, times, held);
    ideal.add(Plain{}, other.ideal, times, held);
    all_network += times * other.all_network;
    all_once += held * other.all_once;
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

/// The share of a pass for which matrix units can work before the clock has to drop: from there on, products and what
/// is bound by memory draw more than the chip may, on average. At the full clock products would draw (1 + droop)^2 of
/// it, since dynamic power goes with the square of the clock (catalogue/steps/power.toml).
template <class N>
NumberOf<N, double> full_clock_share(const N& num, const TrainingSetup& setup) {
  const auto droop = num.given("droop", setup.rates.matmul->droop, &setup.rates.sources, "matmul.droop");
  const auto memory = num.given("power of kernels bound by memory", setup.effects.memory_power);
  const auto limit = num.given("power limit", 1.0, "over itself");
  return num.named("share at the full clock",
                   (limit - memory) / (num.named("power of products", (1.0 + droop) * (1.0 + droop)) - memory));
}

/// The kernels of a pass. Power is limited on average over many steps: the chip cools while it moves bytes or waits.
template <class N>
NumberOf<N, Seconds> cooled(const N& num, const PassPower<N>& pass, const TrainingSetup& setup) {
  const auto chain = num.named("pass with its collectives", pass.kernels + pass.tensor + pass.context + pass.expert);
  const auto all = num.given("all", 1.0, "of the pass");
  const auto busy = num.named("share at full power", min(all, pass.busy / chain));
  const auto free = full_clock_share(num, setup);
  const auto cool = num.named("share of the droop that is spared", min(all, (all - busy) / (all - free)));
  return max(pass.kernels - cool * pass.slowed, min(pass.kernels, pass.launching));
}

/// `weights` is the traffic of weights and gradients if the profile is without it.
PassTime pass_time(const PassProfile& pass, std::span<const Traffic> weights, const StageLinks& links, bool overlap,
                   const TrainingSetup& setup);

/// What an entry of a pass's traffic takes, and what it adds to the pass.
struct TrafficTime {
  Seconds seconds;             ///< of its collectives by themselves
  Seconds exposed;             ///< that they add: slowed kernels, and waiting; 0 once a step
  Seconds copies;              ///< see PassParts
  bool is_background = false;  ///< hides behind the whole pass, not behind the compute next to it
};

/// A pass and its traffic, in the order of the profile: compute and what all entries add make up the pass.
struct PassReading {
  PassParts<Plain> time;
  std::vector<TrafficTime> traffic;
};
PassReading read_pass(const PassProfile& pass, const StageLinks& links, bool overlap, const TrainingSetup& setup);

/// The kernels of a pass as they are derived.
struct DerivedKernels {
  NumberOf<Traced, Seconds> all, products, attention, weight_gradients, busy, slowed, launching, idle;
  NumberOf<Traced, Flops> product_flops;
  NumberOf<Traced, Seconds> compute, memory;  ///< at ideal rates
};
/// An entry of a pass's traffic, and what its bytes and the FLOP beside it consist of, where that is known.
struct DerivedTraffic {
  const Traffic* entry = nullptr;
  NumberOf<Traced, Bytes> bytes;
  NumberOf<Traced, Flops> beside;
};
/// A pass as pass_time() prices it, derived from its kernels and links.
struct DerivedPass : PassParts<Traced> {
  IdealPass<Traced> ideal;
};
DerivedPass derive_pass_time(const Traced& num, const DerivedKernels& kernels, std::span<const DerivedTraffic> traffic,
                             const DerivedLinks& links, bool overlap, const TrainingSetup& setup);

}  // namespace assay::training

// One pass of a microbatch through layers: the critical chain of steps, and the background traffic it does not hide.
#pragma once
#include <array>
#include <span>
#include <string>
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

/// A pass as searches keep it: its estimate, and its times at ideal rates.
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

/// The share of the slowdown under sustained power that a pass of `chain` seconds avoids. Power is limited on average
/// over many steps: the chip cools while it moves bytes or waits.
template <class N>
NumberOf<N, double> slowdown_avoided(const N& num, const KernelSums<N>& kernels, const NumberOf<N, Seconds>& chain,
                                     const TrainingSetup& setup) {
  const auto all = num.given("all", 1.0, "of the pass");
  const auto busy = num.named("share at full power", min(all, kernels.busy / chain));
  const auto free = full_clock_share(num, setup);
  return num.named("share of the slowdown avoided", min(all, (all - busy) / (all - free)));
}

/// The kernels of a pass at the clock that power allows, and what they wait for the host.
inline Seconds at_clock(const Plain&, const KernelSums<Plain>& kernels, double avoided) {
  return max(kernels.estimate - avoided * kernels.slowed, kernels.launching);
}
/// The time of one kernel at that clock.
inline Seconds at_clock(const kernel::StepPrice<Plain>& price, double avoided) {
  return price.duration - avoided * price.slowed;
}

/// `weights` is the traffic of weights and gradients if the profile is without it.
PassTime pass_time(const PassProfile& pass, std::span<const Traffic> weights, const StageLinks& links, bool overlap,
                   const TrainingSetup& setup);

/// A collective of an entry of a pass's traffic: what it takes, and what it adds to the pass.
struct TrafficTime {
  Seconds each;                ///< by itself
  Seconds waited;              ///< that it adds to kernels by themselves: it slows them, and they wait for it
  Seconds exposed;             ///< that it adds to the pass, which may wait for the host meanwhile; 0 once a step
  Seconds copies;              ///< see PassParts
  bool is_background = false;  ///< hides behind the whole pass, not behind the compute next to it
};

/// A pass and its traffic, in the order of the profile: kernels at their clock, waiting for the host, and what all
/// collectives add make up the pass.
struct PassReading {
  PassParts<Plain> time;
  double avoided = 0;                ///< see slowdown_avoided()
  std::vector<TrafficTime> traffic;  ///< by entry
};
PassReading read_pass(const PassProfile& pass, std::span<const Traffic> weights, const StageLinks& links, bool overlap,
                      const TrainingSetup& setup);

/// The kernels of a pass as they are derived: their sums, and each by itself.
struct DerivedKernels : KernelSums<Traced> {
  struct Kernel {
    std::string name;
    Time duration, slowed;  ///< as in StepPrice
  };
  std::vector<Kernel> each;
};
/// The sum of the kernels, each at the clock that power allows.
NumberOf<Traced, Seconds> at_clock(const Traced& num, const DerivedKernels& kernels,
                                   const NumberOf<Traced, double>& avoided);

/// An entry of a pass's traffic, and what the bytes of one collective and the FLOP that hide all of them consist of.
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

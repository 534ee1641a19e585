// One pass of a microbatch through layers: the chain of steps that wait for each other, and what of the traffic in the
// background it does not hide.
#pragma once
#include <array>
#include <span>

#include "assay/training/stage_links.h"

namespace assay::training {

/// One pass of one microbatch through some layers: seconds by kind of waiting, in the three readings.
struct PassTime {
  double compute = 0, ideal_compute = 0, ideal_memory = 0, recompute = 0;
  double tensor = 0, context = 0, expert = 0;  ///< critical collectives
  double weight_gradients = 0;                 ///< of `compute`, for which nobody waits
  /// More that the pass takes where gradients of weights are put off, so that no collective runs beside them; of that,
  /// in the chain, and in gradients of weights.
  double beside = 0, beside_chain = 0, beside_gradients = 0;
  double exposed = 0;                         ///< what of them is not hidden
  std::array<double, roles> ideal_network{};  ///< collectives of each microbatch at full bandwidth, by role
  double all_network = 0;
  double gradients = 0, new_weights = 0;   ///< once per step
  std::array<double, roles> ideal_once{};  ///< the same at full bandwidth, by role
  double all_once = 0;
  double flops = 0, recomputed_flops = 0;

  double chain() const { return compute + tensor + context + expert; }
  /// `times` a microbatch; what is there once a step is of all that is `held`.
  void add(const PassTime& other, double times, double held) {
    compute += times * other.compute, ideal_compute += times * other.ideal_compute;
    ideal_memory += times * other.ideal_memory, recompute += times * other.recompute;
    tensor += times * other.tensor, context += times * other.context, expert += times * other.expert;
    beside += times * other.beside, beside_chain += times * other.beside_chain;
    beside_gradients += times * other.beside_gradients, weight_gradients += times * other.weight_gradients;
    exposed += times * other.exposed;
    for (std::size_t r = 0; r < roles; ++r) ideal_network[r] += times * other.ideal_network[r];
    for (std::size_t r = 0; r < roles; ++r) ideal_once[r] += held * other.ideal_once[r];
    all_network += times * other.all_network, all_once += held * other.all_once;
    gradients += held * other.gradients, new_weights += held * other.new_weights;
    flops += times * other.flops, recomputed_flops += times * other.recomputed_flops;
  }
};

/// Seconds of background traffic that are waited for. It hides behind the chain of steps that wait for each other, less
/// `shared` seconds that these take on the same links. What shares the chip with others slows them down, but never by
/// more than it takes alone: then it waits.
double exposed_seconds(double background, double shared, double chain, const estimate::StepEffects& effects);

/// `weights` is the traffic of weights and gradients where the pass is without it.
PassTime pass_time(const PassProfile& pass, std::span<const Traffic> weights, const StageLinks& links, bool overlap,
                   const estimate::StepEffects& effects);

}  // namespace assay::training

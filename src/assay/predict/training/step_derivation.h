// Where a training step comes from: passes and the kernels of the program in their order, collectives on their links,
// the pipeline, the optimizer, and the memory of the fullest stage. The formulas are those that price it.
#pragma once
#include "assay/predict/training/step.h"

namespace assay::training {

/// A step of which the search has the cost.
struct PricedStrategy {
  const TrainingQuestion& question;
  std::int64_t sequence = 1;
  const hardware::Cluster& cluster;
  const Strategy& strategy;
  const TrainingCost& cost;
};

/// Time and memory of a step, and what they consist of.
struct DerivedStep {
  NumberOf<Traced, Seconds> time;
  NumberOf<Traced, Bytes> memory;
  /// On ideal hardware: arithmetic as the mean over stages, memory and the busiest kind of axis of the slowest stage.
  NumberOf<Traced, Seconds> ideal_compute, ideal_memory, ideal_network;
};
Result<DerivedStep> derive_step(const Traced& num, const PricedStrategy& priced);

}  // namespace assay::training

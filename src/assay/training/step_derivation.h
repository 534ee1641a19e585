// Where the compute time of a training step comes from: passes, and the kernels of the program in their order.
#pragma once
#include <span>

#include "assay/training/step.h"

namespace assay::training {

using TracedSeconds = NumberOf<Traced, Seconds>;

/// One pass of a microbatch through one layer, the embedding or the head, as pass_time() prices it.
struct DerivedPass {
  const TrainingSetup& setup;
  const program::Program& program;         ///< of training_program()
  std::span<const program::Block> blocks;  ///< of the pass
  const PassTime& priced;
  const PassWaits& waits;
};

/// Its compute, from single kernels.
TracedSeconds derive_pass(const Traced& num, const DerivedPass& pass);

/// The compute of a step of which the slowest stage takes about `compute`.
Result<TracedSeconds> derive_compute(const Traced& num, const TrainingQuestion& question, std::int64_t sequence,
                                     const hardware::Cluster& cluster, const Strategy& strategy, double compute);

}  // namespace assay::training

// The steps of a training program with the seconds that the estimate of the whole step gives them.
#pragma once
#include "assay/schedule/overlap.h"
#include "assay/schedule/training.h"

namespace assay {

/// Kernels of a pass add up to the compute of that pass: products that are joined and kernels that wait for the host or
/// keep a higher clock share the difference evenly. A collective takes what its links take, waited for or not.
Result<StepTimes> training_step_times(const TrainingQuestion& question, std::int64_t sequence, const Cluster& cluster,
                                      const Strategy& strategy, const Program& program);

}  // namespace assay

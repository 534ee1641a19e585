// The steps of a training program with the seconds that the estimate of the whole step gives them.
#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "assay/predict/clock/overlap.h"
#include "assay/predict/training/step.h"

namespace assay::training {

/// The program of one stage's devices under a strategy, with the layers of all stages.
program::Program training_program(const TrainingQuestion& question, std::int64_t sequence, const Strategy& strategy);

/// The resource that a step uses: "math", "memory", or the axes of a network, "net X".
std::string resource_of(const program::Program& program, const program::Step& step);

/// The time of every kernel and collective as it is priced. Kernels, copies, what collectives add and what is waited
/// for the host add up to the pass.
Result<clock::StepTimes> training_step_times(const TrainingQuestion& question, std::int64_t sequence,
                                             const hardware::Cluster& cluster, const Strategy& strategy,
                                             const program::Program& program);

/// Where the time of a step goes, by phase and kind of work: all microbatches, the mean of its stages.
struct KindTime {
  std::string_view phase;  ///< forward, recomputed forward, backward, update
  std::string kind;        ///< products, attention, other kernels; or the axes of a network
  bool is_collective = false;
  Seconds time;  ///< all of it for collectives, exposed or not
  Flops flops;
  Seconds at_peak;  ///< of products and attention, each at the peak of its own format

  double share_of_peak() const { return at_peak / time; }
};
Result<std::vector<KindTime>> kind_times(const TrainingQuestion& question, std::int64_t sequence,
                                         const hardware::Cluster& cluster, const Strategy& strategy);

}  // namespace assay::training

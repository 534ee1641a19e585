// What a run took beside what was predicted for the chip that it ran on.
#pragma once
#include <algorithm>

#include "assay/ask/verbs/run/overlap.h"
#include "assay/ask/verbs/run/training_job.h"
#include "assay/engine/ranks/mpi.h"
#include "assay/predict/collective/core_turns.h"

namespace assay::verbs::run {

/// The chip that `assay measure` makes of this machine.
inline constexpr std::string_view host_chip = "host";
inline constexpr std::string_view measure_note =
    "`assay measure --threads 1` measures this machine; a run then shows its prediction";

/// What a run is predicted for: --on, or the GPU by the name that its driver gives it, or this machine.
std::string predicted_on(const Request& request, std::int64_t devices, const std::string& device);
/// That measured and predicted are of different chips.
std::string other_chip_note(std::string_view cluster);

/// How much longer work takes on ranks that share the cores of this machine; not at all where there are cores enough.
struct CoreSharing {
  double ranks = 1, cores = 1;

  double kernel() const { return std::max(1.0, ranks / cores); }
  /// All groups run at once, and a prediction knows that members of the same one share cores.
  double collective(double group) const {
    return collective::core_turns(ranks, cores) / collective::core_turns(std::min(group, ranks), cores);
  }
};
/// None on other chips. A note says how many ranks share cores.
CoreSharing core_sharing(const engine::LocalRank& local, const hardware::Cluster& cluster, report::Response& response);

/// Seconds, measured and predicted.
report::Members pair_row(std::string what, Seconds measured, Seconds predicted);

/// Adds the seconds of a step by kind of work, measured and predicted for --on, or else for the chip `host` if
/// `assay measure` has made one; a note where nothing can be predicted. Returns what is predicted of collectives beside
/// other steps.
std::optional<clock::OverlapTimes> predict(const Request& request, const Context& context, const TrainingTask& task,
                                           const TrainingJob& job, const TrainedJob& run, report::Response& response);

}  // namespace assay::verbs::run

// Collectives that block against the same ones beside other steps: what ranks did in both, and what was predicted.
#pragma once
#include <functional>
#include <optional>

#include "assay/ask/verbs/run/run.h"
#include "assay/engine/program/activity.h"

namespace assay::verbs::run {

inline constexpr OptionSpec overlap_option{
    "overlap", "", "with --engine mpi: also run it with blocking collectives, and compare; a picture shows both"};
/// An error where there are no ranks whose steps could overlap.
Result<void> check_overlap(const Request& request);

/// What ranks did, with collectives that block and with those that travel beside other steps.
struct MeasuredOverlap {
  engine::RankActivities blocking, overlapped;
  double turns = 1;  ///< of ranks on the cores that they share
};
struct PredictedOverlap {
  Seconds blocking, overlapped;
  Seconds moving, hidden;  ///< of collectives, and of that beside other steps
};

/// The same where a rank has so many cores: one that computes has to copy what it receives by itself, and hides
/// nothing.
PredictedOverlap on_cores(PredictedOverlap ideal, double cores);

/// What steps are predicted to take together if movements travel as run_timed() starts them.
PredictedOverlap predicted_overlap(const program::Program& program, const std::vector<Seconds>& times, double cores);

/// Adds times, what was hidden, and a timeline, which is the picture where one is asked for. Returns a sentence on it.
std::string add_overlap(const Request& request, const program::Program& program,
                        const std::function<std::string(int step)>& name, const MeasuredOverlap& measured,
                        const std::optional<PredictedOverlap>& predicted, report::Response& response);

}  // namespace assay::verbs::run

// Collectives that block against the same ones beside other steps: what ranks did in both, and what was predicted.
#pragma once
#include <functional>
#include <optional>

#include "assay/ask/verbs/run/run.h"
#include "assay/engine/program/activity.h"
#include "assay/predict/clock/step_time.h"

namespace assay::verbs::run {

/// An error where there are no ranks whose steps could overlap.
Result<void> check_overlap(const Request& request);

/// What ranks did, with collectives that block and with those that travel beside other steps.
struct MeasuredOverlap {
  engine::RankActivities blocking, overlapped;
  double turns = 1;  ///< of ranks on the cores that they share
};

/// Adds times, what was hidden, and a timeline, which is the picture where one is asked for. Returns a sentence on it.
std::string add_overlap(const Request& request, const program::Program& program,
                        const std::function<std::string(int step)>& name, const MeasuredOverlap& measured,
                        const std::optional<clock::OverlapTimes>& predicted, report::Response& response);

}  // namespace assay::verbs::run

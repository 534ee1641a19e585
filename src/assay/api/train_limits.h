// What limits a training step, and how far the next limit is.
#pragma once
#include "assay/api/train_query.h"
#include "assay/report/document.h"

namespace assay {

/// One thing that a step may be waiting for.
struct StepLimit {
  std::string_view name;  ///< compute, memory, network, bubble, host or waiting
  double seconds = 0;
};

/// In order of time, the limiter first. Compute, memory and network (its busiest kind of axis) at ideal rates, the
/// pipeline's bubble as ideal hardware has it, and waiting: what the estimate spends on collectives, handing over and
/// overheads while nothing is computed, where that is not the network's bandwidth already.
std::vector<StepLimit> step_limits(const TrainingCost& cost);

/// The first of them.
std::string_view limiter_of(const TrainingCost& cost);

/// The limits as rows: time, and how many times longer each would have to take to limit the step.
Items limit_rows(const TrainingCost& cost);

/// What batch, tensor parallelism, ... would change the limiter, from ideal rates.
Members threshold_members(const TrainQuery& query, const Candidate& best);

}  // namespace assay

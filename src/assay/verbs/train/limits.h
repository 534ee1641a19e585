// What limits a training step, and how far the next limit is.
#pragma once
#include "assay/report/document.h"
#include "assay/verbs/train/query.h"

namespace assay::verbs::train {

/// One thing that a step may be waiting for.
struct StepLimit {
  std::string_view name;  ///< compute, memory, network, bubble, host or waiting
  double seconds = 0;
};

/// In order of time, the limiter first. Compute, memory and network (its busiest kind of axis) at ideal rates, with
/// what is there once a step: the update's memory traffic, the reduction of gradients, new weights. The pipeline's
/// bubble as ideal hardware has it. Waiting: what the estimate spends on collectives, handing over and overheads while
/// nothing is computed, where that is not the network's bandwidth already.
std::vector<StepLimit> step_limits(const training::TrainingCost& cost);

/// The first of them.
std::string_view limiter_of(const training::TrainingCost& cost);

/// The limits as rows: time, and how many times longer each would have to take to limit the step.
report::Items limit_rows(const training::TrainingCost& cost);

/// What microbatch, batch and tensor parallelism would change the limiter, from ideal rates. None depends on the value
/// that it is compared with: tokens and chips scale arithmetic and traffic as the formulas say.
report::Members threshold_members(const TrainQuery& query, const search::Candidate& best);

}  // namespace assay::verbs::train

// The run of `assay train --tokens`: what the request says of it, and how it is shown.
#pragma once
#include "assay/ask/report/response.h"
#include "assay/ask/verbs/train/query.h"
#include "assay/predict/training/run.h"

namespace assay::verbs::train {

/// The run of --tokens with a strategy; one step where they are not given.
Result<training::TrainingRun> read_run(const Request& request, const TrainQuery& query,
                                       const training::TrainingCost& cost);

/// Adds steps, goodput, time, cost and energy to an answer.
Result<void> add_run(const Request& request, const TrainQuery& query, const training::TrainingCost& cost,
                     report::Response& response);

/// Derives time, cost and energy from the time of a step, and adds them to `derived`.
Result<void> explain_run(const Traced& num, const Request& request, const TrainQuery& query,
                         const training::TrainingCost& cost, const NumberOf<Traced, Seconds>& step,
                         std::vector<int>& derived);

}  // namespace assay::verbs::train

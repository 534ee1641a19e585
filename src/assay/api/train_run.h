// A whole training run: steps, failures, time and cost.
#pragma once
#include "assay/api/train_query.h"
#include "assay/report/document.h"

namespace assay {

/// What failures take from a run, at the best interval between checkpoints.
struct Goodput {
  double goodput = 1;  ///< share of the time that makes progress; 0 where none does
  Seconds failures_every, checkpoint_time, checkpoint_interval;
  Seconds lost_each;  ///< to a failure: the restart, and work since the last checkpoint
  Bytes checkpoint;
};

struct TrainingRun {
  double steps = 0;
  std::optional<Goodput> goodput;  ///< with --mtbf
  Seconds lower, time, upper;      ///< infinite where failures come faster than work can be redone
  std::optional<Dollars> cost;     ///< where the chip has a price

  bool ends() const { return !goodput || goodput->goodput > 0.0; }
};

/// The run of --tokens with a strategy; one step where they are not given.
Result<TrainingRun> training_run(const Request& request, const TrainQuery& query, const TrainingCost& cost);

/// Adds steps, goodput, time, cost and energy to an answer.
Result<void> add_run(const Request& request, const TrainQuery& query, const TrainingCost& cost, Response& response);

}  // namespace assay

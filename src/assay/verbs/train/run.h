// A whole training run: steps, failures, time and cost.
#pragma once
#include "assay/report/document.h"
#include "assay/verbs/train/query.h"

namespace assay::verbs::train {

/// What failures take from a run.
struct Goodput {
  double goodput = 1;  ///< share of the time that makes progress; 0 where it is too small for a number
  Seconds failures_every, checkpoint_time, checkpoint_interval, restart;
  Bytes checkpoint;
};

/// The useful share of the time where failures are a Poisson process and hit restarts and checkpoints as well as work:
/// an interval of work T with its checkpoint C takes M e^(R/M) (e^((T + C)/M) - 1) on average (Daly 2006).
double useful_share(Seconds failures_every, Seconds restart, Seconds checkpoint, Seconds interval);
/// The interval with the largest useful share, where e^(-(T + C)/M) = 1 - T/M; near sqrt(2 C M) where failures are
/// rare.
Seconds best_interval(Seconds failures_every, Seconds checkpoint);

struct TrainingRun {
  double steps = 0;
  std::optional<Goodput> goodput;  ///< with --mtbf
  Seconds lower, time, upper;      ///< infinite where the goodput is 0
  std::optional<Dollars> cost;     ///< where the chip has a price

  bool ends() const { return !goodput || goodput->goodput > 0.0; }
};

/// The run of --tokens with a strategy; one step where they are not given.
Result<TrainingRun> training_run(const Request& request, const TrainQuery& query, const training::TrainingCost& cost);

/// Adds steps, goodput, time, cost and energy to an answer.
Result<void> add_run(const Request& request, const TrainQuery& query, const training::TrainingCost& cost,
                     report::Response& response);

}  // namespace assay::verbs::train

#include "assay/predict/training/run.h"

#include <cmath>
#include <limits>

#include "assay/model/accounting.h"

namespace assay::training {

double useful_share(Seconds failures_every, Seconds restart, Seconds checkpoint, Seconds interval) {
  const double restarts = std::exp(restart / failures_every);
  return interval / failures_every / (restarts * std::expm1((interval + checkpoint) / failures_every));
}

Seconds best_interval(Seconds failures_every, Seconds checkpoint) {
  // log(1 - t) + t + c falls from c to below 0 as t = T/M goes from 0 to 1.
  const double c = checkpoint / failures_every;
  double low = 0.0, high = 1.0;
  for (int halvings = 0; halvings < 100; ++halvings) {
    const double t = (low + high) / 2.0;
    (std::log1p(-t) + t + c > 0.0 ? low : high) = t;
  }
  return high * failures_every;
}

Goodput goodput(const Failures& failures) {
  const Seconds checkpoint_time = failures.checkpoint / failures.checkpoint_bandwidth;
  const Seconds interval =
      failures.checkpoint_interval ? *failures.checkpoint_interval : best_interval(failures.every, checkpoint_time);
  return {useful_share(failures.every, failures.restart, checkpoint_time, interval),
          failures.every,
          checkpoint_time,
          interval,
          failures.restart,
          failures.checkpoint};
}

Bytes checkpoint_bytes(const TrainingSetup& setup) {
  const lower::Optimizer& optimizer = setup.optimizer;
  // A master copy that is cast as weights are gathered is the only copy of them.
  const Bytes weight = optimizer.master && optimizer.cast_when_gathered ? Bytes() : storage(setup.formats.weights, 1.0);
  const auto parameters = static_cast<double>(model::parameter_counts(*setup.model).trained);
  return parameters * (weight + optimizer.state_bytes());
}

TrainingRun training_run(const TrainingCost& step, const RunQuestion& question) {
  TrainingRun run;
  run.steps = question.steps;
  std::optional<double> share;
  if (question.failures) {
    run.goodput = goodput(*question.failures);
    share = run.goodput->goodput;
  }
  const auto time = [&](Seconds one) {
    return run.ends() ? run_time<Plain>(run.steps, one, share) : Seconds(std::numeric_limits<double>::infinity());
  };
  run.lower = time(step.lower);
  run.time = time(step.estimate);
  run.upper = time(step.upper);
  if (question.price) run.cost = run_cost<Plain>(run.time, *question.price, question.chips);
  return run;
}

}  // namespace assay::training

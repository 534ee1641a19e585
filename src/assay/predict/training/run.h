// A whole training run: steps, failures, time and cost.
#pragma once
#include <optional>

#include "assay/predict/training/step.h"

namespace assay::training {

/// Failures of a run, and what guards against them.
struct Failures {
  Seconds every;  ///< mean time between failures of the whole cluster
  Seconds restart;
  Bytes checkpoint;
  BytesPerSecond checkpoint_bandwidth;
  std::optional<Seconds> checkpoint_interval = std::nullopt;  ///< the best where not given
};

/// What failures cost a run.
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
Goodput goodput(const Failures& failures);

/// What a restart needs: every trained weight and its optimizer state once, however many chips hold copies.
Bytes checkpoint_bytes(const TrainingSetup& setup);

/// Power of a chip and its share of the system; a limit applies to the chip alone.
template <class N>
NumberOf<N, Watts> chip_power(const N& num, const hardware::Power& power, std::optional<Watts> limit) {
  const auto whole = power.system ? num.given("power of a chip and its share of the system", *power.system)
                                  : num.given("power of a chip", power.chip);
  if (!limit) return whole;
  return whole - (num.given("power of the chip alone", power.chip) - num.given("limit", *limit, "--power"));
}

/// The parts of a run as numbers of a policy: so many steps, and the share of the time that makes progress.
template <class N>
NumberOf<N, Seconds> run_time(const NumberOf<N, double>& steps, const NumberOf<N, Seconds>& step,
                              const std::optional<NumberOf<N, double>>& goodput) {
  const auto time = steps * step;
  return goodput ? time / *goodput : time;
}
template <class N>
NumberOf<N, Dollars> run_cost(const NumberOf<N, Seconds>& time, const NumberOf<N, DollarsPerSecond>& price,
                              const NumberOf<N, double>& chips) {
  return time * price * chips;
}
template <class N>
NumberOf<N, Joules> run_energy(const NumberOf<N, Watts>& power, const NumberOf<N, Seconds>& time,
                               const NumberOf<N, double>& chips) {
  return power * time * chips;
}

/// How long a run is, where it may fail and what it costs.
struct RunQuestion {
  double steps = 1;
  double chips = 1;
  std::optional<Failures> failures = std::nullopt;
  std::optional<DollarsPerSecond> price = std::nullopt;  ///< of a chip
};

struct TrainingRun {
  double steps = 0;
  std::optional<Goodput> goodput;  ///< where failures are known
  Seconds lower, time, upper;      ///< infinite where the goodput is 0
  std::optional<Dollars> cost;     ///< where the chip has a price

  bool ends() const { return !goodput || goodput->goodput > 0.0; }
};

/// A run of steps that cost as much as this one.
TrainingRun training_run(const TrainingCost& step, const RunQuestion& question);

}  // namespace assay::training

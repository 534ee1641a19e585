// Continuous batching at the largest load: every place of the batch is taken, a sequence that ends makes room for a
// prompt, and prompts join decode steps. Step times are given, so that estimates, tables of a loaded server and tests
// share one formula.
#pragma once
#include <algorithm>
#include <cmath>

#include "assay/base/explain.h"

namespace assay::serving {

/// One replica.
struct SteadyServer {
  double places = 1;        ///< sequences at once: those being decoded, and those whose prompt is worked on
  double output = 1;        ///< tokens of a request, mean
  double prompt = 1;        ///< tokens of a request to work on, mean
  double chunk = HUGE_VAL;  ///< most prompt tokens of one step
  double pieces = 0;        ///< steps that a prompt takes, mean; 0: those of the mean prompt
};

/// What its steps hold: follows from places and lengths alone. In each step `requests` requests end and as many prompts
/// are worked on, whole ones if a chunk holds them.
struct SteadyLoad {
  double requests = 0;   ///< requests that end per step, mean
  double tokens = 0;     ///< prompt tokens, in a step that has any
  double share = 1;      ///< share of steps that have prompts
  double sequences = 0;  ///< decoded in a step with prompts
  double alone = 0;      ///< decoded in a step without
};

/// Steps that a prompt takes, mean.
inline double prompt_steps(const SteadyServer& of) {
  return of.pieces > 0.0 ? of.pieces : std::max(1.0, std::ceil(of.prompt / of.chunk - 1e-9));
}

inline SteadyLoad steady_load(const SteadyServer& of) {
  const double pieces = prompt_steps(of);
  SteadyLoad load;
  load.requests = of.places / (of.output + pieces);
  load.alone = of.places;
  if (load.requests * pieces <= 1.0) {
    load.tokens = of.prompt / pieces;
    load.share = load.requests * pieces;
    load.sequences = of.places - 1.0;
    return load;
  }
  // Every step has prompts: as many as sequences end, or as fit in a chunk, and then some places stay empty.
  load.requests = std::min(of.places / (of.output + 1.0), of.chunk / of.prompt);
  load.tokens = load.requests * of.prompt;
  load.sequences = load.requests * of.output;
  return load;
}

struct SteadyTimes {
  Seconds step;       ///< mean over all steps
  Seconds per_token;  ///< between two tokens of a sequence, mean
};

/// The mean over steps with prompts, which take `mixed`, and steps without, which take `alone`.
template <class N>
NumberOf<N, Seconds> mean_step(const N& num, const SteadyLoad& load, const NumberOf<N, Seconds>& mixed,
                               const NumberOf<N, Seconds>& alone) {
  return num.times("share of steps with prompts", load.share, "a prompt for each sequence that ends", mixed) +
         num.times("share without", 1.0 - load.share, "the other steps", alone);
}

/// The rates of a server, from the requests that end in its mean step.
template <class N>
struct SteadyRates {
  NumberOf<N, Hertz> requests;
  NumberOf<N, TokensPerSecond> tokens;
};
template <class N>
SteadyRates<N> steady_rates(const N& num, double requests, double output, const NumberOf<N, Seconds>& step) {
  const auto rate =
      num.named("requests per second", num.given("requests that end in a step", requests, "over all replicas") / step);
  return {rate, num.named("output tokens per second",
                          rate * num.given("tokens of a request", Tokens(output), "mean output"))};
}

/// `mixed` and `alone`: a step with and without prompts.
inline SteadyTimes steady_times(const SteadyLoad& load, Seconds mixed, Seconds alone) {
  const double with = load.share * load.sequences, without = (1.0 - load.share) * load.alone;
  SteadyTimes out;
  out.step = mean_step(Plain{}, load, mixed, alone);
  out.per_token = (with * mixed + without * alone) / (with + without);
  return out;
}

}  // namespace assay::serving

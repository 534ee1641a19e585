// The first token by its client's clock: what a request meets before its prompt is worked on, and after.
#pragma once
#include "assay/predict/numbers/serving_effects.h"
#include "assay/predict/serving/steady_state.h"

namespace assay::serving {

/// The parts of the time to the first token, which add up to it.
template <class N>
struct FirstTokenOf {
  NumberOf<N, Seconds> front_end{};  ///< from the client to the engine's queue, tokenising included
  NumberOf<N, Seconds> waits{};      ///< for steps that run or are prepared; under load also for places and prompts
  NumberOf<N, Seconds> prompt{};     ///< steps that work on the prompt, next to sequences, up to the first token
  NumberOf<N, Seconds> delivery{};   ///< from the end of that step to the client
  NumberOf<N, Seconds> time() const { return front_end + waits + prompt + delivery; }
};
using FirstToken = FirstTokenOf<Plain>;

/// A part of the way, which an engine that nobody names does not have.
template <class N>
NumberOf<N, Seconds> way(const N& num, std::string_view name, const Given<Seconds>& part) {
  return part.source.empty() ? num.given(name, part.value, "the software does not say") : num.given(name, part);
}

template <class N>
NumberOf<N, Seconds> front_end_time(const N& num, const numbers::RequestPath& path, double prompt) {
  return num.named("front end", way(num, "of a request", path.front_end) +
                                    num.given("tokens of the prompt", prompt, "cached ones as well") *
                                        way(num, "tokenising", path.tokenising));
}

/// Sequences of a step are delivered one after the other, a new one last.
template <class N>
NumberOf<N, Seconds> delivery_time(const N& num, const numbers::RequestPath& path, double sequences) {
  return num.named("delivery", num.given("sequences", sequences, "of a step of one server") *
                                   way(num, "delivery of each", path.delivery));
}

/// A request that arrives at a random time: half of the step that runs then, and the steps that are prepared.
template <class N>
NumberOf<N, Seconds> admission_time(const N& num, const numbers::RequestPath& path, const NumberOf<N, Seconds>& running,
                                    const NumberOf<N, Seconds>& next) {
  const auto rest = num.given("left of the running step", 0.5, "on average, of a random arrival") * running;
  if (path.ahead.value == 0.0) return num.named("waits", rest);
  return num.named("waits", rest + num.given("steps ahead", path.ahead) * next);
}

/// Times of a server: its steps with and without prompts, and a prompt on the idle server.
template <class N>
struct StepsOf {
  NumberOf<N, Seconds> mixed{}, alone{}, idle{};
};

/// A request to a server whose other places are taken.
template <class N>
FirstTokenOf<N> first_token(const N& num, const numbers::RequestPath& path, double prompt, const SteadyServer& server,
                            const StepsOf<N>& steps) {
  const auto& [mixed, alone, idle] = steps;
  const SteadyLoad load = steady_load(server);
  FirstTokenOf<N> out;
  out.front_end = front_end_time(num, path, prompt);
  if (server.places > 1.0) {
    const auto mean = num.named("mean step", mean_step(num, load, mixed, alone));
    // Random arrivals meet long steps more often.
    const auto squares =
        num.times("share of steps with prompts", load.share, "a prompt for each sequence that ends", mixed * mixed) +
        num.times("share without", 1.0 - load.share, "the other steps", alone * alone);
    out.waits = admission_time(num, path, num.named("running step", squares / mean), mean);
  }
  // Next to sequences no prompt is faster than alone: stages share the steps of a pipeline, a prompt passes all of
  // them.
  out.prompt =
      num.named("prompt", max(num.times("steps of a prompt", prompt_steps(server), "one for each chunk", mixed), idle));
  out.delivery = delivery_time(num, path, server.places);
  return out;
}

}  // namespace assay::serving

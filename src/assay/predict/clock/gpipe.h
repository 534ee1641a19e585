// The time from step to step of gpipe, written once over a number policy: searches price it, explanations derive it.
#pragma once
#include <cstddef>

#include "assay/base/explain.h"
#include "assay/predict/clock/simulation.h"

namespace assay::clock {

/// All forwards, then all backwards: each kind moves at the pace of the slowest stage that it passes. `hop` blocks the
/// sender. The functions give the times of a stage: one microbatch forward and backward, and the end of the step.
template <class N, class Forward, class Backward, class End>
NumberOf<N, Seconds> gpipe_interval(const N& num, const PipelineShape& shape, const NumberOf<N, Seconds>& hop,
                                    const Forward& forward, const Backward& backward, const End& at_end) {
  using Time = NumberOf<N, Seconds>;
  const auto stages = static_cast<std::size_t>(shape.stages);
  const auto sent = [&](std::size_t stage) { return forward(stage) + (stage + 1 < stages ? hop : Time()); };
  Time forwards{}, slowest{};
  for (std::size_t stage = 0; stage < stages; ++stage) {
    forwards = forwards + sent(stage);
    slowest = max(slowest, sent(stage));
  }
  forwards = num.named("forward through all stages", forwards);
  slowest = num.named("slowest forward", slowest);
  const auto others = num.given("other microbatches", static_cast<double>(shape.microbatches - 1), "after the first");
  Time interval{}, before = forwards, backwards{}, slowest_back{};
  for (std::size_t stage = stages; stage-- > 0;) {
    before = before - sent(stage);
    const Time back = backward(stage) + (stage > 0 ? hop : Time());
    backwards = backwards + back;
    slowest_back = max(slowest_back, back);
    interval = max(interval, forwards - before + backwards + others * (slowest + slowest_back) + at_end(stage));
  }
  return interval;
}

}  // namespace assay::clock

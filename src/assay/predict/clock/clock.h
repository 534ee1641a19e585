// How long steps of a pipeline take, for searches: the interval of simulate_pipeline() with the times of every part,
// without events and, once a shape is known, without allocation.
#pragma once
#include <array>
#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "assay/predict/clock/event_order.h"

namespace assay::clock {

class PipelineClock {
 public:
  /// PipelineResult::interval of a valid input.
  /// Once every stage repeats a period, shifted by the same time, it repeats until forwards run out: the rest is
  /// extrapolated, exactly but for rounding. Stages that do not settle are simulated to the end; steps too large for
  /// that (16 Mi operations) go on at the pace of the last period.
  Seconds interval(const PipelineInput& input);
  /// Corresponding operations of two periods that follow each other.
  using Echo = std::pair<std::uint32_t, std::uint32_t>;
  /// What the interval was computed from: a simulated step of fewer microbatches, and the periods left out of it.
  struct Sample {
    PipelineShape shape;
    Seconds interval;
    double left_out = 0;  ///< number of periods that were not simulated
    Seconds period;       ///< length of one period
    Echo echo = {};       ///< the operations that the period lies between
  };
  Sample sample(const PipelineInput& input);

 private:
  /// The operations of a step, and pairs of corresponding operations of its last two periods with forwards.
  struct Score {
    EventOrder order;
    std::vector<Echo> echoes;
  };
  struct Played {
    Seconds interval;
    Seconds period;           ///< time between the last two periods of the slowest stage
    Echo echo = {};           ///< operations of the slowest stage
    bool is_settled = false;  ///< all stages have the same period
  };
  const Score& score_of(const PipelineShape& shape);
  Played play(const PipelineInput& input, const Score& score);

  std::map<std::array<std::int64_t, 4>, Score> known_;
  EventTimes times_;
  EventEnds ends_;
};

}  // namespace assay::clock

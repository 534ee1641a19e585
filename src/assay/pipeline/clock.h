// How long steps of a pipeline take, for searches: the interval of simulate_pipeline() with the times of every part,
// without events and, once a shape is known, without allocation.
#pragma once
#include <array>
#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "assay/pipeline/event_order.h"

namespace assay::pipeline {

class PipelineClock {
 public:
  /// PipelineResult::interval in seconds, of a right input whose hops block.
  /// Many microbatches are not all played: once every stage does what it did a period before, all of it later by the
  /// same time, it does so until forwards run out. That is exact but for rounding. Where stages do not settle, all are
  /// played; of steps too large for that (16 Mi operations) the rest goes on as slowly as the last period.
  double interval(const PipelineInput& input);

 private:
  /// The operations of a step, and those of its last two periods with forwards that are alike.
  struct Score {
    EventOrder order;
    std::vector<std::pair<std::uint32_t, std::uint32_t>> echoes;
  };
  struct Played {
    double interval = 0;
    double period = 0;        ///< seconds from the last but one to the last, of the stage where they are most
    bool is_settled = false;  ///< these are the same everywhere
  };
  const Score& score_of(const PipelineShape& shape);
  Played play(const PipelineInput& input, const Score& score);

  std::map<std::array<std::int64_t, 4>, Score> known_;
  EventTimes times_;
  std::vector<double> done_, first_, free_;
};

}  // namespace assay::pipeline

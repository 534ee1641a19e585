// Closed forms of pipeline steps with equal stages, and bounds for unequal ones: a few multiplications and no
// allocation, for searches. docs/pipelines.md derives them; tests compare each with the simulation.
#pragma once
#include <cstdint>

#include "assay/predict/clock/simulation.h"

namespace assay::clock {

/// PipelineResult::interval of one step of a possible shape with equal stages and free hops, without at_end. `stage` is
/// one microbatch through all chunks of a stage, 1/p of the model.
Seconds interval_of_equal_stages(const PipelineShape& shape, const StageTimes& stage);

/// A stage of an uneven pipeline: one microbatch, including sends.
struct StageAmong {
  std::int64_t stage = 0;
  StageTimes own, first_run;  ///< times of all its runs; zb-v: of the first run
  StageTimes before;          ///< sums of the first runs of the stages before it
  StageTimes rest;            ///< sums of all other work on other stages; unused with several chunks or two directions
  Seconds first_weight;       ///< weight gradient of the first run of the first stage
  Seconds at_end, first_at_end;  ///< work once a step, on this stage and on the first one
};

/// A stage of an input.
StageAmong stage_among(const PipelineInput& input, std::int64_t stage);

/// A lower bound on the interval: the path that stays on this stage except for the first and the last
/// microbatch. Equals the interval of gpipe, 1f1b and zb-h1 with equal stages, unless microbatches are few.
Seconds least_interval(const PipelineShape& shape, const StageAmong& stage);
/// The larger bound of the busiest and the last stage.
Seconds least_interval(const PipelineInput& input);
/// A lower bound on the interval for several chunks, from sums over them.
constexpr Seconds least_interval_of_chunks(double microbatches, Seconds own, Seconds before, Seconds at_end,
                                           Seconds first_at_end) {
  const Seconds on_the_way = before + first_at_end;
  return microbatches * own + (at_end > on_the_way ? at_end : on_the_way);
}

/// Whether weight gradients are computed separately from input gradients, when a stage would wait.
bool splits_backward(PipelineSchedule schedule);

/// Peak activations of a stage, in microbatches of a whole stage; exact for every possible shape.
double peak_microbatches(const PipelineShape& shape, std::int64_t stage);

}  // namespace assay::clock

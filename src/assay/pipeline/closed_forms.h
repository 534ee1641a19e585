// Closed forms of pipeline steps whose stages are all alike, and bounds of those whose stages differ: a few
// multiplications and no allocation, for searches. docs/pipelines.md derives them; the simulation is the judge of every
// one.
#pragma once
#include <cstdint>

#include "assay/pipeline/simulation.h"

namespace assay::pipeline {

struct PipelineForm {
  Seconds makespan, interval;  ///< as in PipelineResult, without at_end
  bool exact = true;           ///< makespan equals the simulation's; otherwise it is not above it
  bool interval_exact = true;  ///< the same of interval
};

/// One step of a possible shape with stages alike. `stage` is one microbatch through a whole stage, all of its chunks
/// (1/p of the model), `transfer` one hop that does not block, `pair_saving` dualpipe's, as in PipelineInput.
/// Exact when a hop takes no longer than the shortest piece of work on one chunk; beyond that gpipe and 1f1b stay
/// exact. zb-v is exact without hops; dualpipe with hops (its interval not) or
/// with a saving, not with both.
PipelineForm pipeline_form(const PipelineShape& shape, const StageTimes& stage, Seconds transfer = {},
                           Seconds pair_saving = {});

/// A stage of an uneven pipeline among the others: seconds of one microbatch, what it sends included.
struct StageAmong {
  std::int64_t stage = 0;
  StageTimes own, first_run;  ///< of all its runs; zb-v: of the first one
  StageTimes before;          ///< sums of the first runs of the stages before it
  StageTimes rest;            ///< of all else on other stages; not asked for with several chunks or two directions
  Seconds first_weight;       ///< of the first run of the first stage
  double at_end = 0, first_at_end = 0;  ///< seconds once a step, on this stage and on the first one
};

/// That of a stage of an input whose hops block.
StageAmong stage_among(const PipelineInput& input, std::int64_t stage);

/// Seconds that the interval of no such pipeline undercuts: paths that stay on this stage but for trips of the first
/// and the last microbatch. Equal to the interval of gpipe and 1f1b with stages alike and of zb-h1, but for few
/// microbatches.
double least_interval(const PipelineShape& shape, const StageAmong& stage);
/// The longer one of the stage with most to do and of the last one.
double least_interval(const PipelineInput& input);
/// The same with several chunks, of which sums will do.
constexpr double least_interval_of_chunks(double microbatches, double own, double before, double at_end,
                                          double first_at_end) {
  const double on_the_way = before + first_at_end;
  return microbatches * own + (at_end > on_the_way ? at_end : on_the_way);
}

/// Whether gradients of weights are made when a stage would wait, apart from those of inputs.
bool splits_backward(PipelineSchedule schedule);

/// Activations that a stage holds at most, in microbatches through a whole stage; exact for every possible shape.
double peak_microbatches(const PipelineShape& shape, std::int64_t stage);

}  // namespace assay::pipeline

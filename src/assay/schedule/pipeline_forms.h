// Closed forms of pipeline steps whose stages are all alike: a few multiplications and no allocation, for searches.
// docs/pipelines.md derives them; the simulation is the judge of every one.
#pragma once
#include <array>
#include <cstdint>

#include "assay/schedule/pipeline.h"

namespace assay {

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

/// What the slowest stage waits in a step when the others take `others` on average, without hops: for the work of
/// others, less what it does itself meanwhile; `at_end` if it is the first or the last one. That of pipeline_form where
/// all are alike; exact for gpipe and 1f1b with a slow end, within a few percent of a step for the others.
Seconds pipeline_bubble(const PipelineShape& shape, const StageTimes& slowest, const StageTimes& others, bool at_end);

/// The same of zb-v from that of runs alike, where the two `runs` of the stage differ: while the pipeline fills and
/// empties it has its first one to do alone. `others` is the mean run of the other stages.
Seconds folded_bubble(const PipelineShape& shape, Seconds alike, const std::array<StageTimes, 2>& runs,
                      const StageTimes& others, bool at_end);

/// Whether gradients of weights are made when a stage would wait, apart from those of inputs.
bool splits_backward(PipelineSchedule schedule);

/// Activations that a stage holds at most, in microbatches through a whole stage; exact for every possible shape.
double peak_microbatches(const PipelineShape& shape, std::int64_t stage);

}  // namespace assay

// One training step of a pipeline, simulated event by event: which stage works on which microbatch when, how long it
// idles and how many microbatches' activations it holds at its peak. The order of operations follows from the schedule
// alone, not from the times, so every time is a maximum of sums over paths: a slower stage, a longer hop or one more
// microbatch never makes a step shorter.
#pragma once
#include <cstdint>
#include <string_view>
#include <vector>

#include "assay/base/result.h"
#include "assay/base/units.h"

namespace assay::clock {

/// The order in which a stage runs its work.
///   gpipe        all forward, then all backward (Huang et al. 2019)
///   one_f_one_b  one forward, one backward after a warm-up (PipeDream-Flush, Narayanan et al. 2021)
///   interleaved  1f1b with several chunks of the model per stage (Narayanan et al. 2021)
///   zb_h1, zb_h2 separate input and weight gradients, weight gradients fill the bubble (Qi et al. 2023)
///   zb_v         zb with two chunks per stage, folded as a V: stage i has chunks i and 2p-1-i (Qi et al. 2024)
///   dualpipe     microbatches from both ends; stage i has parts i and p-1-i of the model (DeepSeek-V3 report 2024)
enum class PipelineSchedule { gpipe, one_f_one_b, interleaved, zb_h1, zb_h2, zb_v, dualpipe };

/// The name on the command line: gpipe, 1f1b, interleaved, zb-h1, zb-h2, zb-v, dualpipe.
std::string_view schedule_name(PipelineSchedule schedule);
/// Parses the name of a schedule; zb means zb-h1.
Result<PipelineSchedule> parse_schedule(std::string_view text, std::string_view where);

/// What determines the order of operations.
struct PipelineShape {
  PipelineSchedule schedule = PipelineSchedule::one_f_one_b;
  std::int64_t stages = 1;        ///< groups of devices along the pipeline axis
  std::int64_t microbatches = 1;  ///< per step
  std::int64_t chunks = 1;        ///< parts of the model per stage when interleaved; zb_v and dualpipe always have two
};

/// Parts of the model that a stage holds; with dualpipe they belong to two copies of it.
std::int64_t chunks_per_stage(const PipelineShape& shape);
/// Parts that one copy of the model is split into: stages x chunks, or stages with dualpipe.
std::int64_t model_parts(const PipelineShape& shape);
/// The stage of a part of the model; `direction` 1 is dualpipe's second copy, which runs from the last stage to the
/// first.
std::int64_t stage_of_part(const PipelineShape& shape, std::int64_t part, std::int64_t direction = 0);

/// The number that the microbatches of a step must be a multiple of under the schedule.
std::int64_t microbatch_group(const PipelineShape& shape);

/// Whether the schedule exists for these sizes, by the rules of check_pipeline; for searches.
bool is_possible(const PipelineShape& shape);
/// An error with the broken rule and the nearest legal values.
Result<void> check_pipeline(const PipelineShape& shape);

/// One microbatch through one part of the model. A schedule that does not split the backward pass runs input and weight
/// gradients as one and sends the input gradient on when both are done.
struct StageTimes {
  Seconds forward, backward_input, backward_weight;
};

struct PipelineInput {
  PipelineShape shape;
  std::vector<StageTimes> times = {};  ///< one per model part in model order, or one for all of them
  /// From one stage to another, of an activation or its gradient; free within a stage. The sender does not compute.
  Seconds transfer = {};
  std::vector<Seconds> at_end = {};  ///< gradient reduction and optimizer after a stage's last weight gradient; one per
                                     ///< stage, one for all, or none
};

enum class PipelineWork { forward, backward_input, backward_weight, backward, send, at_end };

struct PipelineEvent {
  std::int64_t stage = 0, chunk = 0;
  std::int64_t microbatch =
      0;  ///< -1 for at_end; with dualpipe the second half of the numbers enters at the last stage
  PipelineWork work = PipelineWork::forward;
  Seconds start, end;
  bool paired = false;  ///< half of a dualpipe pair: both inputs are needed when the first half starts, both results
                        ///< are sent when the second one ends
};

struct PipelineResult {
  Seconds makespan;   ///< from the first start to the last end
  Seconds interval;   ///< from one step to the next, back to back: the longest time a stage is occupied
  Seconds compute;    ///< time of forward and backward work, summed over stages
  double bubble = 0;  ///< idle share of stages x makespan; at_end counts as work, a blocking send does not
  std::vector<double>
      peak_microbatches;              ///< per stage, activations held at most, in microbatches through a whole stage;
                                      ///< they are held from the start of F to the end of the weight gradient
  std::vector<PipelineEvent> events;  ///< stage by stage, each in order of time; empty if not asked for
};

/// Whose events a simulation records, unless it is the number of a stage.
inline constexpr std::int64_t every_stage = -1, no_stage = -2;

/// Runs the step. Fails where check_pipeline does, and on lists of the wrong length, negative times and steps too large
/// to simulate (1 Mi operations).
Result<PipelineResult> simulate_pipeline(const PipelineInput& input, std::int64_t events_of = every_stage);

}  // namespace assay::clock

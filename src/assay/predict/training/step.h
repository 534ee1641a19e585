// The time and memory of one training step of a strategy, from the profiles of its layers and the links of its axes.
// No allocation, no strings: the search calls this by the million.
#pragma once
#include <array>
#include <cstdint>
#include <optional>
#include <vector>

#include "assay/predict/clock/clock.h"
#include "assay/predict/clock/closed_forms.h"
#include "assay/predict/clock/stage_split.h"
#include "assay/predict/training/layer_cost.h"
#include "assay/predict/training/offload.h"
#include "assay/predict/training/pass_time.h"
#include "assay/predict/training/stage_links.h"

namespace assay::training {

/// Bytes that software keeps of a layer, over the minimum. If everything element-wise is recomputed, only what the
/// policy names is kept, whatever the software.
double kept_over_fewest(const numbers::StepEffects& effects, lower::Recompute recompute);

struct Strategy {
  lower::Parallelism parallelism;
  std::int64_t micro_batch = 1;  ///< sequences per data-parallel group
  std::int64_t interleave = 1;   ///< chunks of layers per stage
  clock::PipelineSchedule schedule = clock::PipelineSchedule::one_f_one_b;
  lower::Recompute recompute;
  Offload offload = Offload::none;
  collective::AxisLayout layout{};  ///< of whole_mesh()
  friend bool operator==(const Strategy&, const Strategy&) = default;
};

/// One step by part, on the slowest stage unless noted.
template <class N>
struct StepPartsOf {
  using Time = NumberOf<N, Seconds>;
  Time compute{};                      ///< arithmetic and memory of all microbatches
  Time recompute{};                    ///< the recomputed part of `compute`
  Time tensor{}, context{}, expert{};  ///< exposed collectives
  Time weights{};                      ///< exposed gathering of weights and reduction of gradients in every microbatch
  Time handover{};                     ///< sending activations from stage to stage
  Time bubble{};                       ///< waiting for other stages
  Time gradients{};                    ///< exposed reduction of gradients at the end
  Time update{};                       ///< the optimizer, and the exposed gathering of new weights
  Time host{};                         ///< exposed copies to and from the host
  Time overhead{};                     ///< fixed cost per step, and waiting for the slowest of many chips
  Time total() const {
    return compute + tensor + context + expert + weights + handover + bubble + gradients + update + host + overhead;
  }
};
using StepParts = StepPartsOf<Plain>;

/// One chip of the fullest stage at its peak: at the loss, or in the backward pass of a layer.
template <class N>
struct MemoryPartsOf {
  using Size = NumberOf<N, Bytes>;
  Size weights{}, gradients{}, master{}, moments{};
  Size activations{};      ///< of all microbatches in flight
  Size head{};             ///< logits, their gradients and the gradient of the head's weight
  Size buffers{};          ///< of collectives: weights gathered, gradients not yet reduced
  Size workspace{};        ///< of one layer: recomputed results, and what its widest step reads and writes
  Size reserve{};          ///< fragmentation: held by the allocator, but unusable
  Size context{};          ///< of the driver and the communication library
  std::int64_t stage = 0;  ///< which one it is
  Size host{};             ///< in host memory: not part of the sums below
  /// What the framework reports as allocated at the peak, what its allocator holds, what the driver shows.
  Size allocated() const { return weights + gradients + master + moments + activations + head + buffers + workspace; }
  Size reserved() const { return allocated() + reserve; }
  Size total() const { return reserved() + context; }
};
using MemoryParts = MemoryPartsOf<Plain>;

struct TrainingCost {
  Seconds lower, estimate, upper;            ///< per step
  Seconds compute;                           ///< arithmetic at the peak, per step, mean over stages
  Seconds fill;                              ///< the part of the lower bound for filling and draining the pipeline
  Seconds memory_time;                       ///< memory traffic at the peak, of the slowest stage
  Seconds end_memory_time;                   ///< the part of it for the update, once a step
  Seconds host_time;                         ///< the busiest host lane at its full rate, of the slowest stage
  std::array<Seconds, roles> network{};      ///< collectives at full bandwidth by role, of the slowest stage
  std::array<Seconds, roles> end_network{};  ///< the part of them once a step
  Seconds copies;                            ///< sums over two copies of the model at full bandwidth, once a step
  StepParts parts;                           ///< of the estimate
  Seconds uneven;                            ///< of the work in `parts`: excess of the slowest stage over the mean
  std::size_t slowest = 0, fullest = 0;      ///< the kinds of stages that `parts` and `memory` are of
  MemoryParts memory;
  Bytes host_memory;     ///< per chip, of the stage that has the most there
  Flops executed_flops;  ///< of a step, per chip, mean over stages
};

/// What is common to all strategies of a question.
struct TrainingQuestion {
  TrainingSetup setup;
  double sequences = 1;  ///< per step over the whole cluster
  double chips = 1;
  bool overlap = true;  ///< reduction of gradients and gathering of weights overlap with compute
  HostLink host = {};   ///< for offloading; its capacity is a limit, too
  std::optional<hardware::CollectiveCalibration> collectives = std::nullopt;  ///< of the estimate
};

/// Microbatches of a strategy; fractional if the batch does not divide.
double microbatches(const TrainingQuestion& question, const Strategy& strategy);

/// Time of a step spent waiting for the slowest of many chips, over the rest.
double straggler_share(const TrainingQuestion& question);

/// One microbatch on a stage, as schedules see it: both passes, and parts of them.
template <class Time>
struct StagePassesOf {
  Time forward{}, backward{};
  Time hidden_forward{}, hidden_backward{};  ///< see StageParts
  Time weight_gradients{}, deferral_cost{}, deferral_weight_gradients{};
};
using StagePasses = StagePassesOf<Seconds>;

/// Times of one microbatch on a stage, and of the end of a step.
template <class N>
struct StageParts {
  using Time = NumberOf<N, Seconds>;
  Time forward{}, backward{};  ///< including all that is exposed
  Time compute{}, recompute{}, tensor{}, context{}, expert{}, weights{};
  /// Expert collectives hidden by schedules that run both passes concurrently.
  Time hidden_forward{}, hidden_backward{};
  Time weight_gradients{};                            ///< of `backward`: what schedules may defer
  Time deferral_cost{}, deferral_weight_gradients{};  ///< added to both if they are deferred; see PassParts
  Time copies{};               ///< once a step: sums of gradients over two copies of the model, whatever hides them
  Time gradients{}, update{};  ///< once a step
  Time gradients_hidden_if_deferred{};  ///< of `gradients`
};

/// One microbatch on a stage, and the end of a step, at ideal rates.
template <class N>
struct IdealStage {
  using Time = NumberOf<N, Seconds>;
  Time compute{}, memory{}, end_memory{};            ///< end: once a step
  std::array<Time, roles> network{}, end_network{};  ///< collectives at full bandwidth, by role
  Time copies{};                                     ///< sums over two copies of the model, once a step

  void set_passes(const IdealPass<N>& forward, const IdealPass<N>& backward) {
    compute = forward.compute + backward.compute;
    memory = forward.memory + backward.memory;
    for (std::size_t r = 0; r < roles; ++r) {
      network[r] = forward.network[r] + backward.network[r];
      end_network[r] = forward.once[r] + backward.once[r];
    }
  }
};
/// A step at ideal rates: arithmetic as the mean over stages, the rest of the slowest stage.
template <class N>
struct IdealStep {
  using Time = NumberOf<N, Seconds>;
  Time compute{}, memory{}, copies{};
  std::array<Time, roles> network{};

  /// `share` of all stages are like it.
  void add(const N& num, const IdealStage<N>& stage, double share, double microbatches) {
    const auto all = [&](const Time& one) { return num.times("microbatches", microbatches, "of a step", one); };
    compute = compute + num.given("share of the stages", share, "that are alike") *
                            num.given("microbatches", microbatches, "of a step") * stage.compute;
    memory = max(memory, all(stage.memory) + stage.end_memory);
    for (std::size_t r = 0; r < roles; ++r) network[r] = max(network[r], all(stage.network[r]) + stage.end_network[r]);
    copies = max(copies, stage.copies);
  }
  /// Of the busiest kind of axis.
  Time busiest_network() const {
    Time most = copies;
    for (const Time& one : network) most = max(most, one);
    return most;
  }
};

/// What a send from a stage to the next adds to the sender.
struct HopTime {
  Seconds alone;       ///< nothing else runs meanwhile
  Seconds overlapped;  ///< the pass of another chunk runs concurrently
  Seconds under(clock::PipelineSchedule schedule) const {
    return schedule == clock::PipelineSchedule::interleaved ? overlapped : alone;
  }
};

/// What one microbatch costs on each kind of stage, independent of the pipeline schedule.
struct MicrobatchCost {
  struct Part : StageParts<Plain> {
    double stages = 1;            ///< number of stages like this
    std::int64_t at = 0, to = 0;  ///< the first and the last of them
    bool first = false, last = false;
    double layers = 0;                                                                       ///< that it holds
    Seconds least() const { return forward + backward - hidden_forward - hidden_backward; }  ///< of any schedule
    Seconds lower, upper;
    Seconds end_upper;  ///< once a step, one thing after the other
    IdealStage<Plain> ideal;
    Flops executed_flops;
    Bytes kept;       ///< of one microbatch on the chip
    Bytes offloaded;  ///< of one microbatch on the host
    HostTime host;
    MemoryParts memory;  ///< without activations, reserve and context
  };
  std::vector<Part> parts;
  std::vector<std::array<PassTime, 2>> layers;  ///< of each kind, forward and backward
  std::vector<std::array<PassTime, 2>> shared;  ///< of each kind, weights its layers share; empty if none do
  std::array<PassTime, 2> embedding, head;      ///< forward and backward
  double microbatches = 1, stages = 1;
  double most_layers = 0;           ///< of a stage
  HopTime hop;                      ///< from a stage to the next
  Seconds boundary_ideal;           ///< the same at full bandwidth
  double stragglers = 0;            ///< share of the step
  Seconds fixed;                    ///< of each step
  bool frees_gradients = false;     ///< not held from one microbatch to the next
  bool scatters_gradients = false;  ///< every device ends up with a shard
  double reserved = 1;              ///< see StepEffects
  Bytes context;
};

/// What the steps of one strategy are priced from, by reference.
/// What a strategy is priced from, as searches keep it: the work of a microbatch, and the traffic of weights and
/// gradients.
struct StepProfiles {
  StepProfiles(const TrainingQuestion& question, std::int64_t sequence, const Strategy& strategy);

  TrainingProfile work, weights;
};

struct StepInputs {
  const TrainingQuestion& question;
  const Strategy& strategy;
  const TrainingProfile& profile;
  const TrainingProfile* weights;  ///< traffic of weights and gradients, where `profile` is of work alone; else null
  const StageLinks& links;
};

// Each of these fills its share of a MicrobatchCost, whose memory is reused.

/// The passes of a microbatch through each kind of layer and the ends, and the hop from a stage to the next: they
/// depend neither on how layers are split into stages nor on offloading.
void fill_passes(const StepInputs& inputs, MicrobatchCost& microbatch);
/// A chunk of an interleaved stage takes at least as long as this: the shortest forward pass through a layer.
Seconds shortest_forward(const MicrobatchCost& microbatch);
/// The memory of each kind of stage, but no times.
void fill_memory(const StepInputs& inputs, const clock::StageSplit& split, MicrobatchCost& microbatch);
/// Times and memory of each kind of stage; needs the passes.
void fill_stages(const StepInputs& inputs, const clock::StageSplit& split, MicrobatchCost& microbatch);
MicrobatchCost microbatch_cost(const StepInputs& inputs, const clock::StageSplit& split);

/// How layers are assigned to the stages of a schedule, and of a strategy.
clock::StageSplit stage_split(const model::Transformer& model, std::int64_t stages, clock::PipelineSchedule schedule,
                              std::int64_t interleave);
clock::StageSplit stage_split(const model::Transformer& model, const Strategy& strategy);
constexpr clock::StageLayout layout_of(clock::PipelineSchedule schedule) {
  return schedule == clock::PipelineSchedule::zb_v       ? clock::StageLayout::folded
         : schedule == clock::PipelineSchedule::dualpipe ? clock::StageLayout::mirrored
                                                         : clock::StageLayout::straight;
}

/// Every run of layers that a stage of the schedule holds, one part each, in the order of a microbatch.
clock::StageSplit stage_runs(const model::Transformer& model, std::int64_t stages, clock::PipelineSchedule schedule,
                             std::int64_t interleave);

/// Layers of the largest chunk over the mean of a stage with `layers`: memory counts every chunk as the largest.
double largest_chunk(const MicrobatchCost& microbatch, const Strategy& strategy, double layers);

/// Microbatches whose activations a stage holds at its peak; counts chunks as if all were the largest.
double held_microbatches(const MicrobatchCost& microbatch, const MicrobatchCost::Part& part, const Strategy& strategy,
                         std::int64_t stage);
/// Memory of a stage that holds the activations of `held` microbatches.
MemoryParts memory_holding(const MicrobatchCost& microbatch, const MicrobatchCost::Part& part, double held);
/// The same of a stage under a schedule, at its peak.
MemoryParts memory_at(const MicrobatchCost& microbatch, const MicrobatchCost::Part& part, const Strategy& strategy,
                      std::int64_t stage);
/// Of the fullest stage like `part`: the first, or the last if stages are folded.
MemoryParts memory_at(const MicrobatchCost& microbatch, const MicrobatchCost::Part& part, const Strategy& strategy);

/// How a schedule changes passes.
struct ScheduleEffects {
  bool hides_experts = false;  ///< forward and backward passes of different microbatches run concurrently, so that one
                               ///< computes while the other exchanges tokens between experts
  bool defers_weight_gradients = false;  ///< they no longer hide collectives
};
ScheduleEffects schedule_effects(clock::PipelineSchedule schedule, std::int64_t stages);
/// One microbatch on a stage, without sends.
template <class Time>
struct ScheduledTimes {
  Time forward{}, backward_input{}, backward_weight{};
};
template <class Time>
constexpr ScheduledTimes<Time> scheduled_times(const StagePassesOf<Time>& passes, ScheduleEffects effects) {
  Time forward = passes.forward, backward = passes.backward, gradients = passes.weight_gradients;
  if (effects.hides_experts) {
    forward = forward - passes.hidden_forward;
    backward = backward - passes.hidden_backward;
  }
  if (effects.defers_weight_gradients) {
    backward = backward + passes.deferral_cost;
    gradients = gradients + passes.deferral_weight_gradients;
  }
  return {forward, backward - gradients, gradients};
}
constexpr clock::StageTimes stage_times(const StagePasses& passes, ScheduleEffects effects) {
  const ScheduledTimes<Seconds> times = scheduled_times(passes, effects);
  return {times.forward, times.backward_input, times.backward_weight};
}

/// Results of a microbatch that such a stage sends: one for each of its parts of the model, except results that end
/// there or stay on the stage.
double sends(const MicrobatchCost::Part& part, const clock::PipelineShape& shape);

/// The step under a schedule if no stage waited for others: a lower bound.
TrainingCost training_cost(const MicrobatchCost& microbatch, const Strategy& strategy);
/// Sets the time from step to step; the time in which the slowest stage is idle is bubble.
void set_interval(const MicrobatchCost& microbatch, Seconds interval, TrainingCost& cost);

/// Pipeline events of a step: times of every part of the model, sends, and the end of the step. Reuses its memory.
class StepEvents {
 public:
  /// Takes a strategy whose `stages` are priced; `runs` are its stage_runs(). Valid until the next call.
  const clock::PipelineInput& fill(const StepInputs& inputs, const clock::StageSplit& split,
                                   const clock::StageSplit& runs, const MicrobatchCost& stages);
  /// Time from one step to the next, and a lower bound on it.
  Seconds interval() { return clock_.interval(input_); }
  clock::PipelineClock::Sample sample() { return clock_.sample(input_); }
  Seconds least() const { return clock::least_interval(input_); }

 private:
  MicrobatchCost runs_;
  clock::PipelineInput input_;
  clock::PipelineClock clock_;
};

/// The events of a strategy.
Result<clock::PipelineInput> pipeline_input(const TrainingQuestion& question, std::int64_t sequence,
                                            const hardware::Cluster& cluster, const Strategy& strategy);

ProfileKey profile_key(const Strategy& strategy, std::int64_t sequence);
/// What the two halves of a profile depend on: many strategies have one of them in common.
ProfileKey work_key(const Strategy& strategy, std::int64_t sequence);
ProfileKey traffic_key(const Strategy& strategy, std::int64_t sequence);

/// The links of a strategy on a cluster, with the collective calibration of the question.
Result<StageLinks> strategy_links(const TrainingQuestion& question, const hardware::Cluster& cluster,
                                  const Strategy& strategy);

/// The cost of a microbatch with layers assigned to stages by `split`, and the memory of each stage.
Result<MicrobatchCost> price_stages(const TrainingQuestion& question, std::int64_t sequence,
                                    const hardware::Cluster& cluster, const Strategy& strategy,
                                    const clock::StageSplit& split);
std::vector<MemoryParts> stage_memory(const MicrobatchCost& microbatch, const clock::StageSplit& split,
                                      const Strategy& strategy);

/// Prices one strategy from scratch; with several stages, from pipeline events. Fails where the batch makes a number of
/// microbatches that the schedule cannot run.
Result<TrainingCost> price_strategy(const TrainingQuestion& question, std::int64_t sequence,
                                    const hardware::Cluster& cluster, const Strategy& strategy);

}  // namespace assay::training

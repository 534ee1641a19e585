#include "assay/predict/training/step.h"

#include <algorithm>
#include <cmath>

#include "assay/predict/training/stage_formulas.h"

namespace assay::training {

double kept_over_fewest(const numbers::StepEffects& effects, lower::Recompute recompute) {
  using enum lower::ForwardPart;
  return recompute.includes(lower::Recompute::of({norms, activations, residual})) ? 1.0 : effects.activations.value;
}

double microbatches(const TrainingQuestion& question, const Strategy& strategy) {
  const lower::Parallelism& p = strategy.parallelism;
  return question.sequences / (static_cast<double>(p.data * p.fsdp) * static_cast<double>(strategy.micro_batch));
}

ProfileKey profile_key(const Strategy& strategy, std::int64_t sequence) {
  const lower::Parallelism& p = strategy.parallelism;
  ProfileKey key;
  key.tensor = p.tensor;
  key.context = p.context;
  key.expert = p.expert;
  key.expert_over = p.expert_over;
  key.micro_batch = strategy.micro_batch;
  key.sequence = sequence;
  key.fsdp = p.fsdp > 1;
  key.replicas = p.data > 1;
  key.zero = p.zero;
  key.residual = p.residual;
  key.context_scheme = p.context_scheme;
  key.recompute = strategy.recompute;
  return key;
}

ProfileKey work_key(const Strategy& strategy, std::int64_t sequence) {
  ProfileKey key = profile_key(strategy, sequence);
  key.fsdp = key.replicas = false;
  key.zero = 0;
  return key;
}

ProfileKey traffic_key(const Strategy& strategy, std::int64_t sequence) {
  ProfileKey key = profile_key(strategy, sequence);
  key.micro_batch = 1;
  key.recompute = lower::Recompute::none();
  key.context_scheme = lower::ContextScheme::gather;
  return key;
}

double straggler_share(const TrainingQuestion& question) {
  return question.setup.effects.straggler * std::max(0.0, std::log2(question.chips / 8.0));
}

namespace {

clock::PipelineShape shape_of(const Strategy& strategy, double microbatches) {
  return {strategy.schedule, strategy.parallelism.pipeline, static_cast<std::int64_t>(microbatches),
          strategy.interleave};
}

}  // namespace

double sends(const MicrobatchCost::Part& part, const clock::PipelineShape& shape) {
  if (shape.stages == 1) return 0.0;
  const double ends = (part.first ? 1.0 : 0.0) + (part.last ? 1.0 : 0.0);
  switch (layout_of(shape.schedule)) {
    case clock::StageLayout::folded:
      return part.first || part.at + 1 == shape.stages ? 2.0 : 4.0;
    case clock::StageLayout::mirrored:
      return 2.0 - ends / 2.0;  // of both directions, half of the microbatches each
    case clock::StageLayout::straight:
      break;
  }
  return 2.0 * static_cast<double>(shape.chunks) - ends;
}

clock::StageSplit stage_split(const model::Transformer& model, std::int64_t stages, clock::PipelineSchedule schedule,
                              std::int64_t interleave) {
  if (stages == 1) return clock::split_stages(model, stages);
  return clock::split_stages(model, stages, layout_of(schedule),
                             schedule == clock::PipelineSchedule::interleaved ? interleave : 1);
}

clock::StageSplit stage_split(const model::Transformer& model, const Strategy& strategy) {
  return stage_split(model, strategy.parallelism.pipeline, strategy.schedule, strategy.interleave);
}

clock::StageSplit stage_runs(const model::Transformer& model, std::int64_t stages, clock::PipelineSchedule schedule,
                             std::int64_t interleave) {
  const std::int64_t parts = clock::model_parts({schedule, stages, 1, interleave});
  return clock::split_parts(model, stages, parts / stages, layout_of(schedule));
}

ScheduleEffects schedule_effects(clock::PipelineSchedule schedule, std::int64_t stages) {
  if (stages == 1) return {};
  return {schedule == clock::PipelineSchedule::interleaved || schedule == clock::PipelineSchedule::dualpipe,
          clock::splits_backward(schedule)};
}

TrainingCost training_cost(const MicrobatchCost& microbatch, const Strategy& strategy) {
  const double m = microbatch.microbatches, stages = microbatch.stages;
  const clock::PipelineShape shape = shape_of(strategy, m);
  TrainingCost cost;
  IdealStep<Plain> ideal;
  Seconds slowest_lower, slowest_upper, sum_lower, sum_upper, states, end_upper;
  struct Stage {
    ScheduledPasses<Plain> passes;
    Seconds handover;     ///< of a microbatch
    Seconds whole{-1.0};  ///< of all its work in a step
  } slowest;
  for (std::size_t i = 0; i < microbatch.parts.size(); ++i) {
    const MicrobatchCost::Part& part = microbatch.parts[i];
    const double share = part.stages / stages;
    const ScheduledPasses<Plain> passes = scheduled<Plain>(part, strategy);
    const Seconds handover = sends(part, shape) * microbatch.hop.under(strategy.schedule);
    ideal.add(Plain{}, part.ideal, share, m);
    cost.uneven -= share * m * part.compute;
    cost.executed_flops += share * m * part.executed_flops;
    cost.end_memory_time = std::max(cost.end_memory_time, part.ideal.end_memory);
    for (std::size_t r = 0; r < roles; ++r)
      cost.end_network[r] = std::max(cost.end_network[r], part.ideal.end_network[r]);
    end_upper = std::max(end_upper, part.end_upper);
    slowest_lower = std::max(slowest_lower, part.lower);
    slowest_upper = std::max(slowest_upper, part.upper);
    sum_lower += part.stages * part.lower;
    sum_upper += part.stages * part.upper;
    const Seconds whole =
        m * (passes.seconds() + handover) + part.gradients - passes.hidden_gradients + part.update + part.host.update;
    cost.host_time = std::max(cost.host_time, m * part.host.ideal + part.host.ideal_update);
    states = std::max(states, part.host.ideal_update);
    if (whole > slowest.whole) {
      slowest = {passes, handover, whole};
      cost.slowest = i;
    }
    const MemoryParts memory = memory_at(microbatch, part, strategy);
    cost.host_memory = std::max(cost.host_memory, memory.host);
    if (memory.total() > cost.memory.total()) {
      cost.memory = memory;
      cost.fullest = i;
    }
  }
  cost.compute = ideal.compute;
  cost.memory_time = ideal.memory;
  cost.network = ideal.network;
  cost.copies = ideal.copies;
  // Ideal hardware still has to fill the pipeline with work on other stages.
  const double fill = stages > 1.0 ? clock::interval_of_equal_stages(shape, {1_s, 1_s, 1_s}).value() / 3.0 - m : 0.0;
  const MicrobatchCost::Part& part = microbatch.parts[cost.slowest];
  cost.parts = step_parts<Plain>(Plain{}, {part, slowest.passes, slowest.handover, part.host.of_step(Plain{}, m), m});
  cost.uneven += cost.parts.compute;
  set_interval(microbatch, Seconds(), cost);
  cost.fill = fill * (sum_lower - slowest_lower) / std::max(1.0, stages - 1.0);
  // Work done once a step may overlap with filling the pipeline.
  const Seconds busiest = std::max({ideal.busiest_network(), cost.memory_time, cost.host_time});
  cost.lower = std::max(m * slowest_lower + cost.fill, busiest);
  cost.upper = m * slowest_upper + (stages - 1.0) / stages * sum_upper + end_upper + states;
  return cost;
}

void set_interval(const MicrobatchCost& microbatch, Seconds interval, TrainingCost& cost) {
  set_bubble(Plain{}, interval, cost.parts);
  set_overhead(Plain{}, microbatch.stragglers, microbatch.fixed, cost.parts);
  cost.estimate = cost.parts.total();
}

const clock::PipelineInput& StepEvents::fill(const StepInputs& inputs, const clock::StageSplit& split,
                                             const clock::StageSplit& runs, const MicrobatchCost& stages) {
  const Strategy& strategy = inputs.strategy;
  const MicrobatchCost* priced = &stages;
  if (!(runs == split)) {
    runs_.layers = stages.layers;
    runs_.shared = stages.shared;
    runs_.embedding = stages.embedding;
    runs_.head = stages.head;
    runs_.hop = stages.hop;
    runs_.boundary_ideal = stages.boundary_ideal;
    fill_stages(inputs, runs, runs_);
    priced = &runs_;
  }
  input_.shape = shape_of(strategy, stages.microbatches);
  input_.times.clear();
  input_.at_end.clear();
  for (const std::int16_t at : runs.part_of) {
    const auto times = scheduled<Plain>(priced->parts[static_cast<std::size_t>(at)], strategy).times;
    input_.times.push_back({times.forward, times.backward_input, times.backward_weight});
  }
  for (const std::int16_t at : split.part_of) {
    const MicrobatchCost::Part& part = stages.parts[static_cast<std::size_t>(at)];
    const Seconds gradients = part.gradients - scheduled<Plain>(part, strategy).hidden_gradients;
    input_.at_end.push_back(std::max(Seconds(), gradients + part.update + part.host.update));
  }
  input_.transfer = stages.hop.under(strategy.schedule);
  return input_;
}

Result<StageLinks> strategy_links(const TrainingQuestion& question, const hardware::Cluster& cluster,
                                  const Strategy& strategy) {
  return stage_links(strategy.parallelism, strategy.layout, cluster,
                     question.collectives ? &*question.collectives : nullptr,
                     routing_of(*question.setup.model, question.setup.dispatch));
}

StepProfiles::StepProfiles(const TrainingQuestion& question, std::int64_t sequence, const Strategy& strategy)
    : work(make_profile(question.setup, work_key(strategy, sequence), ProfilePart::work)),
      weights(make_profile(question.setup, traffic_key(strategy, sequence), ProfilePart::weights_traffic)) {}

Result<MicrobatchCost> price_stages(const TrainingQuestion& question, std::int64_t sequence,
                                    const hardware::Cluster& cluster, const Strategy& strategy,
                                    const clock::StageSplit& split) {
  ASSAY_TRY(links, strategy_links(question, cluster, strategy));
  const StepProfiles profiles(question, sequence, strategy);
  return microbatch_cost({question, strategy, profiles.work, &profiles.weights, links}, split);
}

namespace {

/// A strategy from scratch, stage by stage and event by event.
struct PricedStep {
  MicrobatchCost microbatch;
  StepEvents events;
  clock::PipelineInput input;  ///< of more stages than one
};
Result<PricedStep> price_step(const TrainingQuestion& question, std::int64_t sequence, const hardware::Cluster& cluster,
                              const Strategy& strategy) {
  const model::Transformer& model = *question.setup.model;
  const std::int64_t stages = strategy.parallelism.pipeline;
  if (stages > 1)
    ASSAY_CHECK(clock::check_pipeline(
        {strategy.schedule, stages, static_cast<std::int64_t>(microbatches(question, strategy)), strategy.interleave}));
  ASSAY_TRY(links, strategy_links(question, cluster, strategy));
  const StepProfiles profiles(question, sequence, strategy);
  const clock::StageSplit split = stage_split(model, strategy);
  PricedStep step;
  const StepInputs inputs{question, strategy, profiles.work, &profiles.weights, links};
  step.microbatch = microbatch_cost(inputs, split);
  const clock::StageSplit runs = stage_runs(model, stages, strategy.schedule, strategy.interleave);
  step.input = step.events.fill(inputs, split, runs, step.microbatch);
  return step;
}

}  // namespace

Result<clock::PipelineInput> pipeline_input(const TrainingQuestion& question, std::int64_t sequence,
                                            const hardware::Cluster& cluster, const Strategy& strategy) {
  ASSAY_TRY(step, price_step(question, sequence, cluster, strategy));
  return std::move(step.input);
}

Result<TrainingCost> price_strategy(const TrainingQuestion& question, std::int64_t sequence,
                                    const hardware::Cluster& cluster, const Strategy& strategy) {
  ASSAY_TRY(step, price_step(question, sequence, cluster, strategy));
  TrainingCost cost = training_cost(step.microbatch, strategy);
  if (strategy.parallelism.pipeline > 1) set_interval(step.microbatch, step.events.interval(), cost);
  return cost;
}

}  // namespace assay::training

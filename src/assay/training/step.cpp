#include "assay/training/step.h"

#include <algorithm>
#include <cmath>

#include "assay/training/memory.h"

namespace assay::training {

double kept_over_fewest(const estimate::StepEffects& effects, lower::Recompute recompute) {
  using enum lower::ForwardPart;
  return recompute.includes(lower::Recompute::of({norms, activations, residual})) ? 1.0 : effects.activations;
}

double microbatches(const TrainingQuestion& question, const Strategy& strategy) {
  const lower::Parallelism& p = strategy.parallelism;
  return question.sequences / (static_cast<double>(p.data * p.fsdp) * static_cast<double>(strategy.micro_batch));
}

ProfileKey profile_key(const Strategy& strategy, std::int64_t sequence) {
  const lower::Parallelism& p = strategy.parallelism;
  ProfileKey key;
  key.tensor = p.tensor, key.context = p.context, key.expert = p.expert;
  key.expert_over = p.expert_over;
  key.micro_batch = strategy.micro_batch, key.sequence = sequence;
  key.fsdp = p.fsdp > 1, key.replicas = p.data > 1;
  key.zero = p.zero;
  key.residual = p.residual, key.context_scheme = p.context_scheme;
  key.recompute = strategy.recompute;
  return key;
}

double straggler_share(const TrainingQuestion& question) {
  return question.setup.effects.straggler * std::max(0.0, std::log2(question.chips / 8.0));
}

namespace {

/// Adds what the host's lanes take beyond the chip to both passes and, once a step, to the first one.
/// It takes `passes` of them to go through all that a stage holds.
void wait_for_host(Offload offload, bool overlap, double update, double passes, SteadyCost::Part& out) {
  if (moves_states(offload)) {
    // Those passes are as long as the busiest of the chip, the host and the links that bring new weights.
    const double brought = out.update - update, forward = passes * out.forward;
    const double first = overlap ? std::max(forward + update + brought, out.host.first) : out.host.first + brought;
    out.host.update = first - (forward + passes * out.host.forward + update + brought);
  }
  out.forward += out.host.forward, out.backward += out.host.backward;
  // What is hidden of experts does not make a pass shorter than its copies.
  out.hidden_forward = std::min(out.hidden_forward, std::max(0.0, out.forward - out.host.lane_forward));
  out.hidden_backward = std::min(out.hidden_backward, std::max(0.0, out.backward - out.host.lane_backward));
  out.upper += out.host.in_turn;
}

/// Results of a microbatch that such a stage hands on: those of its parts of the model, but for what ends there or
/// stays on the stage.
double sends(const SteadyCost::Part& part, const pipeline::PipelineShape& shape) {
  if (shape.stages == 1) return 0.0;
  const double ends = (part.first ? 1.0 : 0.0) + (part.last ? 1.0 : 0.0);
  switch (layout_of(shape.schedule)) {
    case pipeline::StageLayout::folded:
      return part.first || part.at + 1 == shape.stages ? 2.0 : 4.0;
    case pipeline::StageLayout::mirrored:
      return 2.0 - ends / 2.0;  // of both directions, half of the microbatches each
    case pipeline::StageLayout::straight:
      break;
  }
  return 2.0 * static_cast<double>(shape.chunks) - ends;
}

/// A microbatch on a stage under a schedule, and what the schedule changes in it.
struct ScheduledPasses {
  pipeline::StageTimes times;
  double hidden = 0;   ///< of experts, in both passes
  double put_off = 0;  ///< of collectives in the backward pass, beside which nothing is left to run
  double spared = 0;   ///< of gradients at the end of the step, which hide behind a pass that is the longer
  double seconds() const { return (times.forward + times.backward_input + times.backward_weight).value(); }
};

ScheduledPasses scheduled(const SteadyCost::Part& part, const Strategy& strategy) {
  const ScheduleEffects effects = schedule_effects(strategy.schedule, strategy.parallelism.pipeline);
  ScheduledPasses out;
  out.times = stage_times({part.forward, part.backward, part.hidden_forward, part.hidden_backward,
                           part.weight_gradients, part.beside, part.beside_gradients},
                          effects);
  if (effects.hides_experts) out.hidden = part.hidden_forward + part.hidden_backward;
  if (effects.puts_off) out.put_off = part.beside;
  if (out.put_off != 0.0) out.spared = part.spared;
  return out;
}

}  // namespace

SteadyCost steady_cost(const TrainingQuestion& question, const Strategy& strategy, const TrainingProfile& profile,
                       const StageLinks& links, const pipeline::StageSplit& split) {
  SteadyCost steady;
  fill_passes(question, strategy, profile, nullptr, links, steady);
  fill_stages(question, strategy, profile, nullptr, links, split, steady);
  return steady;
}

void fill_passes(const TrainingQuestion& question, const Strategy& strategy, const TrainingProfile& profile,
                 const TrainingProfile* weights, const StageLinks& links, SteadyCost& steady) {
  const auto passes = [&](const LayerProfile& layer, const LayerProfile* sharing) -> std::array<PassTime, 2> {
    const auto pass = [&](PassProfile LayerProfile::*which) {
      const std::span<const Traffic> more = sharing ? (sharing->*which).traffic : std::span<const Traffic>();
      return pass_time(layer.*which, more, links, question.overlap, question.setup.effects);
    };
    return {pass(&LayerProfile::forward), pass(&LayerProfile::backward)};
  };
  const std::size_t kinds = profile.kinds.size();
  steady.layers.resize(kinds);
  for (std::size_t k = 0; k < kinds; ++k)
    steady.layers[k] = passes(profile.kinds[k], weights ? &weights->kinds[k] : nullptr);
  steady.shared.resize(profile.shared.size());
  for (std::size_t k = 0; k < profile.shared.size(); ++k)
    steady.shared[k] = passes(profile.shared[k], weights ? &weights->shared[k] : nullptr);
  steady.embedding = passes(profile.embedding, weights ? &weights->embedding : nullptr);
  steady.head = passes(profile.head, weights ? &weights->head : nullptr);
  steady.boundary_ideal = steady.hop = 0.0;
  if (strategy.parallelism.pipeline == 1) return;
  const network::CollectiveLine& line = links.between_stages;
  const double handed = profile.boundary.value();
  steady.boundary_ideal = handed * line.rate.value();
  steady.hop = steady.boundary_ideal / links.network_share + line.floor.value();
  // Tensor-parallel devices that all have the same to hand on send a part each where that pays; the receivers gather.
  if (strategy.parallelism.residual == lower::ResidualScheme::replicated && strategy.parallelism.tensor > 1) {
    constexpr RoleSet tensor = role_bit(Role::tensor);
    const double part = steady.boundary_ideal / links.ways(tensor);
    const double gather =
        links.forms[tensor][StageLinks::line_of(network::CollectiveKind::all_gather)].seconds(handed, 1);
    if (const double parts = part / links.network_share + line.floor.value() + gather; parts < steady.hop)
      steady.hop = parts, steady.boundary_ideal = part;
  }
}

void fill_stages(const TrainingQuestion& question, const Strategy& strategy, const TrainingProfile& profile,
                 const TrainingProfile* weights, const StageLinks& links, const pipeline::StageSplit& split,
                 SteadyCost& steady) {
  const estimate::KernelRates& rates = question.setup.rates;
  const estimate::StepEffects& effects = question.setup.effects;
  const StateBytes bytes(question, strategy, links);
  const Sharing& shared = bytes.shared;
  const double memory_rate = estimate::optimizer_rate(rates).value();
  const double stream_rate = rates.hbm.value() * (rates.pointwise ? rates.pointwise->stream : rates.memory_share);
  const auto& [embed_forward, embed_backward] = steady.embedding;
  const auto& [head_forward, head_backward] = steady.head;
  const double over_fewest = kept_over_fewest(effects, strategy.recompute);
  set_memory_rules(question, strategy, bytes, steady);
  steady.fixed = effects.fixed.value();
  steady.stragglers = straggler_share(question);
  const auto on_host = [&](const LayerProfile& layer, const PassTime& f, const PassTime& b, double kept) {
    const double elements = bytes.states_of(layer);
    return HostLayer{moves_activations(strategy.offload) ? kept : 0.0,
                     bytes.states_move ? elements * bytes.optimizer->state_bytes() : 0.0, f.chain() + f.exposed,
                     b.chain() + b.exposed, elements * bytes.updated / memory_rate};
  };
  for (const pipeline::StageSplit::Part& part : split.parts) {
    PassTime f, b;
    SteadyCost::Part& out = steady.parts.emplace_back();
    const StageElements sum =
        add_memory(bytes, effects, profile, (weights ? weights : &profile)->head.gathered, over_fewest, part, out);
    steady.most_layers = std::max(steady.most_layers, out.layers);
    for (std::size_t k = 0; k < steady.layers.size(); ++k) {
      const double held = part.layers[k], n = held * part.passed;
      if (n == 0.0) continue;
      const auto& [forward, backward] = steady.layers[k];
      f.add(forward, n, held), b.add(backward, n, held);
      if (strategy.offload == Offload::none) continue;
      const LayerProfile& layer = profile.kinds[k];
      out.host.add(question.host, on_host(layer, forward, backward, layer.kept.value() * over_fewest), n, held,
                   question.overlap);
    }
    for (std::size_t k = 0; k < profile.shared.size(); ++k) {
      if (part.layers[k] == 0) continue;
      const auto& [forward, backward] = steady.shared[k];
      f.add(forward, 0.0, 1.0), b.add(backward, 0.0, 1.0);
      if (strategy.offload != Offload::none)
        out.host.add(question.host, on_host(profile.shared[k], forward, backward, 0.0), 0.0, 1.0, question.overlap);
    }
    if (part.first) f.add(embed_forward, part.passed, 1.0), b.add(embed_backward, part.passed, 1.0);
    if (part.last) f.add(head_forward, part.passed, 1.0), b.add(head_backward, part.passed, 1.0);
    const auto [first_cast, second_cast] = bytes.cast(profile, part, sum.dense + sum.used_again, sum.expert);
    f.compute += part.passed * first_cast / stream_rate;
    b.compute += part.passed * second_cast / stream_rate, b.recompute += part.passed * second_cast / stream_rate;
    out.forward = f.chain() + f.exposed, out.backward = b.chain() + b.exposed;
    out.compute = f.compute + b.compute, out.recompute = b.recompute;
    out.tensor = f.tensor + b.tensor, out.context = f.context + b.context, out.expert = f.expert + b.expert;
    out.beside = b.beside, out.beside_gradients = b.beside_gradients, out.weight_gradients = b.weight_gradients;
    if (out.expert > 0.0) {
      const double share = std::clamp(1.0 - effects.expert_exposed, 0.0, out.compute / out.expert);
      out.hidden_forward = share * f.expert, out.hidden_backward = share * b.expert;
    }
    out.weights = f.exposed + b.exposed;
    out.ideal_compute = f.ideal_compute + b.ideal_compute, out.ideal_memory = f.ideal_memory + b.ideal_memory;
    out.lower = std::max(out.ideal_compute, out.ideal_memory);
    for (std::size_t r = 0; r < roles; ++r) {
      out.network[r] = f.ideal_network[r] + b.ideal_network[r];
      out.end_network[r] = f.ideal_once[r] + b.ideal_once[r];
      out.lower = std::max(out.lower, out.network[r]);
    }
    out.upper = out.ideal_compute + out.ideal_memory + f.all_network + b.all_network + 2.0 * steady.boundary_ideal;
    out.executed_flops = f.flops + b.flops;
    // Two copies of the model make gradients of other microbatches each. Their sum is one over the copies of what
    // data-parallel devices have added up before, every device its part.
    if (part.passed < 1.0) {
      const double summed =
          bytes.gradient * (sum.trained_dense / shared.sums + sum.trained_experts / shared.expert_sums);
      const double count = out.layers + (part.first ? 1.0 : 0.0) + (part.last ? 1.0 : 0.0);
      out.copies = links.copies_form.seconds(summed, count);
      out.ideal_copies = summed * links.copies.rate.value();
      out.end_upper = std::max(out.ideal_copies, count * links.copies.floor.value());
    }
    // The end of the step: gradients are reduced while the last microbatch's backward pass runs, new weights are
    // brought back while the next step begins. Where one pass goes through a part of all layers, others go through the
    // rest.
    const double reduce = f.gradients + b.gradients + out.copies, bring = f.new_weights + b.new_weights;
    const double passes = 1.0 / part.passed;
    const auto waited = [&](double chain) {
      return question.overlap ? std::max(effects.gradients_exposed * reduce, reduce - passes * chain) : reduce;
    };
    out.gradients = waited(b.chain());
    out.spared = out.gradients - waited(b.chain() + b.beside_chain);
    // What several stages hold has gradients on all of them, which are added up at the end: a table at both ends of the
    // pipeline, weights that layers share.
    const auto add_over_stages = [&](double elements, double holders) {
      out.gradients += 2.0 * (holders - 1.0) *
                       (elements * bytes.gradient / holders * links.between_stages.rate.value() / links.network_share +
                        links.between_stages.floor.value());
    };
    if (part.first != part.last && profile.tied_elements > 0.0 && trained_of(profile.embedding) > 0.0)
      add_over_stages(profile.tied_elements, 2.0);
    for (std::size_t k = 0; k < profile.shared.size(); ++k) {
      if (part.layers[k] == 0 || trained_of(profile.shared[k]) == 0.0) continue;
      double holders = 0.0;
      for (const pipeline::StageSplit::Part& other : split.parts) holders += other.layers[k] > 0 ? other.stages : 0;
      if (holders > 1.0) add_over_stages(trained_of(profile.shared[k]), holders);
    }
    const double updated = bytes.states_of(sum) * bytes.updated;
    const double update = updated / memory_rate;
    out.end_memory = updated / rates.hbm.value();
    out.end_upper += out.end_memory + f.all_once + b.all_once;
    out.update = update + (question.overlap ? std::max(0.0, bring - passes * f.chain()) : bring);
    if (strategy.offload != Offload::none) {
      // Nothing of the ends is kept on the host but their states.
      if (part.first)
        out.host.add(question.host, on_host(profile.embedding, embed_forward, embed_backward, 0.0), part.passed, 1.0,
                     question.overlap);
      if (part.last)
        out.host.add(question.host, on_host(profile.head, head_forward, head_backward, 0.0), part.passed, 1.0,
                     question.overlap);
      move_to_host(strategy.offload, sum.most_kept, sum.trained_share(), out);
      wait_for_host(strategy.offload, question.overlap, update, passes, out);
    }
  }
}

pipeline::StageSplit stage_split(const model::Transformer& model, std::int64_t stages,
                                 pipeline::PipelineSchedule schedule, std::int64_t interleave) {
  if (stages == 1) return pipeline::split_stages(model, stages);
  return pipeline::split_stages(model, stages, layout_of(schedule),
                                schedule == pipeline::PipelineSchedule::interleaved ? interleave : 1);
}

pipeline::StageSplit stage_split(const model::Transformer& model, const Strategy& strategy) {
  return stage_split(model, strategy.parallelism.pipeline, strategy.schedule, strategy.interleave);
}

pipeline::StageSplit stage_runs(const model::Transformer& model, std::int64_t stages,
                                pipeline::PipelineSchedule schedule, std::int64_t interleave) {
  const std::int64_t parts = pipeline::model_parts({schedule, stages, 1, interleave});
  return pipeline::split_parts(model, stages, parts / stages, layout_of(schedule));
}

ScheduleEffects schedule_effects(pipeline::PipelineSchedule schedule, std::int64_t stages) {
  if (stages == 1) return {};
  return {schedule == pipeline::PipelineSchedule::interleaved || schedule == pipeline::PipelineSchedule::dualpipe,
          pipeline::splits_backward(schedule)};
}

TrainingCost training_cost(const SteadyCost& steady, const Strategy& strategy) {
  const double m = steady.microbatches, stages = steady.stages;
  const pipeline::PipelineShape shape{strategy.schedule, strategy.parallelism.pipeline, static_cast<std::int64_t>(m),
                                      strategy.interleave};
  TrainingCost cost;
  double slowest_lower = 0.0, slowest_upper = 0.0, sum_lower = 0.0, sum_upper = 0.0;
  double states = 0.0, busiest = 0.0, end_upper = 0.0;
  struct Stage {
    const SteadyCost::Part* part = nullptr;
    ScheduledPasses passes;
    double handover = 0;  ///< of a microbatch
    double whole = -1.0;  ///< seconds of all that it does in a step
  } slowest;
  for (const SteadyCost::Part& part : steady.parts) {
    const double share = part.stages / stages;
    const ScheduledPasses passes = scheduled(part, strategy);
    const double handover = sends(part, shape) * steady.hop;
    cost.compute += share * m * part.ideal_compute;
    cost.uneven -= share * m * part.compute;
    cost.executed_flops += share * m * part.executed_flops;
    cost.memory_time = std::max(cost.memory_time, m * part.ideal_memory + part.end_memory);
    cost.end_memory_time = std::max(cost.end_memory_time, part.end_memory);
    for (std::size_t r = 0; r < roles; ++r) {
      cost.network[r] = std::max(cost.network[r], m * part.network[r] + part.end_network[r]);
      cost.end_network[r] = std::max(cost.end_network[r], part.end_network[r]);
      busiest = std::max(busiest, cost.network[r]);
    }
    cost.copies = std::max(cost.copies, part.ideal_copies);
    busiest = std::max(busiest, part.ideal_copies);
    end_upper = std::max(end_upper, part.end_upper);
    slowest_lower = std::max(slowest_lower, part.lower), slowest_upper = std::max(slowest_upper, part.upper);
    sum_lower += part.stages * part.lower, sum_upper += part.stages * part.upper;
    const double whole =
        m * (passes.seconds() + handover) + part.gradients - passes.spared + part.update + part.host.update;
    cost.host_time = std::max(cost.host_time, m * part.host.ideal + part.host.ideal_update);
    states = std::max(states, part.host.ideal_update);
    if (whole > slowest.whole) slowest = {&part, passes, handover, whole};
    const MemoryParts memory = memory_at(steady, part, strategy);
    cost.host_memory = std::max(cost.host_memory, memory.host);
    if (memory.total() > cost.memory.total()) cost.memory = memory;
  }
  // Ideal hardware still has to fill the pipeline with work on other stages.
  const double fill = stages > 1.0 ? pipeline::pipeline_form(shape, {1_s, 1_s, 1_s}).interval.value() / 3.0 - m : 0.0;
  const auto& [part, passes, handover, whole] = slowest;
  StepParts& step = cost.parts;
  step.compute = m * part->compute, step.recompute = m * part->recompute;
  step.tensor = m * (part->tensor + passes.put_off), step.context = m * part->context;
  step.expert = m * (part->expert - passes.hidden);
  step.weights = m * part->weights;
  step.handover = m * handover, step.gradients = part->gradients - passes.spared, step.update = part->update;
  step.host = m * (part->host.forward + part->host.backward) + part->host.update;
  cost.uneven += step.compute;
  set_interval(steady, 0.0, cost);
  cost.fill = fill * (sum_lower - slowest_lower) / std::max(1.0, stages - 1.0);
  // What is there once a step may fall into the time in which others fill the pipeline.
  busiest = std::max({busiest, cost.memory_time, cost.host_time});
  cost.lower = std::max(m * slowest_lower + cost.fill, busiest);
  cost.upper = m * slowest_upper + (stages - 1.0) / stages * sum_upper + end_upper + states;
  return cost;
}

void set_interval(const SteadyCost& steady, double seconds, TrainingCost& cost) {
  constexpr double rounding = 1e-12;  // sums in another order differ in their last bits
  StepParts& step = cost.parts;
  step.bubble = step.overhead = 0.0;
  if (const double waited = seconds - step.total(); waited > rounding * seconds) step.bubble = waited;
  step.overhead = steady.stragglers * step.total() + steady.fixed;
  cost.estimate = step.total();
}

const pipeline::PipelineInput& StepEvents::fill(const TrainingQuestion& question, const Strategy& strategy,
                                                const TrainingProfile& profile, const TrainingProfile* weights,
                                                const StageLinks& links, const pipeline::StageSplit& split,
                                                const pipeline::StageSplit& runs, const SteadyCost& stages) {
  const SteadyCost* priced = &stages;
  if (!(runs == split)) {
    runs_.layers = stages.layers, runs_.shared = stages.shared;
    runs_.embedding = stages.embedding, runs_.head = stages.head;
    runs_.hop = stages.hop, runs_.boundary_ideal = stages.boundary_ideal;
    fill_stages(question, strategy, profile, weights, links, runs, runs_);
    priced = &runs_;
  }
  input_.shape = {strategy.schedule, strategy.parallelism.pipeline, static_cast<std::int64_t>(stages.microbatches),
                  strategy.interleave};
  input_.times.clear(), input_.at_end.clear();
  for (const std::int16_t at : runs.part_of)
    input_.times.push_back(scheduled(priced->parts[static_cast<std::size_t>(at)], strategy).times);
  for (const std::int16_t at : split.part_of) {
    const SteadyCost::Part& part = stages.parts[static_cast<std::size_t>(at)];
    const double gradients = part.gradients - scheduled(part, strategy).spared;
    input_.at_end.emplace_back(std::max(0.0, gradients + part.update + part.host.update));
  }
  input_.transfer = Seconds(stages.hop), input_.transfer_blocks = true;
  return input_;
}

Result<StageLinks> strategy_links(const TrainingQuestion& question, const hardware::Cluster& cluster,
                                  const Strategy& strategy) {
  return stage_links(strategy.parallelism, strategy.layout, cluster,
                     question.collectives ? &*question.collectives : nullptr,
                     routing_of(*question.setup.model, question.setup.dispatch));
}

Result<SteadyCost> price_stages(const TrainingQuestion& question, std::int64_t sequence,
                                const hardware::Cluster& cluster, const Strategy& strategy,
                                const pipeline::StageSplit& split) {
  ASSAY_TRY(links, strategy_links(question, cluster, strategy));
  const TrainingProfile profile = make_profile(question.setup, profile_key(strategy, sequence));
  return steady_cost(question, strategy, profile, links, split);
}

namespace {

/// A strategy from scratch, stage by stage and event by event.
struct PricedStep {
  SteadyCost steady;
  StepEvents events;
  pipeline::PipelineInput input;  ///< of more stages than one
};
Result<PricedStep> price_step(const TrainingQuestion& question, std::int64_t sequence, const hardware::Cluster& cluster,
                              const Strategy& strategy) {
  const model::Transformer& model = *question.setup.model;
  const std::int64_t stages = strategy.parallelism.pipeline;
  ASSAY_TRY(links, strategy_links(question, cluster, strategy));
  const TrainingProfile profile = make_profile(question.setup, profile_key(strategy, sequence));
  const pipeline::StageSplit split = stage_split(model, strategy);
  PricedStep step;
  step.steady = steady_cost(question, strategy, profile, links, split);
  const pipeline::StageSplit runs = stage_runs(model, stages, strategy.schedule, strategy.interleave);
  step.input = step.events.fill(question, strategy, profile, nullptr, links, split, runs, step.steady);
  return step;
}

}  // namespace

Result<pipeline::PipelineInput> pipeline_input(const TrainingQuestion& question, std::int64_t sequence,
                                               const hardware::Cluster& cluster, const Strategy& strategy) {
  ASSAY_TRY(step, price_step(question, sequence, cluster, strategy));
  return std::move(step.input);
}

Result<TrainingCost> price_strategy(const TrainingQuestion& question, std::int64_t sequence,
                                    const hardware::Cluster& cluster, const Strategy& strategy) {
  ASSAY_TRY(step, price_step(question, sequence, cluster, strategy));
  TrainingCost cost = training_cost(step.steady, strategy);
  if (strategy.parallelism.pipeline > 1) set_interval(step.steady, step.events.interval(), cost);
  return cost;
}

}  // namespace assay::training

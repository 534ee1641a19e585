#include "assay/predict/training/step_list.h"

#include <fmt/format.h>

#include <algorithm>
#include <span>

#include "assay/base/index.h"
#include "assay/predict/training/pass_derivation.h"

namespace assay::training {
namespace {

/// Sets the times of one pass in the program of a strategy.
class PassTimes {
 public:
  PassTimes(const program::Program& program, const StageLinks& links, clock::StepTimes& times)
      : program_(program), links_(links), times_(times) {}

  void set(const RecordedPass& work, const RecordedPass& weights, const PassReading& read) {
    Seconds kernels;
    for (const PassRecord::Kernel& kernel : work.record.kernels) {
      clock::StepTime& time = times_.steps[at(carrier_of(work, kernel))];
      time.time = time.exposed = at_clock(kernel.price, read.avoided);
      kernels += time.time;
    }
    const std::span traffic(read.traffic);
    const std::size_t split = work.profile.traffic.size();
    for (const PassRecord::Collective& one : work.record.collectives) set_collective(work, traffic.first(split), one);
    for (const PassRecord::Collective& one : weights.record.collectives)
      set_collective(weights, traffic.subspan(split), one);
    if (work.profile.launching > Seconds())
      times_.host_waits[work.record.blocks.back()] =
          std::max(Seconds(), read.time.compute - read.time.copies - kernels);
  }

 private:
  /// The step in whose place a kernel runs: fused products of an input run when it is there, gradients when the last of
  /// what they read is. The others are parts of it.
  std::int32_t carrier_of(const RecordedPass& pass, const PassRecord::Kernel& kernel) {
    const auto find = [&](std::int32_t number) { return pass.steps.kernel(number, kernel.kind.is_recomputed); };
    const bool is_last = kernel.fused && kernel.fused->kind != kernel::JoinedProducts::Part::Kind::forward;
    const std::int32_t carrier = find(is_last ? kernel.steps.back() : kernel.steps.front());
    for (const std::int32_t number : kernel.steps) add_part(find(number), carrier);
    return carrier;
  }
  void add_part(std::int32_t step, std::int32_t carrier) {
    if (step == carrier) return;
    times_.steps[at(step)].part_of = carrier;
    times_.steps[at(carrier)].parts.push_back(step);
  }
  std::int32_t block_of(std::int32_t step) const {
    std::int32_t block = 0;
    while (step >= program_.blocks[at(block)].last) ++block;
    return block;
  }

  void set_collective(const RecordedPass& pass, std::span<const TrafficTime> read, const PassRecord::Collective& one) {
    const std::int32_t step = pass.steps.find(one.step, one.is_recomputed);
    if (step < 0) return;  // over axes of one device
    const Traffic& traffic = pass.profile.traffic.begin()[one.entry];
    if (traffic.urgency != program::Urgency::critical) {  // what a layer sends together is one collective
      const auto& all = pass.record.collectives;
      const auto first = std::find_if(all.begin(), all.end(), [&](const PassRecord::Collective& other) {
        return other.entry == one.entry && pass.steps.find(other.step, other.is_recomputed) >= 0;
      });
      const std::int32_t carrier = pass.steps.find(first->step, first->is_recomputed);
      if (carrier != step) return add_part(step, carrier);
    }
    const TrafficTime& all = read[one.entry];
    clock::StepTime& time = times_.steps[at(step)];
    time.links = links_.resources[traffic.over];
    time.time = all.each;
    time.exposed = all.exposed;
    time.waited = all.waited;
    time.copies = all.copies;
    time.is_background = all.is_background;
    if (!(time.waited < time.time)) return;
    const program::Block& block = program_.blocks[at(block_of(step))];
    if (traffic.beside > Flops())
      time.hidden_by = hiding_products(program_, block, step, traffic.overlaps_weight_gradients);
    else if (traffic.over & role_bit(Role::context))
      for (std::int32_t i = block.first; i < block.last; ++i)
        if (program::is_attention(program_.steps[at(i)].op)) time.hidden_by.push_back(i);
    for (std::int32_t& kernel : time.hidden_by)
      if (const std::int32_t carrier = times_.steps[at(kernel)].part_of; carrier >= 0) kernel = carrier;
  }

  const program::Program& program_;
  const StageLinks& links_;
  clock::StepTimes& times_;
};

}  // namespace

program::Program training_program(const TrainingQuestion& question, std::int64_t sequence, const Strategy& strategy) {
  const TrainingSetup& setup = question.setup;
  const lower::Parallelism& p = strategy.parallelism;
  lower::TrainingPlan plan;
  plan.work.sequences = strategy.micro_batch * p.data * p.fsdp;
  plan.work.queries = plan.work.keys = sequence;
  plan.work.source = setup.source_of(sequence);
  plan.work.flash = setup.flash;
  plan.work.expert_load = setup.expert_load;
  plan.microbatches = static_cast<std::int64_t>(microbatches(question, strategy));
  plan.formats = setup.formats;
  plan.recompute = question.setup.effects.executed(strategy.recompute);
  plan.optimizer = setup.optimizer;
  const auto [mesh, rules] = lower::training_stage(p, *setup.model);
  return lower::lower_training(*setup.model, mesh, rules, plan);
}

std::string resource_of(const program::Program& program, const program::Step& step) {
  if (program::is_collective(step.op)) return fmt::format("net {}", program::axes_text(program.mesh, step.axes));
  return step.flops.value() > 0.0 ? "math" : "memory";
}

Result<clock::StepTimes> training_step_times(const TrainingQuestion& question, std::int64_t sequence,
                                             const hardware::Cluster& cluster, const Strategy& strategy,
                                             const program::Program& program) {
  ASSAY_TRY(links, strategy_links(question, cluster, strategy));
  const TrainingSetup& setup = question.setup;
  const RecordedStep recorded(setup, sequence, strategy, program);
  clock::StepTimes times;
  times.steps.resize(program.steps.size());
  times.host_waits.resize(program.blocks.size());
  times.chip_share = setup.effects.overlap.chip_share;
  PassTimes passes(program, links, times);
  for (const RecordedStep::Place& place : recorded.places())
    for (const program::Phase phase : {program::Phase::forward, program::Phase::backward}) {
      const auto [work, weights] = recorded.pass(place, phase);
      const std::span more(weights.profile.traffic.begin(), weights.profile.traffic.size());
      passes.set(work, weights, read_pass(work.profile, more, links, question.overlap, setup));
    }
  // Weights are cast and updated as a whole.
  for (std::size_t i = 0; i < program.steps.size(); ++i) {
    const program::Step& step = program.steps[i];
    const auto rate = step.op == program::Op::update        ? update_rate(Plain{}, setup)
                      : kernel::casts_weight(program, step) ? kernel::stream_rate(Plain{}, setup.rates)
                                                            : BytesPerSecond();
    if (rate > BytesPerSecond()) times.steps[i].time = times.steps[i].exposed = step.bytes / rate;
  }
  return times;
}

Result<std::vector<KindTime>> kind_times(const TrainingQuestion& question, std::int64_t sequence,
                                         const hardware::Cluster& cluster, const Strategy& strategy) {
  const program::Program program = training_program(question, sequence, strategy);
  ASSAY_TRY(step_times, training_step_times(question, sequence, cluster, strategy, program));
  const auto stages = static_cast<double>(strategy.parallelism.pipeline);
  const double each = microbatches(question, strategy) / stages;
  const bool is_mirrored = stages > 1.0 && layout_of(strategy.schedule) == clock::StageLayout::mirrored;
  const clock::StageSplit split = stage_split(*question.setup.model, strategy);
  std::vector<KindTime> all;
  for (const program::Block& block : program.blocks) {
    auto layers = static_cast<double>(block.layers);
    if (block.is_shared) {  // once on every stage that has such layers
      layers = 0.0;
      for (const clock::StageSplit::Part& part : split.parts)
        if (part.layers[static_cast<std::size_t>(block.kind)] > 0) layers += part.stages;
    }
    const double copies = is_mirrored && !block.is_shared ? 2.0 : 1.0;
    for (std::int32_t i = block.first; i < block.last; ++i) {
      const program::Step& step = program.steps[static_cast<std::size_t>(i)];
      const bool moves = program::is_collective(step.op);
      if (step.op == program::Op::slice || (block.phase == program::Phase::update && !moves))
        continue;  // the update is priced as a whole
      std::string kind =
          moves ? resource_of(program, step) : std::string(program::kernel_group(program::facts(step.op).cost));
      const std::string_view phase = step.is_recomputed ? "recomputed forward" : program::name(block.phase);
      auto found = std::find_if(all.begin(), all.end(),
                                [&](const KindTime& one) { return one.phase == phase && one.kind == kind; });
      if (found == all.end()) found = all.insert(all.end(), {phase, std::move(kind), moves, {}, {}, {}});
      const double times = layers * (step.once || block.phase == program::Phase::update ? copies / stages : each);
      found->time += times * step_times.steps[static_cast<std::size_t>(i)].time;
      if (moves) continue;
      found->flops += times * step.flops;
      if (program::is_attention(step.op) || step.op == program::Op::product)
        found->at_peak += times * kernel::ideal_kernel_time(Plain{}, question.setup.rates, program, step).compute;
    }
  }
  if (is_mirrored) {
    ASSAY_TRY(microbatch, price_stages(question, sequence, cluster, strategy, split));
    Seconds copies;
    for (const MicrobatchCost::Part& part : microbatch.parts) copies += part.stages / stages * part.copies;
    all.push_back({program::name(program::Phase::backward), "net P", true, copies, {}, {}});
  }
  std::erase_if(all, [](const KindTime& one) { return !(one.time > Seconds(0)); });
  return all;
}

}  // namespace assay::training

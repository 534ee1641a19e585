#include "assay/training/step_list.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

namespace assay::training {
namespace {

/// Background traffic is sent once per layer: bytes of all collectives of a block that are merged with this one.
double bucket_bytes(const program::Program& program, const program::Block& block, const Traffic& one) {
  PassProfile together;
  for (std::int32_t i = block.first; i < block.last; ++i) {
    const program::Step& step = program.steps[static_cast<std::size_t>(i)];
    if (program::is_collective(step.op)) together.add(step_traffic(program, block, i));
  }
  for (const Traffic& bucket : together.traffic)
    if (bucket.goes_with(one)) return bucket.bytes;
  return one.bytes;
}

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

Result<estimate::StepTimes> training_step_times(const TrainingQuestion& question, std::int64_t sequence,
                                                const hardware::Cluster& cluster, const Strategy& strategy,
                                                const program::Program& program) {
  ASSAY_TRY(links, strategy_links(question, cluster, strategy));
  const TrainingProfile profile = make_profile(question.setup, profile_key(strategy, sequence));
  MicrobatchCost microbatch;
  fill_passes({question, strategy, profile, nullptr, links}, microbatch);
  const auto pass_of = [&](const program::Block& block) -> const PassTime* {
    if (block.phase == program::Phase::update) return nullptr;
    const auto& passes = block.kind >= 0             ? microbatch.layers[static_cast<std::size_t>(block.kind)]
                         : block.name == "embedding" ? microbatch.embedding
                                                     : microbatch.head;
    return &passes[block.phase == program::Phase::forward ? 0 : 1];
  };
  estimate::StepTimes times;
  times.estimate.resize(program.steps.size());
  std::map<const PassTime*, double> sums;
  for (const program::Block& block : program.blocks)
    for (std::int32_t i = block.first; i < block.last; ++i) {
      const program::Step& step = program.steps[static_cast<std::size_t>(i)];
      Seconds& time = times.estimate[static_cast<std::size_t>(i)];
      if (program::is_collective(step.op)) {
        const Traffic traffic = step_traffic(program, block, i);
        const double all =
            traffic.urgency == program::Urgency::critical ? traffic.bytes : bucket_bytes(program, block, traffic);
        const double share = all > 0.0 ? traffic.bytes / all : 0.0, bytes = all / links.ways(traffic.divided);
        time = Seconds(share * links.forms[traffic.over][StageLinks::line_of(traffic.kind)].seconds(bytes, 1.0));
      } else if (step.op == program::Op::update) {  // of all weights at once
        time = step.bytes / estimate::optimizer_rate(question.setup.rates);
      } else if (step.op != program::Op::slice) {
        time = estimate::price(Plain{}, program, step, training_kernels(question.setup)).duration;
        if (const PassTime* pass = pass_of(block)) sums[pass] += time.value();
      }
    }
  for (const program::Block& block : program.blocks) {
    const PassTime* pass = pass_of(block);
    if (!pass || !(sums[pass] > 0.0)) continue;
    for (std::int32_t i = block.first; i < block.last; ++i)
      if (!program::is_collective(program.steps[static_cast<std::size_t>(i)].op))
        times.estimate[static_cast<std::size_t>(i)] *= (pass->compute - pass->copies) / sums[pass];
  }
  return times;
}

Result<std::vector<KindTime>> kind_times(const TrainingQuestion& question, std::int64_t sequence,
                                         const hardware::Cluster& cluster, const Strategy& strategy) {
  const program::Program program = training_program(question, sequence, strategy);
  ASSAY_TRY(step_times, training_step_times(question, sequence, cluster, strategy, program));
  const auto stages = static_cast<double>(strategy.parallelism.pipeline);
  const double each = microbatches(question, strategy) / stages;
  const bool is_mirrored = stages > 1.0 && layout_of(strategy.schedule) == pipeline::StageLayout::mirrored;
  const pipeline::StageSplit split = stage_split(*question.setup.model, strategy);
  std::vector<KindTime> all;
  for (const program::Block& block : program.blocks) {
    auto layers = static_cast<double>(block.layers);
    if (block.is_shared) {  // once on every stage that has such layers
      layers = 0.0;
      for (const pipeline::StageSplit::Part& part : split.parts)
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
      found->time += times * step_times.estimate[static_cast<std::size_t>(i)];
      if (moves) continue;
      found->flops += times * step.flops;
      if (program::is_attention(step.op) || step.op == program::Op::product)
        found->at_peak += times * estimate::ideal_kernel_time(Plain{}, question.setup.rates, program, step).compute;
    }
  }
  if (is_mirrored) {
    ASSAY_TRY(microbatch, price_stages(question, sequence, cluster, strategy, split));
    Seconds copies;
    for (const MicrobatchCost::Part& part : microbatch.parts) copies += Seconds(part.stages / stages * part.copies);
    all.push_back({program::name(program::Phase::backward), "net P", true, copies, {}, {}});
  }
  std::erase_if(all, [](const KindTime& one) { return !(one.time > Seconds(0)); });
  return all;
}

}  // namespace assay::training

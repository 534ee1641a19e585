#include "assay/predict/training/step_list.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "assay/predict/training/pass_time.h"

namespace assay::training {
namespace {

/// Background traffic is sent once per layer: bytes of all collectives of a block that are merged with this one.
Bytes bucket_bytes(const program::Program& program, const program::Block& block, const Traffic& one) {
  PassProfile together;
  for (std::int32_t i = block.first; i < block.last; ++i) {
    const program::Step& step = program.steps[static_cast<std::size_t>(i)];
    if (program::is_collective(step.op)) together.add(step_traffic(program, block, i));
  }
  for (const Traffic& bucket : together.traffic)
    if (bucket.goes_with(one)) return bucket.bytes;
  return one.bytes;
}

/// The collective by itself, with its part of a bucket.
Seconds own_time(const program::Program& program, const program::Block& block, const Traffic& traffic,
                 const StageLinks& links) {
  const Bytes all =
      traffic.urgency == program::Urgency::critical ? traffic.bytes : bucket_bytes(program, block, traffic);
  const double share = all > Bytes() ? traffic.bytes / all : 0.0;
  return share * collective::collective_time(Plain{}, links.form(traffic.over, traffic.kind),
                                             all / links.ways(traffic.divided));
}

/// The profile of a block's pass; nullptr for updates.
const PassProfile* profile_of(const TrainingProfile& profile, const program::Block& block) {
  if (block.phase == program::Phase::update || block.is_shared) return nullptr;
  const LayerProfile& layer = block.kind >= 0             ? profile.kinds[static_cast<std::size_t>(block.kind)]
                              : block.name == "embedding" ? profile.embedding
                                                          : profile.head;
  return block.phase == program::Phase::forward ? &layer.forward : &layer.backward;
}

/// Assigns collectives of a block to the entries of its profile's traffic.
class TrafficSteps {
 public:
  TrafficSteps(const TrafficList& traffic, const StageLinks& links) : traffic_(traffic), times_(traffic.size()) {
    for (std::size_t r = 0; r < roles; ++r)
      if (links.size[r] > 1.0) split_ |= static_cast<RoleSet>(1u << r);
    for (const Traffic& entry : traffic) left_.push_back(entry.count);
  }

  /// The entry that counts a collective which takes `own`, the most similar one that is not complete; below 0: none.
  int assign(const Traffic& one, Seconds own) {
    int best = -1, score = -1;
    for (std::size_t e = 0; e < traffic_.size(); ++e) {
      const Traffic& entry = traffic_.begin()[e];
      const bool is_critical = one.urgency == program::Urgency::critical;
      if (entry.kind != one.kind || ((entry.over ^ one.over) & split_) || entry.urgency != one.urgency ||
          entry.once != one.once || (is_critical && left_[e] < 0.5))
        continue;
      const int alike = 4 * (entry.bytes * one.count == one.bytes * entry.count) + 2 * (entry.divided == one.divided) +
                        2 * (entry.overlaps_weight_gradients == one.overlaps_weight_gradients) +
                        (entry.beside * one.count == one.beside * entry.count);
      if (alike > score) best = static_cast<int>(e), score = alike;
    }
    if (best < 0) return best;
    left_[static_cast<std::size_t>(best)] -= 1.0;
    times_[static_cast<std::size_t>(best)] += own;
    return best;
  }
  Seconds time(std::size_t entry) const { return times_[entry]; }  ///< of all collectives assigned to it

 private:
  const TrafficList& traffic_;
  RoleSet split_ = 0;  ///< roles of several devices: profiles have collectives over the others, too
  std::vector<double> left_;
  std::vector<Seconds> times_;
};

/// Times of the collectives of one pass, of one block or several: each has its share of what its entry of the traffic
/// takes and adds.
void set_collectives(const program::Program& program, const std::vector<program::Block>& blocks,
                     const PassProfile& pass, const PassReading& read, const StageLinks& links,
                     kernel::StepTimes& times) {
  TrafficSteps assigned(pass.traffic, links);
  struct Entry {
    const program::Block& block;
    std::int32_t step;
    std::size_t entry;
  };
  std::vector<Entry> entries;
  for (const program::Block& block : blocks)
    for (std::int32_t i = block.first; i < block.last; ++i) {
      const program::Step& step = program.steps[static_cast<std::size_t>(i)];
      if (!program::is_collective(step.op) || step.once) continue;
      const Traffic traffic = step_traffic(program, block, i);
      kernel::StepTime& time = times.steps[static_cast<std::size_t>(i)];
      time.links = links.resources[traffic.over];
      if (const int entry = assigned.assign(traffic, time.time); entry >= 0)
        entries.push_back({block, i, static_cast<std::size_t>(entry)});
    }
  for (const auto& [block, i, entry] : entries) {
    kernel::StepTime& time = times.steps[static_cast<std::size_t>(i)];
    const TrafficTime& all = read.traffic[entry];
    const double share = assigned.time(entry) > Seconds() ? time.time / assigned.time(entry) : 0.0;
    time.time = share * all.seconds;
    time.exposed = share * all.exposed;
    time.copies = share * all.copies;
    time.is_background = all.is_background;
    const Traffic& traffic = pass.traffic.begin()[entry];
    if (time.exposed < time.time && traffic.beside > Flops())
      time.beside = hiding_products(program, block, i, traffic.overlaps_weight_gradients);
    else if (time.exposed < time.time && traffic.over & role_bit(Role::context))
      for (std::int32_t k = block.first; k < block.last; ++k)
        if (program::is_attention(program.steps[static_cast<std::size_t>(k)].op)) time.beside.push_back(k);
  }
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

Result<kernel::StepTimes> training_step_times(const TrainingQuestion& question, std::int64_t sequence,
                                              const hardware::Cluster& cluster, const Strategy& strategy,
                                              const program::Program& program) {
  ASSAY_TRY(links, strategy_links(question, cluster, strategy));
  const TrainingProfile profile = make_profile(question.setup, profile_key(strategy, sequence));
  kernel::StepTimes times;
  times.steps.resize(program.steps.size());
  times.chip_share = question.setup.effects.overlap.chip_share;
  struct Pass {
    double kernels = 0, slowed = 0;
    std::vector<program::Block> blocks;  // several where an encoder has ends of its own
  };
  std::map<const PassProfile*, Pass> passes;
  std::vector<double> slowed(program.steps.size(), 0.0);
  for (const program::Block& block : program.blocks) {
    Pass& pass = passes[profile_of(profile, block)];
    pass.blocks.push_back(block);
    for (std::int32_t i = block.first; i < block.last; ++i) {
      const program::Step& step = program.steps[static_cast<std::size_t>(i)];
      kernel::StepTime& time = times.steps[static_cast<std::size_t>(i)];
      if (program::is_collective(step.op)) {
        time.time = own_time(program, block, step_traffic(program, block, i), links);
      } else if (step.op == program::Op::update) {  // of all weights at once
        time.exposed = time.time = step.bytes / update_rate(Plain{}, question.setup);
      } else if (step.op != program::Op::slice) {
        const auto price = kernel::price(Plain{}, program, step, training_kernels(question.setup));
        time.exposed = time.time = price.duration;
        slowed[static_cast<std::size_t>(i)] = price.slowed.value();
        pass.kernels += time.time.value();
        pass.slowed += price.slowed.value();
      }
    }
  }
  for (const auto& [of, pass] : passes) {
    if (!of) continue;
    const PassReading read = read_pass(*of, links, question.overlap, question.setup);
    set_collectives(program, pass.blocks, *of, read, links, times);
    if (!(pass.kernels > 0.0)) continue;
    // A higher clock speeds up products; joined products and launches change the pass as a whole.
    const double whole = (read.time.compute - read.time.copies).value();
    const double spared = pass.slowed > 0.0 ? std::clamp(of->estimate.value() - whole, 0.0, pass.slowed) : 0.0;
    const double scale = whole / (pass.kernels - spared);
    for (const program::Block& block : pass.blocks)
      for (std::int32_t i = block.first; i < block.last; ++i) {
        const auto at = static_cast<std::size_t>(i);
        kernel::StepTime& time = times.steps[at];
        if (program::is_collective(program.steps[at].op)) continue;
        const double faster = spared > 0.0 ? spared * slowed[at] / pass.slowed : 0.0;
        time.exposed = time.time = scale * (time.time - Seconds(faster));
      }
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

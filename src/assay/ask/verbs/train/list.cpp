#include "assay/ask/verbs/train/train.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "assay/ask/draw/timeline/timeline_scene.h"
#include "assay/base/text.h"
#include "assay/predict/roofline/operation.h"
#include "assay/predict/training/limits.h"
#include "assay/predict/training/memory_curve.h"
#include "assay/predict/training/step_list.h"

namespace assay::verbs::train {
namespace {

struct Timed {
  program::Program program;
  clock::StepTimes times;
  clock::HostCopies copies;  ///< of a layer
};

/// What one layer of the decoder's first kind copies to its host and back.
clock::HostCopies copies_of(const TrainQuery& query, const training::Strategy& strategy) {
  if (!training::moves_activations(strategy.offload)) return {};
  const training::TrainingProfile profile =
      training::make_profile(query.question.setup, training::profile_key(strategy, query.sequence));
  const training::HostLink& host = query.question.host;
  const Bytes kept =
      profile.kinds.front().kept * training::kept_over_fewest(query.question.setup.effects, strategy.recompute);
  return {host.copy(kept, Bytes()) / host.share, host.copy(Bytes(), kept) / host.share};
}

Result<Timed> timed_program(const TrainQuery& query, const training::Strategy& strategy) {
  Timed out{training::training_program(query.question, query.sequence, strategy), {}, copies_of(query, strategy)};
  ASSAY_SET(out.times,
            training::training_step_times(query.question, query.sequence, query.cluster, strategy, out.program));
  return out;
}

std::string_view urgency_text(const program::Step& step) {
  if (step.once) return "once a step";
  switch (step.urgency) {
    case program::Urgency::ahead:
      return "ahead";
    case program::Urgency::afterwards:
      return "afterwards";
    default:
      return "";
  }
}

/// "F3": the forward pass of the fourth microbatch; "F3.1" through the stage's second part of the model.
std::string event_name(const clock::PipelineEvent& event, bool in_parts) {
  constexpr std::string_view words[] = {"F", "B", "W", "B", "send ", "reduce gradients, update"};
  std::string text(words[static_cast<std::size_t>(event.work)]);
  if (event.work == clock::PipelineWork::at_end) return text;
  text += fmt::format("{}", event.microbatch);
  return in_parts ? text + fmt::format(".{}", event.chunk) : text;
}

/// Adds what each stage does when, a lane each.
void add_stages(const SimulatedStep& step, draw::Timeline& timeline) {
  const std::size_t lane = timeline.lanes.size();
  const auto colour = static_cast<int>(timeline.classes.size());
  // Phases of arithmetic are shades of its colour.
  timeline.classes.insert(timeline.classes.end(), {{"forward", draw::arithmetic_colour, 1.5},
                                                   {"backward", draw::arithmetic_colour, 0.8},
                                                   {"weight gradients", draw::arithmetic_colour, 0.4},
                                                   {"send", draw::network_colour},
                                                   {"end of the step", draw::fixed_cost_colour}});
  for (std::int64_t i = 0; i < step.shape.stages; ++i) timeline.lanes.push_back({fmt::format("stage {}", i)});
  const auto colour_of = [](clock::PipelineWork work) {
    switch (work) {
      case clock::PipelineWork::forward:
        return 0;
      case clock::PipelineWork::backward_weight:
        return 2;
      case clock::PipelineWork::send:
        return 3;
      case clock::PipelineWork::at_end:
        return 4;
      default:
        return 1;
    }
  };
  for (const clock::PipelineEvent& event : step.run.events)
    timeline.bars.push_back({lane + static_cast<std::size_t>(event.stage), event.start, event.end,
                             event_name(event, clock::chunks_per_stage(step.shape) > 1),
                             colour + colour_of(event.work)});
}

const training::MemoryMoment& fullest_of(const std::vector<training::MemoryMoment>& curve) {
  return *std::max_element(curve.begin(), curve.end(),
                           [](const training::MemoryMoment& a, const training::MemoryMoment& b) {
                             return a.memory.allocated() < b.memory.allocated();
                           });
}

/// Adds what the fullest stage has allocated when.
void add_memory(const SimulatedStep& step, draw::Timeline& timeline) {
  const training::MemoryMoment& fullest = fullest_of(step.memory);
  draw::TimelineCounter allocated{fmt::format("allocated on stage {}, bytes", fullest.memory.stage), {}};
  for (const training::MemoryMoment& moment : step.memory)
    allocated.points.push_back({moment.at, moment.memory.allocated().value()});
  timeline.marks.push_back(
      {fullest.at, fmt::format("peak of stage {}: {}", fullest.memory.stage, human(fullest.memory.allocated()))});
  timeline.counters.push_back(std::move(allocated));
}

/// "does not fit: 188.7 GB of 80 GiB; " above what needs more memory than there is.
std::string lacks_memory_text(const TrainQuery& query, const search::Candidate& best) {
  if (memory_verdict(query, best.cost) != MemoryVerdict::no) return "";
  const Bytes total = best.cost.memory.total(), capacity = query.cluster.chip.hbm().capacity.value;
  return total > capacity ? fmt::format("does not fit: {} of {}; ", human(total), human(capacity))
                          : "does not fit into the memory of the host; ";
}

/// What of a step's time the drawn passes leave out, or what they have more because no step follows.
std::string drawn_text(Seconds drawn, Seconds price) {
  constexpr double visible = 1e-3;
  if (std::abs(drawn / price - 1.0) < visible) return "";
  return drawn < price ? fmt::format("; {} of it, fixed costs and waiting for the slowest chip, are not drawn",
                                     human(Seconds(price - drawn)))
                       : fmt::format("; drawn alone it takes {} more, which the next step overlaps",
                                     human(Seconds(drawn - price)));
}

draw::Timeline pipeline_timeline(const TrainQuery& query, const search::Candidate& best, const SimulatedStep& step) {
  draw::Timeline timeline;
  timeline.title = fmt::format("{} on {}: the pipeline of one step", query.imported.model.id, query.cluster.text);
  timeline.subtitle = fmt::format("{}{}: {} per step, {:.1f} % of it bubble{}", lacks_memory_text(query, best),
                                  clock::schedule_name(best.strategy.schedule), human(best.cost.estimate),
                                  100.0 * (best.cost.parts.bubble / best.cost.estimate),
                                  drawn_text(step.run.makespan, best.cost.estimate));
  add_stages(step, timeline);
  add_memory(step, timeline);
  return timeline;
}

/// What each resource does during two layers forward and one backward, so that gathering ahead is seen.
draw::Timeline layer_timeline(const TrainQuery& query, const search::Candidate& best, const Timed& timed) {
  const program::Program& program = timed.program;
  std::vector<program::Block> blocks;
  const program::Block *forward = nullptr, *backward = nullptr;
  for (const program::Block& block : program.blocks) {
    if (block.kind != program.blocks[1].kind || block.is_shared) continue;
    if (block.phase == program::Phase::forward) forward = &block;
    if (block.phase == program::Phase::backward) backward = &block;
  }
  if (forward) blocks = {*forward, *forward};
  if (backward) blocks.push_back(*backward);
  const clock::OverlapSchedule schedule = clock::schedule_blocks(program, blocks, timed.times, timed.copies);
  draw::Timeline timeline;
  timeline.title =
      fmt::format("{} on {}: two layers forward, one backward", query.imported.model.id, query.cluster.text);
  timeline.subtitle = lacks_memory_text(query, best) +
                      program::mesh_text(training::whole_mesh(best.strategy.parallelism, best.strategy.layout));
  timeline.lanes.push_back({"chip"});
  for (program::AxisSet axes : schedule.lanes)
    timeline.lanes.push_back({fmt::format("net {}", program::axes_text(program.mesh, axes))});
  timeline.classes = {{"arithmetic", draw::arithmetic_colour},
                      {"memory", draw::memory_colour},
                      {"collective", draw::network_colour},
                      {"recomputed forward", draw::arithmetic_colour, 0.4}};
  for (const clock::ScheduledStep& done : schedule.steps) {
    const program::Step& step = program.steps[static_cast<std::size_t>(done.step)];
    const bool is_copy = program::is_collective(step.op) && done.lane == 0;
    const int colour = done.lane > 0 ? 2 : is_copy ? 1 : step.is_recomputed ? 3 : step.flops.value() > 0.0 ? 0 : 1;
    const int named = step.out[0] >= 0 ? step.out[0] : step.in[0];
    const program::ProgramTensor& tensor = program.tensor(named);
    timeline.bars.push_back({static_cast<std::size_t>(done.lane), done.start, done.end,
                             fmt::format("{}{}{}", is_copy ? "copy " : "", tensor.is_gradient ? "d" : "", tensor.name),
                             colour, done.alone});
  }
  if (schedule.copies.empty()) return timeline;
  timeline.classes.emplace_back("copy", draw::fixed_cost_colour);
  const std::size_t out = timeline.lanes.size();
  timeline.lanes.push_back({"to host"}), timeline.lanes.push_back({"from host"});
  for (const clock::ScheduledCopy& copy : schedule.copies)
    timeline.bars.push_back({copy.in ? out + 1 : out, copy.start, copy.end, "activations", 4});
  return timeline;
}

}  // namespace

std::string strategy_text(const training::Strategy& s) {
  std::string text;
  const auto part = [&](std::string_view word, std::int64_t n) {
    if (n > 1) text += fmt::format("{}{} {}", text.empty() ? "" : ", ", word, n);
  };
  const lower::Parallelism& p = s.parallelism;
  part("dp", p.data);
  part("fsdp", p.fsdp);
  part("tp", p.tensor);
  part("cp", p.context);
  part("ep", p.expert);
  if (p.expert_others() > 1) text += fmt::format(" over {}", lower::expert_axes_text(p));
  part("pp", p.pipeline);
  if (text.empty()) text = "one chip";
  if (p.zero > 0) text += fmt::format(", zero {}", p.zero);
  if (p.residual == lower::ResidualScheme::sequence && p.tensor > 1) text += ", sequence-parallel";
  if (p.context > 1 && p.context_scheme == lower::ContextScheme::exchange) text += ", all-to-all context";
  text += fmt::format(", micro-batch {}", s.micro_batch);
  if (p.pipeline > 1) text += fmt::format(", {}", clock::schedule_name(s.schedule));
  if (s.interleave > 1) text += fmt::format(" x{}", s.interleave);
  if (s.recompute != lower::Recompute::none()) text += fmt::format(", recompute {}", lower::name(s.recompute));
  if (s.offload != training::Offload::none) text += fmt::format(", offload {}", training::name(s.offload));
  return text;
}

report::Members program_totals(const TrainQuery& query, const training::Strategy& strategy) {
  const program::ProgramCount sum =
      program::count(training::training_program(query.question, query.sequence, strategy));
  const auto stages = static_cast<double>(strategy.parallelism.pipeline);  // the mean of what they do
  return {{"flops", sum.flops / stages},
          {"product_flops", sum.product_flops / stages},
          {"attention_flops", sum.attention_flops / stages},
          {"repeated_flops", sum.recomputed_flops / stages},
          {"memory_bytes", sum.memory / stages},
          {"collective_bytes", sum.network / stages}};
}

Result<report::Items> kind_rows(const TrainQuery& query, const training::Strategy& strategy) {
  ASSAY_TRY(all, training::kind_times(query.question, query.sequence, query.cluster, strategy));
  return report::rows_of(all, [&](const training::KindTime& one) {
    report::Members row{{"phase", one.phase}, {"kind", one.kind}, {"time", one.time}};
    const bool counts = one.kind == "products" || one.kind == "attention";
    row.emplace_back("flops", counts ? report::Value(one.flops) : report::Value());
    row.emplace_back("share_of_peak", counts ? report::Value(one.share_of_peak()) : report::Value());
    return row;
  });
}

Result<report::Items> program_rows(const TrainQuery& query, const training::Strategy& strategy) {
  ASSAY_TRY(timed, timed_program(query, strategy));
  const program::Program& program = timed.program;
  const std::int64_t stages = strategy.parallelism.pipeline;
  std::vector<std::int64_t> lines(program.steps.size());
  std::int64_t last = 0;
  for (const program::Block& block : program.blocks)
    for (std::int32_t i = block.first; i < block.last; ++i) lines[static_cast<std::size_t>(i)] = ++last;
  report::Items rows;
  for (const program::Block& block : program.blocks) {
    const std::string where = fmt::format("{} {}{}{}", block.name, program::name(block.phase),
                                          block.layers > 1 ? fmt::format(" x{}", block.layers) : "",
                                          block.layers > 1 && stages > 1 ? fmt::format(" over {} stages", stages) : "");
    for (std::int32_t i = block.first; i < block.last; ++i) {
      const program::Step& step = program.steps[static_cast<std::size_t>(i)];
      const bool moves = program::is_collective(step.op);
      report::Members row{{"line", lines[static_cast<std::size_t>(i)]},
                          {"block", where},
                          {"text", program::step_text(program, step)},
                          {"critical", step.urgency == program::Urgency::critical && !step.once},
                          {"when", urgency_text(step)},
                          {"resource", training::resource_of(program, step)},
                          {"kind", program::name(step)}};
      row.emplace_back("flops", moves ? report::Value() : report::Value(step.flops));
      row.emplace_back("bytes", step.bytes);
      const clock::StepTime& time = timed.times.steps[static_cast<std::size_t>(i)];
      const bool in_pass = !step.once && (block.phase != program::Phase::update || !moves);
      const bool is_part = time.part_of >= 0;
      row.emplace_back("time", is_part ? report::Value() : report::Value(time.time));
      row.emplace_back("exposed", in_pass && !is_part ? report::Value(time.exposed + time.copies) : report::Value());
      row.emplace_back("part_of",
                       is_part ? report::Value(lines[static_cast<std::size_t>(time.part_of)]) : report::Value());
      rows.emplace_back(std::move(row));
    }
    const Seconds wait = timed.times.host_waits[static_cast<std::size_t>(&block - program.blocks.data())];
    if (!(wait > Seconds())) continue;
    rows.emplace_back(report::Members{{"line", report::Value()},
                                      {"block", where},
                                      {"text", "wait for the host to launch kernels"},
                                      {"critical", true},
                                      {"when", ""},
                                      {"resource", "host"},
                                      {"kind", "launch"},
                                      {"flops", report::Value()},
                                      {"bytes", Bytes(0)},
                                      {"time", wait},
                                      {"exposed", wait},
                                      {"part_of", report::Value()}});
  }
  return rows;
}

std::string why_slower(const training::TrainingCost& best, const training::TrainingCost& other) {
  const training::SlowerPart worst = training::slowest_difference(best, other);
  if (worst.time <= Seconds(0)) return "equal";
  return fmt::format("{} (+{})", worst.name, human(worst.time));
}

Result<SimulatedStep> simulated_step(const TrainQuery& query, const search::Candidate& best, bool of_every_stage) {
  ASSAY_TRY(input, training::pipeline_input(query.question, query.sequence, query.cluster, best.strategy));
  ASSAY_TRY(run, clock::simulate_pipeline(input, of_every_stage ? clock::every_stage : best.cost.memory.stage));
  const clock::StageSplit split = training::stage_split(query.imported.model, best.strategy);
  ASSAY_TRY(microbatch, training::price_stages(query.question, query.sequence, query.cluster, best.strategy, split));
  SimulatedStep step{input.shape, std::move(run), {}};
  step.memory = training::memory_curve(microbatch, split, step.shape, step.run.events, best.cost.memory.stage);
  return step;
}

report::Items memory_rows(const SimulatedStep& step) {
  const std::vector<training::MemoryMoment>& curve = step.memory;
  const training::MemoryMoment* last_back = &curve.front();
  for (const training::MemoryMoment& moment : curve)
    if (moment.memory.head + moment.memory.workspace > Bytes()) last_back = &moment;
  report::Items rows;
  const auto add = [&](std::string_view when, const training::MemoryMoment& moment) {
    const training::MemoryParts& m = moment.memory;
    rows.emplace_back(report::Members{{"moment", when},
                                      {"time", moment.at},
                                      {"microbatches_held", moment.held},
                                      {"states", m.weights + m.gradients + m.master + m.moments},
                                      {"activations", m.activations},
                                      {"logits_and_workspace", m.head + m.workspace},
                                      {"communication_buffers", m.buffers},
                                      {"allocated", m.allocated()}});
  };
  add("first forward pass", curve.front());
  add("fullest", fullest_of(curve));
  add("last backward pass", *last_back);
  add("gradients reduced, weights updated", curve.back());
  return rows;
}

Result<draw::Timeline> step_timeline(const TrainQuery& query, const search::Candidate& best,
                                     const SimulatedStep& step) {
  if (best.strategy.parallelism.pipeline > 1) return pipeline_timeline(query, best, step);
  ASSAY_TRY(timed, timed_program(query, best.strategy));
  draw::Timeline timeline = layer_timeline(query, best, timed);
  add_stages(step, timeline);
  add_memory(step, timeline);
  return timeline;
}

draw::Scene training_picture(const TrainQuery& query, const search::Candidate& best,
                             const Result<SimulatedStep>& step) {
  if (best.strategy.parallelism.pipeline > 1 && step) return draw::draw_timeline(pipeline_timeline(query, best, *step));
  const auto timed = timed_program(query, best.strategy);
  return draw::draw_timeline(timed ? layer_timeline(query, best, *timed) : draw::Timeline{});
}

}  // namespace assay::verbs::train

#include "assay/training/step_derivation.h"

#include <fmt/format.h>

#include <array>
#include <map>
#include <utility>

#include "assay/base/index.h"
#include "assay/pipeline/critical_path.h"
#include "assay/training/kernel_derivation.h"
#include "assay/training/link_derivation.h"
#include "assay/training/memory_formulas.h"
#include "assay/training/stage_formulas.h"
#include "assay/training/step_list.h"

namespace assay::training {
namespace {

using TracedTime = NumberOf<Traced, Seconds>;
using TracedPasses = std::array<PassParts<Traced>, 2>;

/// Names what a pass takes by kind.
void name_parts(const Traced& num, const std::string& pass, PassParts<Traced>& parts) {
  using Parts = PassParts<Traced>;
  const std::pair<TracedTime Parts::*, const char*> kinds[] = {{&Parts::compute, ""},
                                                               {&Parts::tensor, " tensor collectives"},
                                                               {&Parts::context, " context collectives"},
                                                               {&Parts::expert, " expert collectives"},
                                                               {&Parts::exposed, " weights traffic"},
                                                               {&Parts::gradients, " gradients"},
                                                               {&Parts::new_weights, " new weights"}};
  for (const auto& [part, kind] : kinds) parts.*part = num.named(pass + kind, parts.*part);
}

/// Everything that is derived for one strategy.
class StepDeriver {
 public:
  StepDeriver(const Traced& num, const PricedStrategy& priced, const StepInputs& inputs, const DerivedLinks& links,
              const pipeline::StageSplit& split)
      : num_(num),
        inputs_(inputs),
        links_(links),
        split_(split),
        setup_(inputs.question.setup),
        program_(training_program(priced.question, priced.sequence, priced.strategy)),
        bytes_(inputs.question, inputs.strategy, inputs.links),
        formulas_(num, inputs, bytes_, links),
        memory_(num, inputs, bytes_, *this) {}

  /// The times of a stage.
  StageParts<Traced> stage(const pipeline::StageSplit::Part& part) {
    PassParts<Traced> forward, backward;
    const auto add = [&](const TracedPasses& passes, double times, double held) {
      forward.add(num_, passes[0], times, held);
      backward.add(num_, passes[1], times, held);
    };
    const TrainingProfile& profile = inputs_.profile;
    for (std::size_t k = 0; k < profile.kinds.size(); ++k)
      if (const double held = part.layers[k]; held > 0.0)
        add(passes(blocks_of(static_cast<int>(k), ""), profile.kinds[k], inputs_.weights->kinds[k],
                   "layer" + of_kind(k)),
            held * part.passed, held);
    for (std::size_t k = 0; k < profile.shared.size(); ++k)
      if (part.layers[k] > 0)
        add(passes({}, profile.shared[k], inputs_.weights->shared[k], "shared weights" + of_kind(k)), 0.0, 1.0);
    if (part.first)
      add(passes(blocks_of(-1, "embedding"), profile.embedding, inputs_.weights->embedding, "embedding"), part.passed,
          1.0);
    if (part.last) add(passes(blocks_of(-1, "head"), profile.head, inputs_.weights->head, "head"), part.passed, 1.0);
    MemoryPartsOf<Traced> unused;
    NumberOf<Traced, Bytes> kept;
    const StageElementsOf<Traced> elements = memory_.add(part, kept, unused);
    const auto whole = [](const auto& of) { return (of.dense + of.used_again).value(); };
    formulas_.add_casts(part, bytes_.cast(profile, part, whole(elements), elements.expert.value()), forward, backward);
    name_parts(num_, "forward", forward);
    name_parts(num_, "backward", backward);
    StageParts<Traced> out;
    formulas_.set_microbatch(forward, backward, out);
    if (part.passed < 1.0)
      out.copies = num_.named(
          "sums over two copies of the model",
          estimate::collective_time(num_, links_.copies(), formulas_.summed_by_copies(elements), held_blocks(part)));
    formulas_.set_gradients(split_, part, forward, backward, out);
    out.update = formulas_.optimizer(formulas_.updated(elements)) + formulas_.gathering(part, forward, backward);
    return out;
  }

  /// The memory of a stage that holds the activations of `held` microbatches.
  MemoryPartsOf<Traced> memory(const pipeline::StageSplit::Part& part, double held, const MicrobatchCost& microbatch) {
    MemoryPartsOf<Traced> parts;
    NumberOf<Traced, Bytes> kept;
    memory_.add(part, kept, parts);
    kept = num_.named("activations of a microbatch", kept);
    const MicrobatchCost::Part& priced = microbatch.parts[at(static_cast<int>(&part - split_.parts.data()))];
    if (moves_activations(inputs_.strategy.offload))
      kept = num_.given("activations on the chip", priced.kept, "of the layers that are not on the host");
    else
      kept = num_.times("microbatches in flight", held, "at the peak of the stage", kept);
    if (moves_states(inputs_.strategy.offload)) {
      parts.master = parts.moments = {};
      parts.buffers = num_.given("buffers", priced.memory.buffers, "with states on their way to and from the host");
    }
    const SourceTable* sources = &setup_.effect_sources;
    return at_peak<Traced>(
        num_, parts, kept,
        {microbatch.frees_gradients, microbatch.scatters_gradients,
         num_.given("held by the allocator over what is in use", setup_.effects.reserved, sources, "reserved"),
         num_.given("driver context", setup_.effects.context, sources, "context")});
  }

  // As StageMemory asks for layers.
  NumberOf<Traced, Bytes> kept(std::size_t kind) const {
    return num_.named("kept by a layer" + of_kind(kind), kept_of(static_cast<int>(kind), ""));
  }
  NumberOf<Traced, Bytes> head_kept() const { return num_.named("kept by the head", kept_of(-1, "head")); }

 private:
  std::string of_kind(std::size_t kind) const {
    return inputs_.profile.kinds.size() > 1 ? fmt::format(" of kind {}", kind + 1) : "";
  }

  /// The blocks of a kind of layer, or all at an end of the model.
  std::vector<program::Block> blocks_of(int kind, std::string_view end) const {
    std::vector<program::Block> blocks;
    for (const program::Block& block : program_.blocks)
      if (block.phase != program::Phase::update && !block.is_shared &&
          (kind >= 0 ? block.kind == kind : block.kind < 0 && (block.name == "embedding") == (end == "embedding")))
        blocks.push_back(block);
    return blocks;
  }

  NumberOf<Traced, Bytes> kept_of(int kind, std::string_view end) const {
    std::vector<program::Block> blocks = blocks_of(kind, end);
    std::erase_if(blocks, [](const program::Block& block) { return block.phase != program::Phase::forward; });
    if (kind < 0) blocks.erase(blocks.begin(), blocks.end() - 1);  // the end of an encoder keeps nothing of its own
    return derive_kept(num_, setup_, program_, blocks, setup_.effects.executed(inputs_.strategy.recompute));
  }

  /// Both passes through some blocks; stages share them.
  const TracedPasses& passes(const std::vector<program::Block>& blocks, const LayerProfile& work,
                             const LayerProfile& weights, const std::string& name) {
    const auto [known, is_new] = passes_.try_emplace(name);
    TracedPasses& out = known->second;
    if (!is_new) return out;
    for (const std::size_t phase : {0u, 1u}) {
      const program::Phase wanted = phase == 0 ? program::Phase::forward : program::Phase::backward;
      std::vector<program::Block> of_phase = blocks;
      std::erase_if(of_phase, [&](const program::Block& block) { return block.phase != wanted; });
      std::vector<const Traffic*> traffic;
      for (const LayerProfile* profile : {&work, &weights})
        for (const Traffic& entry : (phase == 0 ? profile->forward : profile->backward).traffic)
          traffic.push_back(&entry);
      const DerivedKernels kernels = derive_kernels(num_, setup_, program_, of_phase);
      out[phase] = derive_pass_time(num_, kernels, traffic, links_, inputs_.question.overlap, setup_);
      name_parts(num_, fmt::format("{} {}", name, program::name(wanted)), out[phase]);
    }
    return out;
  }

  const Traced& num_;
  const StepInputs& inputs_;
  const DerivedLinks& links_;
  const pipeline::StageSplit& split_;
  const TrainingSetup& setup_;
  program::Program program_;
  StateBytes bytes_;
  StageFormulas<Traced, DerivedLinks> formulas_;
  StageMemory<Traced, StepDeriver> memory_;
  std::map<std::string, TracedPasses> passes_;
};

/// "4 layers and the head".
std::string part_text(const pipeline::StageSplit::Part& part) {
  int layers = 0;
  for (const std::int16_t n : part.layers) layers += n;
  return fmt::format("{} layers{}{}", layers, part.first ? " and the embedding" : "", part.last ? " and the head" : "");
}

/// The time from step to step: the passes and sends that follow each other without a pause until the stage is done that
/// is occupied longest.
class IntervalDeriver {
 public:
  IntervalDeriver(const Traced& num, const StepInputs& inputs, StepDeriver& deriver, const pipeline::StageSplit& split,
                  TracedTime send)
      : num_(num),
        inputs_(inputs),
        deriver_(deriver),
        split_(split),
        runs_(stage_runs(*inputs.question.setup.model, inputs.strategy.parallelism.pipeline, inputs.strategy.schedule,
                         inputs.strategy.interleave)),
        send_(send) {}

  TracedTime interval(const MicrobatchCost& microbatch) {
    StepEvents events;
    pipeline::PipelineInput input = events.fill(inputs_, split_, runs_, microbatch);
    const pipeline::PipelineClock::Sample sample = events.sample();
    input.shape = sample.shape;
    const auto path = inputs_.strategy.offload == Offload::none ? pipeline::critical_path(input) : std::nullopt;
    if (!path)
      return num_.given(
          "interval", events.interval(),
          fmt::format("from step to step: {} through {} stages, {} microbatches, event by event",
                      pipeline::schedule_name(inputs_.strategy.schedule), input.shape.stages, microbatch.microbatches));
    const StageParts<Traced> last = deriver_.stage(split_.parts[static_cast<std::size_t>(split_.part_of[path->stage])]);
    const TracedTime end = num_.named(
        "end of the step", last.gradients - scheduled<Traced>(last, inputs_.strategy).hidden_gradients + last.update);
    TracedTime interval = num_.named("passes to the end of the stage", chain(path->to_end)) + end -
                          num_.named("passes until it begins", chain(path->to_begin));
    if (sample.left_out > 0.0)
      interval = interval + num_.given("further periods", sample.left_out, "equal ones, of a few microbatches each") *
                                num_.given("period", sample.period, "of the slowest stage");
    return num_.named("interval", interval);
  }

 private:
  TracedTime chain(const std::vector<pipeline::OperationWork>& steps) {
    TracedTime sum;
    for (const pipeline::OperationWork& step : steps) {
      sum = sum + work(step);
      if (step.is_sent) sum = sum + send_;
    }
    return sum;
  }

  TracedTime work(const pipeline::OperationWork& step) {
    const auto run = static_cast<std::size_t>(runs_.part_of[step.part]);
    const auto [known, is_new] = works_.try_emplace({run, step.work});
    if (!is_new) return known->second;
    const auto times = scheduled<Traced>(deriver_.stage(runs_.parts[run]), inputs_.strategy).times;
    using enum pipeline::PipelineWork;
    const auto [word, time] = step.work == forward          ? std::pair("forward", times.forward)
                              : step.work == backward_input ? std::pair("input gradients", times.backward_input)
                              : step.work == backward_weight
                                  ? std::pair("weight gradients", times.backward_weight)
                                  : std::pair("backward", times.backward_input + times.backward_weight);
    return known->second = num_.named(fmt::format("{} of {}", word, part_text(runs_.parts[run])), time);
  }

  const Traced& num_;
  const StepInputs& inputs_;
  StepDeriver& deriver_;
  const pipeline::StageSplit& split_;
  pipeline::StageSplit runs_;
  TracedTime send_;
  std::map<std::pair<std::size_t, pipeline::PipelineWork>, TracedTime> works_;
};

/// The parts of the memory by their names in answers.
NumberOf<Traced, Bytes> named_total(const Traced& num, MemoryPartsOf<Traced> m) {
  const auto name = [&](std::string_view word, NumberOf<Traced, Bytes>& part) { part = num.named(word, part); };
  name("parameters", m.weights);
  name("gradients", m.gradients);
  name("master weights", m.master);
  name("moments", m.moments);
  name("activations of microbatches in flight", m.activations);
  name("logits and loss", m.head);
  name("communication buffers", m.buffers);
  name("workspace", m.workspace);
  name("allocator overhead", m.reserve);
  return num.named("memory", m.total());
}

}  // namespace

Result<DerivedStep> derive_step(const Traced& num, const PricedStrategy& priced) {
  const auto& [question, sequence, cluster, strategy, cost] = priced;
  ASSAY_TRY(links, strategy_links(question, cluster, strategy));
  const TrainingProfile work = make_profile(question.setup, work_key(strategy, sequence), ProfilePart::work),
                        weights =
                            make_profile(question.setup, traffic_key(strategy, sequence), ProfilePart::weights_traffic);
  const pipeline::StageSplit split = stage_split(*question.setup.model, strategy);
  const StepInputs inputs{question, strategy, work, &weights, links};
  const MicrobatchCost microbatch = microbatch_cost(inputs, split);
  const DerivedLinks derived(num,
                             {cluster, question.collectives ? &*question.collectives : nullptr,
                              routing_of(*question.setup.model, question.setup.dispatch), question.setup.rates.sources},
                             strategy.parallelism, strategy.layout);
  StepDeriver deriver(num, priced, inputs, derived, split);
  const MicrobatchCost::Part& slowest = microbatch.parts[cost.slowest];
  StageParts<Traced> stage = deriver.stage(split.parts[cost.slowest]);
  if (strategy.offload != Offload::none && slowest.hidden_forward + slowest.hidden_backward > Seconds()) {
    stage.hidden_forward =
        num.given("hidden in the forward pass", slowest.hidden_forward, "overlapped with host copies");
    stage.hidden_backward =
        num.given("hidden in the backward pass", slowest.hidden_backward, "overlapped with host copies");
  }
  const double m = microbatch.microbatches;
  TracedTime handover, host, send;
  if (strategy.parallelism.pipeline > 1) {
    const pipeline::PipelineShape shape{strategy.schedule, strategy.parallelism.pipeline, static_cast<std::int64_t>(m),
                                        strategy.interleave};
    send = num.named("send", hop_time(num, inputs, derived));
    handover = num.times("sends", sends(slowest, shape), "of a microbatch, by the slowest stage", send);
  }
  if (cost.parts.host > Seconds())
    host = num.given("copies", cost.parts.host, "to and from the host that nothing hides");
  StepPartsOf<Traced> step = step_parts<Traced>(num, {stage, scheduled<Traced>(stage, strategy), handover, host, m});
  if (cost.parts.bubble > Seconds())
    set_bubble(num, IntervalDeriver(num, inputs, deriver, split, send).interval(microbatch), step);
  const SourceTable& sources = question.setup.effect_sources;
  if (cost.parts.overhead > Seconds())
    set_overhead(num,
                 num.given("share of stragglers", straggler_share(question),
                           fmt::format("{}, for each doubling beyond eight chips", sources.of("straggler"))),
                 num.given("fixed", question.setup.effects.fixed, &sources, "fixed"), step);
  const double held = held_microbatches(microbatch, microbatch.parts[cost.fullest], strategy, cost.memory.stage);
  return DerivedStep{num.named("step time", step.total()),
                     named_total(num, deriver.memory(split.parts[cost.fullest], held, microbatch))};
}

}  // namespace assay::training

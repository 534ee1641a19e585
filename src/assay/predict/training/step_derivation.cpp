#include "assay/predict/training/step_derivation.h"

#include <fmt/format.h>

#include <array>
#include <map>
#include <utility>

#include "assay/base/index.h"
#include "assay/model/layer_parts.h"
#include "assay/predict/training/interval_derivation.h"
#include "assay/predict/training/link_derivation.h"
#include "assay/predict/training/memory_formulas.h"
#include "assay/predict/training/pass_derivation.h"
#include "assay/predict/training/step_list.h"

namespace assay::training {
namespace {

using TracedTime = NumberOf<Traced, Seconds>;
using TracedPasses = std::array<DerivedPass, 2>;

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

/// The same at ideal rates.
void name_parts(const Traced& num, const std::string& pass, IdealPass<Traced>& ideal) {
  ideal.compute = num.named(pass + " arithmetic at the peak", ideal.compute);
  ideal.memory = num.named(pass + " memory at full bandwidth", ideal.memory);
  for (std::size_t r = 0; r < roles; ++r) {
    const std::string over = fmt::format("{} network over {}", pass, program::role_names[r]);
    ideal.network[r] = num.named(over + " at full bandwidth", ideal.network[r]);
    ideal.once[r] = num.named(over + " once a step", ideal.once[r]);
  }
}

/// Everything that is derived for one strategy.
class StepDeriver {
 public:
  StepDeriver(const Traced& num, const PricedStrategy& priced, const StepInputs& inputs, const DerivedLinks& links,
              const clock::StageSplit& split)
      : num_(num),
        cluster_(priced.cluster),
        inputs_(inputs),
        links_(links),
        split_(split),
        setup_(inputs.question.setup),
        program_(training_program(priced.question, priced.sequence, priced.strategy)),
        recorded_(setup_, priced.sequence, priced.strategy, program_),
        bytes_(inputs.question, inputs.strategy, inputs.links),
        formulas_(num, inputs, bytes_, links),
        memory_(num, inputs, bytes_, *this),
        origins_(num) {
    add_elements();
    add_layer_bytes();
  }

  /// The times of a stage.
  DerivedStage stage(const clock::StageSplit::Part& part) {
    DerivedPass forward, backward;
    DerivedStage out;
    const bool offloads = inputs_.strategy.offload != Offload::none;
    const auto link = offloads ? host_link(num_, cluster_) : HostLinkOf<Traced>();
    const auto copy = [&](const TracedPasses& passes, const LayerProfile& layer, std::string_view whose, double times,
                          double held, const NumberOf<Traced, Bytes>& kept = {}) {
      if (offloads)
        formulas_.add_copies(link, formulas_.host_layer(passes[0], passes[1], kept, states_of(layer, whose)), times,
                             held, out.host);
    };
    const auto add = [&](const TracedPasses& passes, double times, double held) {
      forward.add(num_, passes[0], times, held);
      backward.add(num_, passes[1], times, held);
      forward.ideal.add(num_, passes[0].ideal, times, held);
      backward.ideal.add(num_, passes[1].ideal, times, held);
    };
    const TrainingProfile& profile = inputs_.profile;
    for (std::size_t k = 0; k < profile.kinds.size(); ++k)
      if (const double held = part.layers[k]; held > 0.0) {
        const TracedPasses& of_layer = passes({nullptr, nullptr, k, false}, "layer" + of_kind(k));
        add(of_layer, held * part.passed, held);
        if (offloads)
          copy(of_layer, profile.kinds[k], "of a layer", held * part.passed, held, memory_.software(kept(k)));
      }
    for (std::size_t k = 0; k < profile.shared.size(); ++k)
      if (part.layers[k] > 0) {
        const TracedPasses& of_shared = passes({nullptr, nullptr, k, true}, "shared weights" + of_kind(k));
        add(of_shared, 0.0, 1.0);
        copy(of_shared, profile.shared[k], "that layers share", 0.0, 1.0);
      }
    if (part.first) add(passes(RecordedStep::embedding(), "embedding"), part.passed, 1.0);
    if (part.last) add(passes(RecordedStep::head(), "head"), part.passed, 1.0);
    MemoryPartsOf<Traced> unused;
    NumberOf<Traced, Bytes> kept;
    const StageElementsOf<Traced> elements = memory_.add(part, kept, unused);
    formulas_.add_casts(part, bytes_.cast(num_, profile, part, elements.dense + elements.used_again, elements.expert),
                        forward, backward);
    name_parts(num_, "forward", forward);
    name_parts(num_, "backward", backward);
    formulas_.set_microbatch(forward, backward, out);
    out.ideal.set_passes(forward.ideal, backward.ideal);
    if (part.passed < 1.0) {
      const auto summed = formulas_.summed_by_copies(elements);
      out.copies = num_.named("sums over two copies of the model",
                              collective::collective_time(num_, links_.copies(), summed, held_blocks(part)));
      out.ideal.copies = summed * links_.ideal_copies_per_byte();
    }
    formulas_.set_gradients(split_, part, forward, backward, out);
    const auto updated = formulas_.updated(elements);
    const TracedTime optimizer = formulas_.optimizer(updated);
    out.ideal.end_memory = formulas_.streamed(updated);
    out.update = optimizer + formulas_.gathering(part, forward, backward);
    if (!offloads) return out;
    // Of the embedding and the head only optimizer states go to the host.
    if (part.first) copy(passes_.at("embedding"), profile.embedding, "of the embedding", part.passed, 1.0);
    if (part.last) copy(passes_.at("head"), profile.head, "of the head", part.passed, 1.0);
    formulas_.wait_for_host(part, optimizer, out, out.host);
    return out;
  }

  /// The shortest forward pass of a layer, which hides sends between chunks.
  TracedTime shortest_forward() {
    TracedTime shortest = passes({}, "layer" + of_kind(0))[0].chain();
    for (std::size_t k = 1; k < inputs_.profile.kinds.size(); ++k)
      shortest = min(shortest, passes({nullptr, nullptr, k, false}, "layer" + of_kind(k))[0].chain());
    return num_.named("shortest forward pass of a layer", shortest);
  }

  /// The memory of a stage that holds the activations of `held` microbatches.
  MemoryPartsOf<Traced> memory(const clock::StageSplit::Part& part, double held, const MicrobatchCost& microbatch) {
    MemoryPartsOf<Traced> parts;
    NumberOf<Traced, Bytes> kept;
    const StageElementsOf<Traced> elements = memory_.add(part, kept, parts);
    kept = num_.named("activations of a microbatch", kept);
    if (moves_activations(inputs_.strategy.offload))
      kept = kept_on_chip(num_, kept, elements);
    else
      kept = num_.times("microbatches in flight", held, "at the peak of the stage", kept);
    if (moves_states(inputs_.strategy.offload)) {
      const auto states = num_.named("states on the host", parts.master + parts.moments);
      parts.buffers = parts.buffers + num_.named("states on their way", passing_states(num_, states, elements));
      parts.master = parts.moments = {};
    }
    return at_peak<Traced>(num_, parts, kept,
                           {microbatch.frees_gradients, microbatch.scatters_gradients,
                            num_.given("held by the allocator over what is in use", setup_.effects.reserved),
                            num_.given("driver context", setup_.effects.context)});
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

  /// The blocks of a kind of layers or, where `kind` is negative, of an end of the model.
  std::vector<program::Block> blocks_of(int kind, std::string_view end) const {
    std::vector<program::Block> blocks;
    for (const program::Block& block : program_.blocks)
      if (!block.is_shared &&
          (kind >= 0 ? block.kind == kind : block.kind < 0 && (block.name == "embedding") == (end == "embedding")))
        blocks.push_back(block);
    return blocks;
  }

  /// What the elements of weights consist of.
  void add_elements() {
    const model::Transformer& model = *setup_.model;
    const lower::StageRules stage = lower::training_stage(inputs_.strategy.parallelism, model);
    const auto add = [&](const std::vector<model::Weight>& weights, const std::string& whose, const auto& is_one) {
      NumberOf<Traced, double> sums[2][2];  // dense and of experts, all and trained
      for (const model::Weight& weight : weights) {
        if (!is_one(weight)) continue;
        const auto elements = elements_of(stage.rules, weight);
        NumberOf<Traced, double>(&of)[2] = sums[of_experts(weight) ? 1 : 0];
        of[0] = of[0] + elements;
        if (weight.trained) of[1] = of[1] + elements;
      }
      for (const std::size_t experts : {0u, 1u})
        for (const std::size_t trained : {0u, 1u})
          origins_.add(fmt::format("{}weights {}{}", trained ? "trained " : "", experts ? "of experts " : "", whose),
                       sums[experts][trained]);
    };
    model.for_each_kind([&](const model::Layer& layer, std::int64_t) {
      const std::vector<model::Weight> weights = model::layer_weights(model, layer);
      add(weights, "of a layer", [](const model::Weight& weight) { return !weight.shared; });
      add(weights, "that layers share", [](const model::Weight& weight) { return weight.shared; });
    });
    const std::vector<model::Weight> outer = model::outer_weights(model);
    add(outer, "of the embedding", is_first);
    add(outer, "of the head", [](const model::Weight& weight) { return !is_first(weight); });
    NumberOf<Traced, double> tied;
    for (const model::Weight& weight : outer)
      if (model.tied && weight.part == model::Part::embedding) tied = tied + elements_of(stage.rules, weight);
    origins_.add("tied weights of the embedding", tied);
  }
  NumberOf<Traced, double> elements_of(const lower::ShardingRules& rules, const model::Weight& weight) const {
    return num_.named(weight.name,
                      lower::local_elements(num_, rules, program_, program::TensorClass::used_weight, weight));
  }
  static bool is_first(const model::Weight& weight) {
    return weight.part == model::Part::embedding || weight.part == model::Part::positions;
  }

  /// What the bytes around the steps of layers consist of.
  void add_layer_bytes() {
    const TrainingProfile& profile = inputs_.profile;
    for (std::size_t k = 0; k < profile.kinds.size(); ++k) {
      const std::vector<program::Block> blocks = blocks_of(static_cast<int>(k), "");
      add_widest("widest step", blocks, profile.kinds[k].widest);
      NumberOf<Traced, Bytes> recomputed;
      for (const program::Block& block : blocks)
        for (const program::Step& step : recomputed_steps(program_, block))
          recomputed = recomputed + bytes_made(num_, program_, step);
      origins_.add("recomputed results", recomputed);
      for (const program::Block& block : blocks)
        if (const int id = lower::kept_encoded(program_, block); block.phase == program::Phase::forward && id >= 0)
          origins_.add("input of all layers", program::named_bytes(num_, program_, id));
      add_boundary(blocks);
    }
    const std::vector<program::Block> head = blocks_of(-1, "head");
    add_widest("widest step of the head", head, profile.head.widest);
    for (const program::Block& block : head)
      if (block.phase == program::Phase::forward)
        origins_.add("gathered weights of the head", gathered_bytes(num_, program_, block));
  }
  void add_widest(std::string_view name, const std::vector<program::Block>& blocks, Bytes widest) {
    for (const program::Block& block : blocks)
      for (const program::Step& step : program_.steps_of(block)) {
        if (step.is_recomputed || bytes_around(Plain{}, program_, step) != widest) continue;
        origins_.add(name, num_.named(program::step_text(program_, step), bytes_around(num_, program_, step)));
        return;
      }
  }
  /// Activations that a stage sends to the next.
  void add_boundary(const std::vector<program::Block>& blocks) {
    for (const program::Block& block : blocks)
      for (std::int32_t i = block.first; i < block.last && block.phase == program::Phase::forward; ++i)
        if (const int id = program_.steps[at(i)].in[0]; is_boundary(program_.tensor(id))) {
          const auto sent = program::named_bytes(num_, program_, id);
          origins_.add("activations",
                       model::has_aside(setup_.model->decoder)
                           ? sent * num_.given("tensors", 2.0, "and the embedding, which later layers read")
                           : sent);
          return;
        }
  }

  /// Elements of a layer or an end with optimizer states on this device.
  NumberOf<Traced, double> states_of(const LayerProfile& layer, std::string_view whose) const {
    StageElementsOf<Traced> elements;
    const auto set = [&](NumberOf<Traced, double>& to, std::string_view what, double count) {
      if (count > 0.0) to = num_.given(fmt::format("{} {}", what, whose), count, "on one device");
    };
    set(elements.trained_dense, "trained weights", layer.trained_dense);
    set(elements.trained_experts, "trained weights of experts", layer.trained_experts);
    return bytes_.states_of(num_, elements);
  }

  NumberOf<Traced, Bytes> kept_of(int kind, std::string_view end) const {
    std::vector<program::Block> blocks = blocks_of(kind, end);
    std::erase_if(blocks, [](const program::Block& block) { return block.phase != program::Phase::forward; });
    if (kind < 0) blocks.erase(blocks.begin(), blocks.end() - 1);  // the end of an encoder keeps nothing of its own
    return derive_kept(num_, setup_, program_, blocks, setup_.effects.executed(inputs_.strategy.recompute));
  }

  /// Both passes through a layer, shared weights or an end; stages share them.
  const TracedPasses& passes(const RecordedStep::Place& place, const std::string& name) {
    const auto [known, is_new] = passes_.try_emplace(name);
    TracedPasses& out = known->second;
    if (!is_new) return out;
    const PassSource source{setup_, program_};
    for (const std::size_t phase : {0u, 1u}) {
      const program::Phase of = phase == 0 ? program::Phase::forward : program::Phase::backward;
      const auto [work, weights] = recorded_.pass(place, of);
      std::vector<DerivedTraffic> traffic = derive_traffic(num_, source, work);
      const std::vector<DerivedTraffic> more = derive_traffic(num_, source, weights);
      traffic.insert(traffic.end(), more.begin(), more.end());
      const DerivedKernels kernels = derive_kernels(num_, source, work);
      out[phase] = derive_pass_time(num_, kernels, traffic, links_, inputs_.question.overlap, setup_);
      const std::string called = fmt::format("{} {}", name, program::name(of));
      name_parts(num_, called, out[phase]);
      name_parts(num_, called, out[phase].ideal);
    }
    return out;
  }

  const Traced& num_;
  const hardware::Cluster& cluster_;
  const StepInputs& inputs_;
  const DerivedLinks& links_;
  const clock::StageSplit& split_;
  const TrainingSetup& setup_;
  program::Program program_;
  RecordedStep recorded_;
  StateBytes bytes_;
  StageFormulas<Traced, DerivedLinks> formulas_;
  StageMemory<Traced, StepDeriver> memory_;
  Origins origins_;
  std::map<std::string, TracedPasses> passes_;
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
  const StepProfiles profiles(question, sequence, strategy);
  const clock::StageSplit split = stage_split(*question.setup.model, strategy);
  const StepInputs inputs{question, strategy, profiles.work, &profiles.weights, links};
  const MicrobatchCost microbatch = microbatch_cost(inputs, split);
  const DerivedLinks derived(num,
                             {cluster, question.collectives ? &*question.collectives : nullptr,
                              routing_of(*question.setup.model, question.setup.dispatch), question.setup.rates.sources},
                             strategy.parallelism, strategy.layout);
  StepDeriver deriver(num, priced, inputs, derived, split);
  const MicrobatchCost::Part& slowest = microbatch.parts[cost.slowest];
  const DerivedStage stage = deriver.stage(split.parts[cost.slowest]);
  const double m = microbatch.microbatches;
  TracedTime handover, send;
  if (strategy.parallelism.pipeline > 1) {
    const clock::PipelineShape shape{strategy.schedule, strategy.parallelism.pipeline, static_cast<std::int64_t>(m),
                                     strategy.interleave};
    send = num.named("send", hop_time(num, inputs, derived));
    if (strategy.schedule == clock::PipelineSchedule::interleaved && question.overlap) {
      const auto share = overlap_numbers(num, question.setup.effects.overlap).chip_share;
      send = num.named("exposed send", waited(send, deriver.shortest_forward(), share));
    }
    handover = num.times("sends", sends(slowest, shape), "of a microbatch, by the slowest stage", send);
  }
  const TracedTime host = cost.parts.host > Seconds() ? stage.host.of_step(num, m) : TracedTime();
  StepPartsOf<Traced> step = step_parts<Traced>(num, {stage, scheduled<Traced>(stage, strategy), handover, host, m});
  if (cost.parts.bubble > Seconds())
    set_bubble(num,
               derive_interval(num, {inputs, split, microbatch, send},
                               [&](const clock::StageSplit::Part& part) { return deriver.stage(part); }),
               step);
  const numbers::StepEffects& effects = question.setup.effects;
  if (cost.parts.overhead > Seconds())
    set_overhead(num,
                 num.given("share of stragglers", straggler_share(question),
                           fmt::format("{}, for each doubling beyond eight chips", effects.straggler.source)),
                 num.given("fixed", effects.fixed), step);
  const double held = held_microbatches(microbatch, microbatch.parts[cost.fullest], strategy, cost.memory.stage);
  IdealStep<Traced> ideal;
  for (std::size_t i = 0; i < split.parts.size(); ++i)
    ideal.add(num, deriver.stage(split.parts[i]).ideal, microbatch.parts[i].stages / microbatch.stages, m);
  return DerivedStep{num.named("step time", step.total()),
                     named_total(num, deriver.memory(split.parts[cost.fullest], held, microbatch)),
                     num.named("arithmetic at the peak", ideal.compute),
                     num.named("memory traffic at the peak", ideal.memory),
                     num.named("network at full bandwidth", ideal.busiest_network())};
}

}  // namespace assay::training

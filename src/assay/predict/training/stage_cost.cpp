// What one microbatch costs on each kind of stage: the passes through its layers, the end of the step, the host link.
#include <algorithm>
#include <span>

#include "assay/predict/training/stage_formulas.h"

namespace assay::training {
namespace {

/// Times of a microbatch at ideal rates.
void set_ideal(const PassTime& f, const PassTime& b, Seconds hop_ideal, MicrobatchCost::Part& out) {
  out.ideal.set_passes(f.ideal, b.ideal);
  out.lower = std::max(out.ideal.compute, out.ideal.memory);
  for (const Seconds network : out.ideal.network) out.lower = std::max(out.lower, network);
  out.upper = out.ideal.compute + out.ideal.memory + (f.all_network + b.all_network) + 2.0 * hop_ideal;
  out.executed_flops = f.flops + b.flops;
}

/// Prices the stages of one strategy, one after the other.
class StagePricer {
 public:
  StagePricer(const StepInputs& inputs, const clock::StageSplit& split, const MicrobatchCost& microbatch)
      : inputs_(inputs),
        split_(split),
        microbatch_(microbatch),
        effects_(inputs.question.setup.effects),
        bytes_(inputs.question, inputs.strategy, inputs.links),
        formulas_(num_, inputs, bytes_, inputs.links),
        offloads_(inputs.strategy.offload != Offload::none) {}

  const StateBytes& bytes() const { return bytes_; }

  /// Prices everything of a stage except its memory; `elements` has the sums for that.
  void price(const clock::StageSplit::Part& part, const StageElements& elements, MicrobatchCost::Part& out) const {
    PassTime forward, backward;
    add_passes(part, elements, forward, backward, out.host);
    formulas_.set_microbatch(forward, backward, out);
    set_ideal(forward, backward, microbatch_.boundary_ideal, out);
    if (part.passed < 1.0) add_model_copies(part, elements, out);
    formulas_.set_gradients(split_, part, forward, backward, out);
    const Bytes updated = formulas_.updated(elements);
    const Seconds optimizer = formulas_.optimizer(updated);
    out.ideal.end_memory = formulas_.streamed(updated);
    out.end_upper += out.ideal.end_memory + (forward.all_once + backward.all_once);
    out.update = optimizer + formulas_.gathering(part, forward, backward);
    if (!offloads_) return;
    // Of the embedding and the head only optimizer states go to the host.
    if (part.first) add_copies(inputs_.profile.embedding, microbatch_.embedding, Bytes(), part.passed, 1.0, out.host);
    if (part.last) add_copies(inputs_.profile.head, microbatch_.head, Bytes(), part.passed, 1.0, out.host);
    move_to_host(inputs_.strategy.offload, elements, out);
    formulas_.wait_for_host(part, optimizer, out, out.host);
    out.upper += out.host.in_turn;
  }

 private:
  using Passes = std::array<PassTime, 2>;

  /// Both passes through the layers and ends of a stage, and what its layers copy to the host.
  void add_passes(const clock::StageSplit::Part& part, const StageElements& elements, PassTime& f, PassTime& b,
                  HostTime& host) const {
    const TrainingProfile& profile = inputs_.profile;
    const auto add = [&](const Passes& passes, double times, double held) {
      f.add(passes[0], times, held);
      b.add(passes[1], times, held);
    };
    const double over_fewest = kept_over_fewest(effects_, inputs_.strategy.recompute);
    for (std::size_t k = 0; k < microbatch_.layers.size(); ++k) {
      const double held = part.layers[k], n = held * part.passed;
      if (n == 0.0) continue;
      add(microbatch_.layers[k], n, held);
      const LayerProfile& layer = profile.kinds[k];
      if (offloads_) add_copies(layer, microbatch_.layers[k], layer.kept * over_fewest, n, held, host);
    }
    for (std::size_t k = 0; k < profile.shared.size(); ++k) {
      if (part.layers[k] == 0) continue;
      add(microbatch_.shared[k], 0.0, 1.0);
      if (offloads_) add_copies(profile.shared[k], microbatch_.shared[k], Bytes(), 0.0, 1.0, host);
    }
    if (part.first) add(microbatch_.embedding, part.passed, 1.0);
    if (part.last) add(microbatch_.head, part.passed, 1.0);
    formulas_.add_casts(
        part, bytes_.cast(Plain{}, profile, part, elements.dense + elements.used_again, elements.expert), f, b);
  }

  /// Adds the host copies of a kind of layer: a microbatch passes `times` of them, and the stage holds `held`.
  void add_copies(const LayerProfile& layer, const Passes& passes, Bytes kept, double times, double held,
                  HostTime& host) const {
    formulas_.add_copies(inputs_.question.host,
                         formulas_.host_layer(passes[0], passes[1], kept, bytes_.states_of(layer)), times, held, host);
  }

  /// Two copies of the model compute gradients of different microbatches, and sum them.
  void add_model_copies(const clock::StageSplit::Part& part, const StageElements& elements,
                        MicrobatchCost::Part& out) const {
    const StageLinks& links = inputs_.links;
    const Bytes summed = formulas_.summed_by_copies(elements);
    const double count = held_blocks(part);
    out.copies = collective::collective_time(num_, links.copies_form, summed, count);
    out.ideal.copies = summed * links.copies.rate;
    out.end_upper = std::max(out.ideal.copies, count * links.copies.floor);
  }

  static constexpr Plain num_{};
  const StepInputs& inputs_;
  const clock::StageSplit& split_;
  const MicrobatchCost& microbatch_;
  const numbers::StepEffects& effects_;
  StateBytes bytes_;
  StageFormulas<Plain, StageLinks> formulas_;
  bool offloads_;
};

}  // namespace

Seconds shortest_forward(const MicrobatchCost& microbatch) {
  Seconds shortest = microbatch.layers.front()[0].chain();
  for (const std::array<PassTime, 2>& kind : microbatch.layers) shortest = std::min(shortest, kind[0].chain());
  return shortest;
}

MicrobatchCost microbatch_cost(const StepInputs& inputs, const clock::StageSplit& split) {
  MicrobatchCost microbatch;
  fill_passes(inputs, microbatch);
  fill_stages(inputs, split, microbatch);
  return microbatch;
}

void fill_passes(const StepInputs& inputs, MicrobatchCost& microbatch) {
  const auto& [question, strategy, profile, weights, links] = inputs;
  const auto passes = [&](const LayerProfile& layer, const LayerProfile* sharing) -> std::array<PassTime, 2> {
    const auto pass = [&](PassProfile LayerProfile::*which) {
      const TrafficList* shared = sharing ? &(sharing->*which).traffic : nullptr;
      const auto more = shared ? std::span(shared->begin(), shared->size()) : std::span<const Traffic>();
      return pass_time(layer.*which, more, inputs.links, inputs.question.overlap, inputs.question.setup);
    };
    return {pass(&LayerProfile::forward), pass(&LayerProfile::backward)};
  };
  const std::size_t kinds = profile.kinds.size();
  microbatch.layers.resize(kinds);
  for (std::size_t k = 0; k < kinds; ++k)
    microbatch.layers[k] = passes(profile.kinds[k], weights ? &weights->kinds[k] : nullptr);
  microbatch.shared.resize(profile.shared.size());
  for (std::size_t k = 0; k < profile.shared.size(); ++k)
    microbatch.shared[k] = passes(profile.shared[k], weights ? &weights->shared[k] : nullptr);
  microbatch.embedding = passes(profile.embedding, weights ? &weights->embedding : nullptr);
  microbatch.head = passes(profile.head, weights ? &weights->head : nullptr);
  microbatch.boundary_ideal = Seconds();
  microbatch.hop = {};
  if (strategy.parallelism.pipeline == 1) return;
  HopTime& hop = microbatch.hop;
  hop.alone = hop.overlapped = hop_time(Plain{}, inputs, links);
  if (question.overlap)
    hop.overlapped = waited(hop.alone, shortest_forward(microbatch), question.setup.effects.overlap.chip_share);
  const Seconds whole = profile.boundary * links.between_stages.rate;
  const bool in_parts = hop.alone < links.reached(whole) + links.between_stages.floor;
  microbatch.boundary_ideal = whole / (in_parts ? links.ways(role_bit(Role::tensor)) : 1.0);
}

void fill_stages(const StepInputs& inputs, const clock::StageSplit& split, MicrobatchCost& microbatch) {
  const StagePricer pricer(inputs, split, microbatch);
  set_memory_rules(inputs.question, inputs.strategy, pricer.bytes(), microbatch);
  microbatch.fixed = inputs.question.setup.effects.fixed;
  microbatch.stragglers = straggler_share(inputs.question);
  for (const clock::StageSplit::Part& part : split.parts) {
    MicrobatchCost::Part& out = microbatch.parts.emplace_back();
    const StageElements elements = add_memory(inputs, pricer.bytes(), part, out);
    microbatch.most_layers = std::max(microbatch.most_layers, out.layers);
    pricer.price(part, elements, out);
  }
}

}  // namespace assay::training

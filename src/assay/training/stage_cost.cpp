// What one microbatch costs on each kind of stage: the passes through its layers, the end of the step, the host link.
#include <algorithm>
#include <span>

#include "assay/training/memory.h"
#include "assay/training/step.h"
#include "assay/training/waiting.h"

namespace assay::training {
namespace {

/// Adds host copies that outlast the chip's work to both passes and, once a step, to the first one. `passes` of them go
/// through everything that a stage holds.
void wait_for_host(const StepInputs& inputs, double update, double passes, MicrobatchCost::Part& out) {
  if (moves_states(inputs.strategy.offload)) {
    // These passes take as long as the busiest of the chip, the host and the links that bring new weights.
    const double brought = out.update - update, forward = passes * out.forward;
    const double first =
        inputs.question.overlap ? std::max(forward + update + brought, out.host.first) : out.host.first + brought;
    out.host.update = first - (forward + passes * out.host.forward + update + brought);
  }
  out.forward += out.host.forward;
  out.backward += out.host.backward;
  // Hiding expert collectives does not make a pass shorter than its copies.
  out.hidden_forward = std::min(out.hidden_forward, std::max(0.0, out.forward - out.host.lane_forward));
  out.hidden_backward = std::min(out.hidden_backward, std::max(0.0, out.backward - out.host.lane_backward));
  out.upper += out.host.in_turn;
}

/// Times of a microbatch on a stage whose passes are `f` and `b`.
void set_microbatch_times(const estimate::CollectiveOverlap& overlap, const PassTime& f, const PassTime& b,
                          double hop_ideal, MicrobatchCost::Part& out) {
  out.forward = f.chain() + f.exposed;
  out.backward = b.chain() + b.exposed;
  out.compute = f.compute + b.compute;
  out.recompute = b.recompute;
  out.tensor = f.tensor + b.tensor;
  out.context = f.context + b.context;
  out.expert = f.expert + b.expert;
  out.weight_gradients = b.weight_gradients;
  out.deferral_cost = b.deferral_cost;
  out.deferral_weight_gradients = b.deferral_weight_gradients;
  if (out.expert > 0.0) {
    const double share = hidden_exchange(out.expert, out.compute, overlap) / out.expert;
    out.hidden_forward = share * f.expert;
    out.hidden_backward = share * b.expert;
  }
  out.weights = f.exposed + b.exposed;
  out.ideal_compute = f.ideal_compute + b.ideal_compute;
  out.ideal_memory = f.ideal_memory + b.ideal_memory;
  out.lower = std::max(out.ideal_compute, out.ideal_memory);
  for (std::size_t r = 0; r < roles; ++r) {
    out.network[r] = f.ideal_network[r] + b.ideal_network[r];
    out.end_network[r] = f.ideal_once[r] + b.ideal_once[r];
    out.lower = std::max(out.lower, out.network[r]);
  }
  out.upper = out.ideal_compute + out.ideal_memory + f.all_network + b.all_network + 2.0 * hop_ideal;
  out.executed_flops = f.flops + b.flops;
}

/// Prices the stages of one strategy, one after the other.
class StagePricer {
 public:
  StagePricer(const StepInputs& inputs, const pipeline::StageSplit& split, const MicrobatchCost& microbatch)
      : inputs_(inputs),
        split_(split),
        microbatch_(microbatch),
        rates_(inputs.question.setup.rates),
        effects_(inputs.question.setup.effects),
        bytes_(inputs.question, inputs.strategy, inputs.links),
        offloads_(inputs.strategy.offload != Offload::none),
        update_rate_(estimate::optimizer_rate(rates_).value()),
        stream_rate_(rates_.hbm.value() * (rates_.pointwise ? rates_.pointwise->stream : rates_.memory_share)) {}

  const StateBytes& bytes() const { return bytes_; }

  /// Prices everything of a stage except its memory; `elements` has the sums for that.
  void price(const pipeline::StageSplit::Part& part, const StageElements& elements, MicrobatchCost::Part& out) const {
    PassTime forward, backward;
    add_passes(part, elements, forward, backward, out.host);
    set_microbatch_times(effects_.overlap, forward, backward, microbatch_.boundary_ideal, out);
    if (part.passed < 1.0) add_model_copies(part, elements, out);
    add_gradients(part, forward, backward, out);
    const double updated = bytes_.states_of(elements) * bytes_.updated;
    const double update = updated / update_rate_, passes = 1.0 / part.passed;
    out.end_memory = updated / rates_.hbm.value();
    out.end_upper += out.end_memory + forward.all_once + backward.all_once;
    const double gather = forward.new_weights + backward.new_weights;
    out.update = update + waited_at_end(gather, passes * forward.chain());
    if (!offloads_) return;
    // Of the embedding and the head only optimizer states go to the host.
    if (part.first) add_copies(inputs_.profile.embedding, microbatch_.embedding, 0.0, part.passed, 1.0, out.host);
    if (part.last) add_copies(inputs_.profile.head, microbatch_.head, 0.0, part.passed, 1.0, out.host);
    move_to_host(inputs_.strategy.offload, elements.most_kept, elements.trained_share(), out);
    wait_for_host(inputs_, update, passes, out);
  }

 private:
  using Passes = std::array<PassTime, 2>;

  /// Both passes through the layers and ends of a stage, and what its layers copy to the host.
  void add_passes(const pipeline::StageSplit::Part& part, const StageElements& elements, PassTime& f, PassTime& b,
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
      if (offloads_) add_copies(layer, microbatch_.layers[k], layer.kept.value() * over_fewest, n, held, host);
    }
    for (std::size_t k = 0; k < profile.shared.size(); ++k) {
      if (part.layers[k] == 0) continue;
      add(microbatch_.shared[k], 0.0, 1.0);
      if (offloads_) add_copies(profile.shared[k], microbatch_.shared[k], 0.0, 0.0, 1.0, host);
    }
    if (part.first) add(microbatch_.embedding, part.passed, 1.0);
    if (part.last) add(microbatch_.head, part.passed, 1.0);
    const auto [first_cast, second_cast] =
        bytes_.cast(profile, part, elements.dense + elements.used_again, elements.expert);
    f.compute += part.passed * first_cast / stream_rate_;
    b.compute += part.passed * second_cast / stream_rate_;
    b.recompute += part.passed * second_cast / stream_rate_;
  }

  /// Adds the host copies of a kind of layer: a microbatch passes `times` of them, and the stage holds `held`.
  void add_copies(const LayerProfile& layer, const Passes& passes, double kept, double times, double held,
                  HostTime& host) const {
    const auto& [f, b] = passes;
    const double elements = bytes_.states_of(layer);
    const HostLayer copied{moves_activations(inputs_.strategy.offload) ? kept : 0.0,
                           bytes_.states_move ? elements * bytes_.optimizer->state_bytes() : 0.0, f.chain() + f.exposed,
                           b.chain() + b.exposed, elements * bytes_.updated / update_rate_};
    host.add(inputs_.question.host, copied, times, held, inputs_.question.overlap);
  }

  /// Two copies of the model compute gradients of different microbatches. They are summed over the copies after
  /// data-parallel devices have reduced theirs, each device its shard.
  void add_model_copies(const pipeline::StageSplit::Part& part, const StageElements& elements,
                        MicrobatchCost::Part& out) const {
    const StageLinks& links = inputs_.links;
    const double summed = bytes_.gradient * (elements.trained_dense / bytes_.shared.sums +
                                             elements.trained_experts / bytes_.shared.expert_sums);
    const double count = out.layers + (part.first ? 1.0 : 0.0) + (part.last ? 1.0 : 0.0);
    out.copies = links.copies_form.seconds(summed, count);
    out.ideal_copies = summed * links.copies.rate.value();
    out.end_upper = std::max(out.ideal_copies, count * links.copies.floor.value());
  }

  /// The exposed part of reducing gradients at the end of the step. They are reduced while the last backward pass runs;
  /// where one pass goes through a part of the layers, others go through the rest.
  void add_gradients(const pipeline::StageSplit::Part& part, const PassTime& f, const PassTime& b,
                     MicrobatchCost::Part& out) const {
    const TrainingProfile& profile = inputs_.profile;
    const double reduce = f.gradients + b.gradients + out.copies, passes = 1.0 / part.passed;
    const auto exposed = [&](double chain) { return waited_at_end(reduce, passes * chain); };
    out.gradients = exposed(b.chain());
    out.gradients_hidden_if_deferred = out.gradients - exposed(b.chain() + b.deferral_chain);
    // Weights on several stages (a tied table at both ends, shared weights) have their gradients summed over them.
    if (part.first != part.last && profile.tied_elements > 0.0 && trained_of(profile.embedding) > 0.0)
      out.gradients += over_stages(profile.tied_elements, 2.0);
    for (std::size_t k = 0; k < profile.shared.size(); ++k) {
      if (part.layers[k] == 0 || trained_of(profile.shared[k]) == 0.0) continue;
      double holders = 0.0;
      for (const pipeline::StageSplit::Part& other : split_.parts) holders += other.layers[k] > 0 ? other.stages : 0;
      if (holders > 1.0) out.gradients += over_stages(trained_of(profile.shared[k]), holders);
    }
  }

  /// What collectives once a step add to it beside a pass.
  double waited_at_end(double collective, double chain) const {
    return inputs_.question.overlap ? waited_once(collective, chain, effects_.overlap) : collective;
  }

  /// Seconds of summing gradients over the stages that hold the same weights.
  double over_stages(double elements, double holders) const {
    const network::CollectiveLine& line = inputs_.links.between_stages;
    return 2.0 * (holders - 1.0) *
           (elements * bytes_.gradient / holders * line.rate.value() / inputs_.links.network_share +
            line.floor.value());
  }

  const StepInputs& inputs_;
  const pipeline::StageSplit& split_;
  const MicrobatchCost& microbatch_;
  const estimate::KernelRates& rates_;
  const estimate::StepEffects& effects_;
  StateBytes bytes_;
  bool offloads_;
  double update_rate_;  ///< bytes per second of the optimizer
  double stream_rate_;  ///< bytes per second of element-wise work
};

}  // namespace

MicrobatchCost microbatch_cost(const StepInputs& inputs, const pipeline::StageSplit& split) {
  MicrobatchCost microbatch;
  fill_passes(inputs, microbatch);
  fill_stages(inputs, split, microbatch);
  return microbatch;
}

void fill_passes(const StepInputs& inputs, MicrobatchCost& microbatch) {
  const auto& [question, strategy, profile, weights, links] = inputs;
  const auto passes = [&](const LayerProfile& layer, const LayerProfile* sharing) -> std::array<PassTime, 2> {
    const auto pass = [&](PassProfile LayerProfile::*which) {
      const std::span<const Traffic> more =
          sharing ? std::span<const Traffic>((sharing->*which).traffic) : std::span<const Traffic>();
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
  microbatch.boundary_ideal = microbatch.hop = 0.0;
  if (strategy.parallelism.pipeline == 1) return;
  const network::CollectiveLine& line = links.between_stages;
  const double handed = profile.boundary.value();
  microbatch.boundary_ideal = handed * line.rate.value();
  microbatch.hop = microbatch.boundary_ideal / links.network_share + line.floor.value();
  // Where tensor-parallel devices hold the same activations, each sends a part and the receivers gather, if that is
  // faster.
  if (strategy.parallelism.residual == lower::ResidualScheme::replicated && strategy.parallelism.tensor > 1) {
    constexpr RoleSet tensor = role_bit(Role::tensor);
    const double part = microbatch.boundary_ideal / links.ways(tensor);
    const double gather = links.forms[tensor][StageLinks::line_of(program::Collective::all_gather)].seconds(handed, 1);
    if (const double parts = part / links.network_share + line.floor.value() + gather; parts < microbatch.hop) {
      microbatch.hop = parts;
      microbatch.boundary_ideal = part;
    }
  }
}

void fill_stages(const StepInputs& inputs, const pipeline::StageSplit& split, MicrobatchCost& microbatch) {
  const StagePricer pricer(inputs, split, microbatch);
  set_memory_rules(inputs.question, inputs.strategy, pricer.bytes(), microbatch);
  microbatch.fixed = inputs.question.setup.effects.fixed.value();
  microbatch.stragglers = straggler_share(inputs.question);
  for (const pipeline::StageSplit::Part& part : split.parts) {
    MicrobatchCost::Part& out = microbatch.parts.emplace_back();
    const StageElements elements = add_memory(inputs, pricer.bytes(), part, out);
    microbatch.most_layers = std::max(microbatch.most_layers, out.layers);
    pricer.price(part, elements, out);
  }
}

}  // namespace assay::training

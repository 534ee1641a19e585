// What a stage takes: its passes, the end of the step, and the step under a schedule. Written once over a number
// policy, so that what is derived is what is priced.
#pragma once

#include "assay/predict/training/memory.h"
#include "assay/predict/training/waiting.h"

namespace assay::training {

/// A stage of one strategy from both of its passes. Links are StageLinks, or DerivedLinks if they are traced.
template <class N, class Links>
class StageFormulas {
 public:
  using Time = NumberOf<N, Seconds>;

  StageFormulas(const N& num, const StepInputs& inputs, const StateBytes& bytes, const Links& links)
      : num_(num),
        inputs_(inputs),
        bytes_(bytes),
        links_(links),
        setup_(inputs.question.setup),
        costs_(overlap_numbers(num, setup_.effects.overlap)),
        update_rate_(training::update_rate(num, setup_)),
        stream_rate_(kernel::stream_rate(num, setup_.rates)) {}

  const NumberOf<N, BytesPerSecond>& update_rate() const { return update_rate_; }

  /// Adds what a microbatch casts of the weights of a stage, after its layers and ends.
  void add_casts(const clock::StageSplit::Part& part, const std::array<NumberOf<N, Bytes>, 2>& bytes,
                 PassParts<N>& forward, PassParts<N>& backward) const {
    if (!(bytes[0].value() > 0.0 || bytes[1].value() > 0.0)) return;
    const auto cast = [&](const NumberOf<N, Bytes>& moved) {
      return num_.named(
          "casts of weights",
          num_.times("share of the layers", part.passed, "that a microbatch passes", moved) / stream_rate_);
    };
    const Time again = cast(bytes[1]);
    forward.compute = forward.compute + cast(bytes[0]);
    backward.compute = backward.compute + again;
    backward.recompute = backward.recompute + again;
  }

  /// One microbatch.
  void set_microbatch(const PassParts<N>& f, const PassParts<N>& b, StageParts<N>& out) const {
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
    if (out.expert.value() > 0.0 && setup_.effects.overlap.experts) {
      const auto share = hidden_exchange(out.expert, out.compute, costs_) / out.expert;
      out.hidden_forward = share * f.expert;
      out.hidden_backward = share * b.expert;
    }
    out.weights = f.exposed + b.exposed;
  }

  /// Gradients that two copies of the model sum: they are summed over the copies after data-parallel devices have
  /// reduced theirs, each device its shard.
  NumberOf<N, Bytes> summed_by_copies(const StageElementsOf<N>& elements) const {
    return bytes_.gradient_bytes(num_) * (bytes_.sharded(num_, elements.trained_dense, bytes_.shared.sums) +
                                          bytes_.sharded(num_, elements.trained_experts, bytes_.shared.expert_sums));
  }

  /// The exposed part of reducing gradients at the end of the step. They are reduced while the last backward pass runs;
  /// where one pass goes through a part of the layers, others go through the rest.
  void set_gradients(const clock::StageSplit& split, const clock::StageSplit::Part& part, const PassParts<N>& f,
                     const PassParts<N>& b, StageParts<N>& out) const {
    const TrainingProfile& profile = inputs_.profile;
    const Time reduce = num_.named("reduction of gradients", f.gradients + b.gradients + out.copies);
    const auto exposed = [&](const Time& chain) { return waited_at_end(reduce, part, chain); };
    out.gradients = exposed(num_.named("backward pass", b.chain()));
    if (b.deferral_chain.value() != 0.0)
      out.gradients_hidden_if_deferred = out.gradients - exposed(b.chain() + b.deferral_chain);
    // Weights on several stages (a tied table at both ends, shared weights) have their gradients summed over them.
    if (part.first != part.last && profile.tied_elements > 0.0 && trained_of(profile.embedding) > 0.0)
      out.gradients = out.gradients + over_stages("tied weights of the embedding", profile.tied_elements, 2.0);
    for (std::size_t k = 0; k < profile.shared.size(); ++k) {
      if (part.layers[k] == 0 || trained_of(profile.shared[k]) == 0.0) continue;
      double holders = 0.0;
      for (const clock::StageSplit::Part& other : split.parts) holders += other.layers[k] > 0 ? other.stages : 0;
      if (holders > 1.0)
        out.gradients =
            out.gradients + over_stages("trained weights that layers share", trained_of(profile.shared[k]), holders);
    }
  }

  /// Bytes that the optimizer moves for the states of a stage.
  NumberOf<N, Bytes> updated(const StageElementsOf<N>& elements) const {
    return num_.named("states", bytes_.states_of(num_, elements)) *
           num_.named("bytes moved for each", bytes_.updated_bytes(num_));
  }
  /// Bytes at the peak of the memory.
  Time streamed(const NumberOf<N, Bytes>& bytes) const {
    return bytes / num_.given("hbm", setup_.rates.hbm, &setup_.rates.sources, "hbm");
  }
  /// The optimizer by itself.
  Time optimizer(const NumberOf<N, Bytes>& updated) const { return num_.named("optimizer", updated / update_rate_); }
  /// The exposed part of gathering new weights in the first passes.
  Time gathering(const clock::StageSplit::Part& part, const PassParts<N>& f, const PassParts<N>& b) const {
    return num_.named("gathering of new weights",
                      waited_at_end(f.new_weights + b.new_weights, part, num_.named("forward pass", f.chain())));
  }

  /// What a layer copies to and from the host: activations `kept`, and the states of so many elements.
  HostLayerOf<N> host_layer(const PassParts<N>& f, const PassParts<N>& b, const NumberOf<N, Bytes>& kept,
                            const NumberOf<N, double>& elements) const {
    HostLayerOf<N> layer{{}, {}, f.chain() + f.exposed, b.chain() + b.exposed, {}};
    if (moves_activations(inputs_.strategy.offload)) layer.activations = kept;
    if (bytes_.states_move) layer.states = num_.named("states to copy", elements * bytes_.state_bytes(num_));
    layer.update = num_.named("its update",
                              elements * num_.named("bytes moved for each", bytes_.updated_bytes(num_)) / update_rate_);
    return layer;
  }
  /// A microbatch passes `times` of such layers, and the stage holds `held`.
  void add_copies(const HostLinkOf<N>& link, const HostLayerOf<N>& layer, double times, double held,
                  HostTimeOf<N>& host) const {
    host.add(num_, link, layer, times, held, inputs_.question.overlap);
  }
  /// Adds host copies that outlast the chip's work to both passes and, once a step, to the first one.
  void wait_for_host(const clock::StageSplit::Part& part, const Time& optimizer, StageParts<N>& out,
                     HostTimeOf<N>& host) const {
    // As many passes as go through everything that a stage holds.
    const auto passes = [&](const Time& one) {
      return num_.times("passes", 1.0 / part.passed, "through all layers", one);
    };
    if (moves_states(inputs_.strategy.offload)) {
      // These passes take as long as the busiest of the chip, the host and the links that bring new weights.
      const Time brought = out.update - optimizer, forward = passes(out.forward);
      const Time first =
          inputs_.question.overlap ? max(forward + optimizer + brought, host.first) : host.first + brought;
      host.update = num_.named("copies of states that nothing hides",
                               first - (forward + passes(host.forward) + optimizer + brought));
    }
    out.forward = out.forward + host.forward;
    out.backward = out.backward + host.backward;
    // Hiding expert collectives does not make a pass shorter than its copies.
    const auto hidden = [](const Time& one, const Time& pass, const Time& lane) {
      return lane.value() < pass.value() ? min(one, pass - lane) : Time();
    };
    out.hidden_forward = hidden(out.hidden_forward, out.forward, host.lane_forward);
    out.hidden_backward = hidden(out.hidden_backward, out.backward, host.lane_backward);
  }

 private:
  /// What collectives once a step add to it beside the passes that go through all that a stage holds.
  Time waited_at_end(const Time& collective, const clock::StageSplit::Part& part, const Time& chain) const {
    if (!inputs_.question.overlap) return collective;
    return waited_once(num_, collective, num_.times("passes", 1.0 / part.passed, "through all layers", chain), costs_);
  }

  /// Time of summing gradients over the stages that hold the same weights.
  Time over_stages(std::string_view name, double elements, double holders) const {
    const auto& line = links_.between_stages_form();
    const auto part = num_.named("bytes of a part", counted(num_, name, elements) * bytes_.gradient_bytes(num_) /
                                                        num_.given("stages", holders, "that hold these weights"));
    return num_.given("sends", 2.0 * (holders - 1.0), "of a sum over stages") *
           (links_.reached(part * line.per_byte) + line.latency);
  }

  const N& num_;
  const StepInputs& inputs_;
  const StateBytes& bytes_;
  const Links& links_;
  const TrainingSetup& setup_;
  decltype(overlap_numbers(std::declval<const N&>(), setup_.effects.overlap)) costs_;
  NumberOf<N, BytesPerSecond> update_rate_, stream_rate_;
};

/// Sends the activations of a microbatch from a stage to the next.
template <class N, class Links>
NumberOf<N, Seconds> hop_time(const N& num, const StepInputs& inputs, const Links& links) {
  const auto& line = links.between_stages_form();
  const auto handed = num.given("activations", inputs.profile.boundary, "between layers, of one microbatch");
  const auto whole = links.reached(handed * line.per_byte) + line.latency;
  const lower::Parallelism& p = inputs.strategy.parallelism;
  if (p.residual != lower::ResidualScheme::replicated || p.tensor == 1) return whole;
  // Where tensor-parallel devices hold the same activations, each sends a part and the receivers gather, if that is
  // faster.
  constexpr RoleSet tensor = role_bit(Role::tensor);
  const auto part = handed * line.per_byte / num.given("senders", links.ways(tensor), "tensor-parallel devices");
  const auto gather = collective::collective_time(num, links.form(tensor, program::Collective::all_gather), handed);
  return min(whole, links.reached(part) + line.latency + num.named("gathering of parts", gather));
}

/// A microbatch on a stage under a schedule, and what the schedule changes in it.
template <class N>
struct ScheduledPasses {
  using Time = NumberOf<N, Seconds>;
  ScheduledTimes<Time> times;
  Time hidden{};            ///< collectives of experts, in both passes
  Time deferral_cost{};     ///< collectives of the backward pass that deferred weight gradients no longer hide
  Time hidden_gradients{};  ///< gradient reduction hidden when weight gradients are deferred
  Time seconds() const { return times.forward + times.backward_input + times.backward_weight; }
};
template <class N>
ScheduledPasses<N> scheduled(const StageParts<N>& part, const Strategy& strategy) {
  const ScheduleEffects effects = schedule_effects(strategy.schedule, strategy.parallelism.pipeline);
  ScheduledPasses<N> out;
  out.times =
      scheduled_times<NumberOf<N, Seconds>>({part.forward, part.backward, part.hidden_forward, part.hidden_backward,
                                             part.weight_gradients, part.deferral_cost, part.deferral_weight_gradients},
                                            effects);
  if (effects.hides_experts) out.hidden = part.hidden_forward + part.hidden_backward;
  if (effects.defers_weight_gradients) out.deferral_cost = part.deferral_cost;
  if (out.deferral_cost.value() != 0.0) out.hidden_gradients = part.gradients_hidden_if_deferred;
  return out;
}

/// What a step does once, or for each of its microbatches.
template <class N>
struct StageWork {
  const StageParts<N>& part;
  const ScheduledPasses<N>& passes;
  NumberOf<N, Seconds> handover;  ///< of a microbatch
  NumberOf<N, Seconds> host;      ///< of a step
  double microbatches = 1;
};
template <class N>
StepPartsOf<N> step_parts(const N& num, const StageWork<N>& work) {
  const auto& [part, passes, handover, host, m] = work;
  const auto all = [&, n = m](std::string_view name, const NumberOf<N, Seconds>& one) {
    return num.named(name, num.times("microbatches", n, "of a step", one));
  };
  StepPartsOf<N> step;
  step.compute = all("compute", part.compute);
  step.recompute = all("recomputation", part.recompute);
  step.tensor = all("tensor collectives", part.tensor + passes.deferral_cost);
  step.context = all("context collectives", part.context);
  step.expert = all("expert collectives", part.expert - passes.hidden);
  step.weights = all("exposed weights traffic", part.weights);
  step.handover = all("stage handover", handover);
  step.gradients = num.named("exposed gradients", part.gradients - passes.hidden_gradients);
  step.update = num.named("update", part.update);
  step.host = num.named("exposed host link", host);
  return step;
}

/// Sets the time from step to step; the time in which the slowest stage is idle is bubble.
template <class N>
void set_bubble(const N& num, const NumberOf<N, Seconds>& interval, StepPartsOf<N>& step) {
  constexpr double rounding = 1e-12;  // sums in another order differ in their last bits
  step.bubble = step.overhead = {};
  const auto work = num.named("work of the slowest stage", step.total());
  if (const auto waited = interval.value() - work.value(); waited > rounding * interval.value())
    step.bubble = num.named("pipeline bubble", interval - work);
}
/// Adds what a step costs beyond its work.
template <class N>
void set_overhead(const N& num, const NumberOf<N, double>& stragglers, const NumberOf<N, Seconds>& fixed,
                  StepPartsOf<N>& step) {
  step.overhead = num.named("overhead", stragglers * num.named("work and waiting", step.total()) + fixed);
}

}  // namespace assay::training

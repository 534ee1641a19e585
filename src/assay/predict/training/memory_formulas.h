// The memory of a stage, written once over a number policy: searches price it, explanations derive it.
#pragma once
#include <fmt/format.h>

#include "assay/predict/training/memory.h"

namespace assay::training {

/// Bytes of a layer as a profile has them. Explanations derive what is kept from its tensors.
struct ProfiledLayers {
  const TrainingProfile& profile;
  Bytes kept(std::size_t kind) const { return profile.kinds[kind].kept; }
  Bytes head_kept() const { return profile.head.kept; }
};

/// Adds up what a stage holds.
template <class N, class Layers>
class StageMemory {
 public:
  using Number = NumberOf<N, double>;
  using Size = NumberOf<N, Bytes>;

  StageMemory(const N& num, const StepInputs& inputs, const StateBytes& bytes, const Layers& layers)
      : num_(num),
        inputs_(inputs),
        bytes_(bytes),
        layers_(layers),
        setup_(inputs.question.setup),
        over_fewest_(kept_over_fewest(setup_.effects, inputs.strategy.recompute)) {}

  /// Adds up a stage: its elements, what one microbatch keeps for the backward pass, and all that does not depend on
  /// the microbatches in flight.
  StageElementsOf<N> add(const clock::StageSplit::Part& part, Size& kept_by_microbatch, MemoryPartsOf<N>& out) const {
    StageElementsOf<N> sum;
    const TrainingProfile& profile = inputs_.profile;
    Size encoded{};
    for (std::size_t k = 0; k < profile.kinds.size(); ++k) {
      const double n = part.layers[k];
      if (n == 0.0) continue;
      const LayerProfile& layer = profile.kinds[k];
      add_layers(layer, profile.shared.empty() ? nullptr : &profile.shared[k], n, sum);
      const Size kept = software(layers_.kept(k));
      kept_by_microbatch = kept_by_microbatch + num_.times("layers", n * part.passed, "on the stage", kept);
      sum.most_kept = max(sum.most_kept, kept);
      if (layer.encoded > Bytes())
        encoded = max(encoded, software(num_.given("input of all layers", layer.encoded, "kept once")));
      out.workspace = max(out.workspace, workspace(layer));
    }
    kept_by_microbatch = kept_by_microbatch + encoded;
    add_ends(part, sum);
    add_states(sum, out);
    if (part.last) out.head = head();
    return sum;
  }

  /// What the software keeps, over the fewest bytes.
  Size software(const Size& fewest) const {
    if constexpr (N::traced)
      if (over_fewest_ == 1.0) return fewest;
    return fewest * num_.given("kept over the fewest", over_fewest_, setup_.effects.activations.source);
  }

 private:
  void add_layers(const LayerProfile& layer, const LayerProfile* common, double n, StageElementsOf<N>& sum) const {
    const Sharing& shared = bytes_.shared;
    hold(layer, n, "of a layer", sum);
    Number dense = count("weights of a layer", layer.dense_elements),
           trained = count("trained weights of a layer", layer.trained_dense);
    const Number experts = count("weights of experts of a layer", layer.expert_elements),
                 trained_experts = count("trained weights of experts of a layer", layer.trained_experts);
    if (common) {
      hold(*common, 1.0, "that layers share", sum);
      const Number again = count("weights that layers share", common->dense_elements);
      sum.used_again = sum.used_again + (n - 1.0) * again;
      dense = dense + again;
      trained = trained + count("trained weights that layers share", common->trained_dense);
    }
    sum.largest_trained = max(sum.largest_trained, trained + trained_experts);
    sum.most_gathered = max(sum.most_gathered, moving(dense, shared.weights, experts, shared.expert_weights));
    sum.most_reduced = max(sum.most_reduced, moving(dense, shared.gradients, experts, shared.expert_gradients));
    sum.most_trained_reduced =
        max(sum.most_trained_reduced, moving(trained, shared.gradients, trained_experts, shared.expert_gradients));
  }

  void add_ends(const clock::StageSplit::Part& part, StageElementsOf<N>& sum) const {
    const TrainingProfile& profile = inputs_.profile;
    if (part.first) {
      hold(profile.embedding, 1.0, "of the embedding", sum);
      sum.outer = sum.outer + count("weights of the embedding", elements_of(profile.embedding));
    }
    if (!part.last) return;
    const Number tied = count("tied weights of the embedding", part.first ? 0.0 : profile.tied_elements),
                 head = count("weights of the head", elements_of(profile.head));
    sum.dense = sum.dense + (head + tied);
    sum.outer = sum.outer + (head + tied);
    sum.trained_dense = sum.trained_dense + (count("trained weights of the head", trained_of(profile.head)) +
                                             (trained_of(profile.embedding) > 0.0 ? tied : Number()));
  }

  void add_states(const StageElementsOf<N>& sum, MemoryPartsOf<N>& out) const {
    const Sharing& shared = bytes_.shared;
    const Size weight = bytes_.weight_bytes(num_), gradient = bytes_.gradient_bytes(num_);
    if (!bytes_.casts) {
      out.weights = weight * (bytes_.sharded(num_, sum.dense, shared.weights) +
                              bytes_.sharded(num_, sum.expert, shared.expert_weights));
      if (bytes_.outer != bytes_.weight)
        out.weights = out.weights + num_.named("more bytes", bytes_.outer_bytes(num_) - weight) *
                                        bytes_.sharded(num_, sum.outer, shared.weights);
    }
    out.gradients = gradient * (bytes_.sharded(num_, sum.trained_dense, shared.gradients) +
                                bytes_.sharded(num_, sum.trained_experts, shared.expert_gradients));
    // Two copies of the model have their own states: only data-parallel devices shard them.
    const Number states = bytes_.states_of(num_, sum);
    out.master = bytes_.master_bytes(num_) * states;
    out.moments = num_.named("bytes of moments", bytes_.moment_bytes(num_)) * states;
    // Weights in use are unsharded: this layer's and the next one's. So are gradients that are not yet reduced.
    const Size used = bytes_.used_bytes(num_);
    out.buffers =
        num_.constant(2.0) * used * sum.most_gathered + used * sum.most_reduced + gradient * sum.most_trained_reduced;
  }

  Size workspace(const LayerProfile& layer) const {
    const Size widest = num_.given("widest step", layer.widest, "what it reads and writes, without weights");
    if (!(layer.recomputed > Bytes())) return widest;
    return num_.given("recomputed results", layer.recomputed, "of a layer") *
               num_.given("kept over the fewest", setup_.effects.activations) +
           widest;
  }

  Size head() const {
    const LayerProfile& head = inputs_.profile.head;
    const Bytes gathered = (inputs_.weights ? inputs_.weights->head : head).gathered;
    Size sum = num_.given("logits over the fewest", setup_.effects.logits) *
               (layers_.head_kept() + num_.given("widest step of the head", head.widest, "what it reads and writes"));
    if (gathered > Bytes()) sum = sum + num_.given("gathered weights of the head", gathered, "kept");
    // Its gradient is unsharded until it is reduced, and no memory of the loss is free yet.
    if (bytes_.shared.gradients > 1.0)
      sum = sum + bytes_.gradient_bytes(num_) * count("trained weights of the head", trained_of(head));
    return sum;
  }

  Number count(std::string_view name, double elements) const { return counted(num_, name, elements); }

  void hold(const LayerProfile& layer, double n, std::string_view whose, StageElementsOf<N>& sum) const {
    const auto add = [&](Number& to, std::string_view what, double elements) {
      if constexpr (N::traced)
        to = to + num_.times("layers", n, "on the stage", count(fmt::format("{} {}", what, whose), elements));
      else
        to += n * elements;
    };
    add(sum.dense, "weights", layer.dense_elements);
    add(sum.expert, "weights of experts", layer.expert_elements);
    add(sum.trained_dense, "trained weights", layer.trained_dense);
    add(sum.trained_experts, "trained weights of experts", layer.trained_experts);
  }

  /// Experts of their own devices are neither gathered nor reduced.
  static Number moving(const Number& dense, double ways, const Number& experts, double expert_ways) {
    return (ways > 1.0 ? dense : Number()) + (expert_ways > 1.0 ? experts : Number());
  }

  const N& num_;
  const StepInputs& inputs_;
  const StateBytes& bytes_;
  const Layers& layers_;
  const TrainingSetup& setup_;
  double over_fewest_;
};

/// What the allocator and the driver add, and when.
template <class N>
struct MemoryRules {
  bool frees_gradients = false;     ///< not held from one microbatch to the next
  bool scatters_gradients = false;  ///< every device ends up with a shard
  NumberOf<N, double> reserved;     ///< see StepEffects
  NumberOf<N, Bytes> context;
};

/// The memory of a stage at its peak: `activations` of all microbatches in flight.
template <class N>
MemoryPartsOf<N> at_peak(const N& num, MemoryPartsOf<N> memory, const NumberOf<N, Bytes>& activations,
                         const MemoryRules<N>& rules) {
  memory.activations = activations;
  // At the loss no gradient exists yet; after it, freed activations make room for gradients. The allocator keeps
  // separate pools per stream, and scattered gradients are allocated on the collectives' stream: memory freed on other
  // streams does not help them.
  NumberOf<N, Bytes> late{};
  if (rules.frees_gradients) late = min(memory.gradients, memory.activations + memory.head);
  memory.gradients = memory.gradients - late;
  // Logits and the workspace of a backward pass are not held at the same time.
  (memory.head.value() > memory.workspace.value() ? memory.workspace : memory.head) = {};
  memory.reserve = (rules.reserved - 1.0) * num.named("in use", memory.allocated());
  if (rules.scatters_gradients) memory.reserve = memory.reserve + late;
  memory.context = rules.context;
  return memory;
}

}  // namespace assay::training

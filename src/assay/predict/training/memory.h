// Memory of weights, gradients and optimizer states of a training strategy, stage by stage.
#pragma once
#include "assay/predict/training/step.h"

namespace assay::training {

inline double elements_of(const LayerProfile& layer) { return layer.dense_elements + layer.expert_elements; }
inline double trained_of(const LayerProfile& layer) { return layer.trained_dense + layer.trained_experts; }

/// Devices that weights, gradients and optimizer states are sharded over, along data-parallel axes.
struct Sharing {
  double weights = 1, gradients = 1, states = 1;                       ///< of dense weights
  double expert_weights = 1, expert_gradients = 1, expert_states = 1;  ///< experts already have axes of their own
  double sums = 1, expert_sums = 1;  ///< devices that reduce a gradient, each a shard of it
};

/// Elements that a stage holds, before offloading.
template <class N>
struct StageElementsOf {
  using Number = NumberOf<N, double>;
  Number dense{}, expert{};
  Number outer{};  ///< the part of `dense` in embedding and head
  Number trained_dense{}, trained_experts{};
  Number used_again{};       ///< of shared weights, for each further layer that uses them
  Number largest_trained{};  ///< elements of a layer
  Number most_gathered{};    ///< weights of a layer that are gathered from several devices
  /// Gradients of a layer that several devices reduce: of all weights, of trained ones.
  Number most_reduced{}, most_trained_reduced{};
  NumberOf<N, Bytes> most_kept{};  ///< of a layer, of one microbatch
};
using StageElements = StageElementsOf<Plain>;
/// What a stage keeps on the chip of the activations of a microbatch, where others are on the host.
template <class N>
NumberOf<N, Bytes> kept_on_chip(const N& num, const NumberOf<N, Bytes>& kept, const StageElementsOf<N>& of) {
  return min(kept, num.given("layers on the chip", layers_on_chip, "one in use, one in transit") * of.most_kept);
}
/// Buffers for states on their way to and from the host.
template <class N>
NumberOf<N, Bytes> passing_states(const N& num, const NumberOf<N, Bytes>& states, const StageElementsOf<N>& of) {
  const auto largest = of.largest_trained / (of.trained_dense + of.trained_experts);
  return min(num.given("all", 1.0, "of the states"),
             num.given("layers passing", layers_passing, "one arriving, one in use, one leaving") *
                 num.named("largest layer over the stage", largest)) *
         states;
}

/// A number of weights as profiles count them; none leave no trace.
template <class N>
NumberOf<N, double> counted(const N& num, std::string_view name, double elements) {
  if constexpr (N::traced)
    if (elements == 0.0) return {};
  return num.given(name, elements, "on one device, before data-parallel devices share them");
}

/// Bytes of weights, gradients and optimizer states of a strategy.
struct StateBytes {
  Sharing shared;
  Bytes weight, gradient;  ///< of each element
  Bytes outer;             ///< of a weight of embedding and head
  Bytes used;              ///< of a weight as used in matrix products
  Bytes updated;           ///< that the optimizer moves for each
  const lower::Optimizer* optimizer = nullptr;
  const lower::Formats* formats = nullptr;
  bool states_move = false;
  bool casts = false;  ///< the master copy is the only copy of the weights

  StateBytes(const TrainingQuestion& question, const Strategy& strategy, const StageLinks& links);
  /// Of one element, in its format.
  template <class N>
  NumberOf<N, Bytes> weight_bytes(const N& num) const {
    return num.given("bytes of a weight", weight, name(formats->weights));
  }
  template <class N>
  NumberOf<N, Bytes> outer_bytes(const N& num) const {
    return num.given("bytes of a weight of embedding and head", outer, name(formats->outer.value_or(formats->weights)));
  }
  template <class N>
  NumberOf<N, Bytes> used_bytes(const N& num) const {
    return num.given("bytes of a weight in use", used, name(used == weight ? formats->weights : formats->activations));
  }
  template <class N>
  NumberOf<N, Bytes> gradient_bytes(const N& num) const {
    return num.given("bytes of a gradient", gradient, name(formats->gradients));
  }
  template <class N>
  NumberOf<N, Bytes> master_bytes(const N& num) const {
    if (!optimizer->master) return {};
    return num.given("bytes of a master weight", optimizer->master_bytes(), name(Dtype::fp32));
  }
  template <class N>
  NumberOf<N, Bytes> moment_bytes(const N& num) const {
    const auto moment = [&](std::string_view which, Dtype format) {
      return num.given(which, storage(format, 1.0), name(format));
    };
    if (optimizer->moments == 0) return {};
    const auto first = moment("bytes of the first moment", optimizer->first_moment);
    return optimizer->moments == 1 ? first : first + moment("bytes of the second moment", optimizer->second_moment);
  }
  template <class N>
  NumberOf<N, Bytes> state_bytes(const N& num) const {
    return num.named("bytes of states", master_bytes(num) + moment_bytes(num));
  }
  /// The gradient and the states are read, states and weights written; weights without a master copy are also read.
  template <class N>
  NumberOf<N, Bytes> updated_bytes(const N& num) const {
    return gradient_bytes(num) + num.given("reads and writes", 2.0, "of states") * state_bytes(num) +
           num.given("uses of a weight", optimizer->master ? 1.0 : 2.0,
                     "it is written, and read without a master copy") *
               weight_bytes(num);
  }
  /// Bytes that a stage moves to cast its weights in the forward and in the backward pass. Everything that is gathered
  /// or multiplied is cast, but not a local table; after the loss only weights of layers.
  template <class N>
  std::array<NumberOf<N, Bytes>, 2> cast(const N& num, const TrainingProfile& profile,
                                         const clock::StageSplit::Part& part, const NumberOf<N, double>& dense,
                                         const NumberOf<N, double>& expert) const {
    if (used == weight) return {};
    using Number = NumberOf<N, double>;
    const Number table =
        part.first ? counted(num, "weights of the embedding", elements_of(profile.embedding)) : Number();
    const Number head = part.last ? counted(num, "weights of the head", elements_of(profile.head)) : Number();
    const Number tied = part.last ? counted(num, "tied weights of the embedding", profile.tied_elements) : Number();
    const Number layers = num.named("weights of the layers", dense - table - head - (part.first ? Number() : tied));
    const Number ends = shared.weights > 1.0 ? dense - layers : head + tied;
    const Number experts = sharded(num, expert, shared.expert_weights);
    const auto each = num.named("bytes read and written", weight_bytes(num) + used_bytes(num));
    return {each * (sharded(num, layers + ends, shared.weights) + experts),
            each * (sharded(num, layers, shared.weights) + experts)};
  }
  /// A number of elements over the devices that share them.
  template <class N>
  NumberOf<N, double> sharded(const N& num, const NumberOf<N, double>& elements, double ways) const {
    if constexpr (N::traced)
      return ways == 1.0 || elements.is_nothing() ? elements
                                                  : elements / num.given("shards", ways, "data-parallel devices");
    else
      return elements / ways;
  }
  /// Elements of a layer or a stage with states on this device.
  template <class N>
  NumberOf<N, double> states_of(const N& num, const StageElementsOf<N>& of) const {
    return sharded(num, of.trained_dense, shared.states) + sharded(num, of.trained_experts, shared.expert_states);
  }
  double states_of(const LayerProfile& layer) const {
    return layer.trained_dense / shared.states + layer.trained_experts / shared.expert_states;
  }
};

/// Layers and ends that a stage holds.
inline double held_blocks(const clock::StageSplit::Part& part) {
  double count = (part.first ? 1.0 : 0.0) + (part.last ? 1.0 : 0.0);
  for (const std::int16_t n : part.layers) count += n;
  return count;
}

/// Adds the memory of a stage.
StageElements add_memory(const StepInputs& inputs, const StateBytes& bytes, const clock::StageSplit::Part& part,
                         MicrobatchCost::Part& out);

/// Moves activations or optimizer states of a stage to the host, except those in use.
void move_to_host(Offload offload, const StageElements& elements, MicrobatchCost::Part& out);

/// Sets what memory depends on other than its parts.
void set_memory_rules(const TrainingQuestion& question, const Strategy& strategy, const StateBytes& bytes,
                      MicrobatchCost& microbatch);

}  // namespace assay::training

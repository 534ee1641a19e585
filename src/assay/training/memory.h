// How the weights, gradients and optimizer states of a training strategy lie in memory, stage by stage.
#pragma once
#include "assay/training/step.h"

namespace assay::training {

inline double elements_of(const LayerProfile& layer) { return layer.dense_elements + layer.expert_elements; }
inline double trained_of(const LayerProfile& layer) { return layer.trained_dense + layer.trained_experts; }

/// Ways in which weights, gradients and optimizer states are shared out over data-parallel axes.
struct Sharing {
  double weights = 1, gradients = 1, states = 1;                       ///< of dense weights
  double expert_weights = 1, expert_gradients = 1, expert_states = 1;  ///< experts lie on axes of their own already
  double sums = 1, expert_sums = 1;  ///< devices that add up a gradient: each has a part of it while they do
};

/// What a stage holds, before anything goes to the host.
struct StageElements {
  double dense = 0, expert = 0;
  double outer = 0;  ///< of the dense ones, those of embedding and head
  double trained_dense = 0, trained_experts = 0;
  double used_again = 0;                              ///< of weights that layers share, for each further layer
  double largest_trained = 0;                         ///< elements of a layer
  double most_gathered = 0;                           ///< of them, weights that come together from several devices
  double most_reduced = 0, most_trained_reduced = 0;  ///< gradients that several devices have a share of; all, trained
  double most_kept = 0;                               ///< bytes of a layer, of one microbatch
  /// Of all states those of the largest layer.
  double trained_share() const { return largest_trained / (trained_dense + trained_experts); }
};

/// How weights, gradients and optimizer states of a strategy lie in memory.
struct StateBytes {
  Sharing shared;
  double weight = 0, gradient = 0;  ///< bytes of each element
  double outer = 0;                 ///< bytes of a weight of embedding and head
  double used = 0;                  ///< bytes of a weight as products take it
  double updated = 0;               ///< bytes that the optimizer moves for each
  const lower::Optimizer* optimizer = nullptr;
  bool states_move = false;
  bool casts = false;  ///< the master copy is all that there is of the weights

  StateBytes(const TrainingQuestion& question, const Strategy& strategy, const StageLinks& links);
  /// Bytes that a stage moves to cast its part of the weights in the forward and in the backward pass. All that is
  /// gathered or multiplied is cast; a table that lies here is not, and behind the loss none but those of layers.
  std::array<double, 2> cast(const TrainingProfile& profile, const pipeline::StageSplit::Part& part, double dense,
                             double expert) const;
  /// Elements of a layer or a stage whose states are on one device.
  template <class Elements>
  double states_of(const Elements& layer) const {
    return layer.trained_dense / shared.states + layer.trained_experts / shared.expert_states;
  }
};

/// Adds the memory of a stage.
StageElements add_memory(const StepInputs& inputs, const StateBytes& bytes, const pipeline::StageSplit::Part& part,
                         MicrobatchCost::Part& out);

/// Moves activations or optimizer states of a stage to the host; what is at work stays on the chip.
void move_to_host(Offload offload, double layer_kept, double layer_share, MicrobatchCost::Part& out);

/// What memory depends on besides its parts.
void set_memory_rules(const TrainingQuestion& question, const Strategy& strategy, const StateBytes& bytes,
                      MicrobatchCost& microbatch);

}  // namespace assay::training

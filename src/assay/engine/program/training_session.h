// Training of a model on virtual devices or ranks, step by step: weights, gradients and moments stay where the strategy
// puts them, and pipelines run the operations of their schedule in its order.
// Invariant: losses and weights do not depend on the strategy, except for rounding.
#pragma once
#include <deque>
#include <map>
#include <optional>
#include <vector>

#include "assay/base/result.h"
#include "assay/engine/program/handover.h"
#include "assay/engine/program/run_program.h"
#include "assay/engine/program/stage_parts.h"
#include "assay/engine/program/training_pass.h"

namespace assay::engine {

struct SessionOptions {
  clock::PipelineShape pipeline = {};  ///< one stage: none
  std::optional<AdamW> adam = {};      ///< nothing: plain gradient descent
  Transport* transport = nullptr;      ///< nothing: all devices are in this process
  Offloading offloading = {};
  Overlap overlap = Overlap::hidden;  ///< of collectives with steps, on ranks
};

/// An error where layers of a pipeline need more of each other than the residual stream.
Result<void> check_session(const model::Transformer& model, const clock::PipelineShape& pipeline);

/// One optimizer step, the same in every process. Bytes are means over devices.
struct TrainedStep {
  double loss = 0;           ///< mean over all tokens
  double gradient_norm = 0;  ///< of all gradients together
  Bytes moved, stated;       ///< by collectives, and by what the program says
  Bytes handed;              ///< received from other stages
  Bytes to_host, from_host;  ///< offloaded, and loaded again
  Bytes stated_host;         ///< each way, as it is predicted
};

class TrainingSession {
 public:
  /// The program, which is that of a stage with all layers, and the model must outlive it.
  TrainingSession(const program::Program& program, const model::Transformer& model, const NamedArrays& weights,
                  const SessionOptions& options);

  /// `tokens` and `targets` are [microbatches x sequences, queries].
  TrainedStep step(const Array& tokens, const Array& targets);
  /// The gradients of the last step, and the weights, all in one place.
  const NamedArrays& gradients() const { return gradients_; }
  NamedArrays weights();
  /// The optimizer's means of gradients and of their squares: "first.0.W_q" and "second.0.W_q".
  NamedArrays moments();
  /// Continues a run that had these after so many steps.
  void resume(const NamedArrays& moments, std::int64_t steps);
  void keep_gradients() { keeps_gradients_ = true; }

  RunFacts facts() const;
  /// Time so far of collectives that ran while steps computed, and of steps that waited for them nevertheless.
  struct Hidden {
    Seconds background, waited;
  };
  Hidden hidden() const;
  /// What this rank did since the last call.
  std::vector<Activity> take_activities();
  /// Time of each step of the program so far, per device of this process.
  std::vector<StepClock> clocks() const;

 private:
  struct Stage {
    std::int64_t number = 0;
    ProgramRunner runner;
    StackMemory weights = {}, sums = {};               ///< by layer, embedding and head first
    std::vector<std::map<int, Moments>> moments = {};  ///< like the weights
    HeldLayers held = {};
    clock::StageOrder order = {};
    std::size_t next = 0;
    std::map<std::int64_t, TrainingPass> passes = {};    ///< by microbatch
    std::map<std::int64_t, std::int64_t> finished = {};  ///< by microbatch: parts whose gradients are complete
  };
  struct Batch {
    const Array &tokens, &targets;
  };

  const clock::PipelineShape& shape() const { return parts_.shape(); }
  void add_stage(std::int64_t number, const NamedArrays& weights);
  Handover::Way way(std::int64_t from, std::int64_t to, std::int64_t part, std::int64_t microbatch, int kind) const;
  /// Runs the next operation of a stage if what it needs has arrived.
  bool advance(Stage& stage, const Batch& batch);
  void run_forward(Stage& stage, const clock::PipelineOperation& operation, const Batch& batch);
  void run_backward(Stage& stage, const clock::PipelineOperation& operation);
  void finish_part(Stage& stage, std::int64_t microbatch);
  /// Calls visit(stage, layer, weight, name) with every weight of the stages of this process, once.
  template <class Visit>
  void each_weight(Visit visit);
  /// The tensor that an update makes of a weight; its moments are sharded like it. Below 0: none.
  int updated(int weight) const;
  /// The sums of both copies of the model that dualpipe trains.
  void add_copies();
  void update(Stage& stage);
  void take_updates(Stage& stage, const program::Block& block, std::int64_t layer);
  /// Bytes that a device of the stages of this process copies each way in a step, summed over stages.
  Bytes stated_copies() const;
  void share_embedding();
  /// The weights of other stages, from the processes that have them.
  void add_other_stages(NamedArrays& arrays) const;

  const program::Program& program_;
  const model::Transformer& model_;
  StageParts parts_;
  std::optional<AdamW> adam_;
  Transport* transport_;
  Overlap overlap_;
  std::vector<int> own_sums_, shared_sums_;  ///< see summed_tensors()
  std::vector<int> tied_;                    ///< made by the head's backward pass for the embedding's
  std::deque<Stage> stages_;                 ///< those of this process
  Handover handover_;
  HostCopies copies_;
  std::int64_t updates_ = 0;
  double loss_ = 0;
  bool keeps_gradients_ = false;
  NamedArrays gradients_;
};

}  // namespace assay::engine

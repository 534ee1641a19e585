// The tasks of a program's blocks on one device, with the arrays that they read and make.
#pragma once
#include <optional>
#include <vector>

#include "assay/engine/cuda/movement_task.h"
#include "assay/engine/cuda/rings.h"
#include "assay/engine/cuda/task_builder.h"
#include "assay/engine/cuda/task_list.h"
#include "assay/engine/program/stage_parts.h"
#include "assay/engine/program/training_pass.h"

namespace assay::engine {

/// Arrays by tensor of the program; below 0: none.
using TensorArrays = std::vector<int>;
/// The same by layer, embedding and head first.
using LayerArrays = std::vector<TensorArrays>;

class BlockTasks {
 public:
  /// The first device of the program has rank `first`; the arguments must outlive it.
  BlockTasks(const program::Program& program, const model::Transformer& model, std::size_t device, std::size_t first,
             HeldLayers held);
  /// Numbers what collectives are between.
  Result<void> prepare() { return movements_.prepare(place(-1)); }

  void add_weights(const std::vector<WeightStart>& starts);
  /// The weights alone: what a microbatch starts with.
  const LayerArrays& weights() const { return weights_; }
  /// Gradients over all microbatches so far.
  const LayerArrays& sums() const { return sums_; }

  Result<void> run(const program::Block& block, std::int64_t layer, LayerArrays& memory,
                   Gradients which = Gradients::all);
  /// What runs once in an optimizer step: final sums, and the optimizer.
  Result<void> run_updates();

  const TensorLayout& layout() const { return layout_; }
  const ProgramRunner& runner() const { return runner_; }
  const HeldLayers& held() const { return held_; }
  TaskBuilder& builder() { return builder_; }
  void set_tokens(double tokens) { tokens_ = tokens; }

  /// Its weights, runs and movements are filled in; the rest is the caller's.
  TaskList finished() &&;

 private:
  StepPlace place(std::int64_t layer) const {
    return {program_, layout_, device_, layer < 0 ? nullptr : runner_.layer(layer).shape, tokens_};
  }
  std::vector<Extent> optimizer_part(int tensor) const;
  /// Whether the stage has the layer (below 0: embedding and head), and the block is one of it.
  bool runs(const program::Block& block, std::int64_t layer) const;
  /// By tensor, whether a block that the stage runs uses it; updates alone, where only those count.
  std::vector<char> used(std::int64_t layer, bool in_updates) const;
  Result<void> run_step(std::int32_t number, std::int64_t layer, LayerArrays& memory);
  Result<void> run_ring(std::int32_t number, std::int64_t layer, const RingStep& ring, LayerArrays& memory);
  void add_results(AssayCudaTask task, std::int64_t layer, TensorArrays& memory);
  void add_update(AssayCudaTask& task, const program::Step& step, std::int64_t layer, TensorArrays& memory);

  const program::Program& program_;
  TensorLayout layout_;
  std::size_t device_;
  ProgramRunner runner_;
  HeldLayers held_;
  Movements movements_;
  Rings rings_;
  TaskList list_;
  TaskBuilder builder_;
  LayerArrays weights_, sums_, states_;  ///< `states_`: numbers of weights
  std::vector<char> is_sum_;             ///< by tensor
  std::optional<int> updated_;           ///< a weight of which the optimizer has changed a part
  double tokens_ = 1;
};

}  // namespace assay::engine

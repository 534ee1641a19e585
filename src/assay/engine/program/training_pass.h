// Forward and backward pass of one microbatch: through the whole model, or through the parts of it that a stage of a
// pipeline holds.
#pragma once
#include <map>
#include <utility>
#include <vector>

#include "assay/engine/program/host_copies.h"
#include "assay/engine/program/runner.h"

namespace assay::engine {

/// The weights of all layers as the devices hold them, embedding and head first; nothing for layers of other stages.
using StackMemory = std::vector<ProgramMemory>;

/// Which gradients a backward pass computes: zero-bubble schedules run the two halves apart.
enum class Gradients { all, of_input, of_weights };

class TrainingPass {
 public:
  /// The arguments must outlive it.
  TrainingPass(ProgramRunner& runner, const program::Program& program, const StackMemory& weights,
               HostCopies* copies = nullptr);

  /// Both passes. Returns the sum of the losses.
  double run(const Array& tokens, const Array& targets);

  // --- parts of a pass, for decoders whose layers only pass on their results
  Shards embedded(const Array& tokens);
  /// Layers [first, last).
  Shards forward(std::int64_t first, std::int64_t last, const Shards& x);
  /// The sum of the losses.
  double loss(const Shards& x, const Array& targets);
  Shards head_gradient();
  /// The gradient of the input of layers [first, last); nothing where only those of weights are computed.
  Shards backward(std::int64_t first, std::int64_t last, const Shards& arriving, Gradients which);
  void embedding_gradient(const Shards& arriving);

  ProgramMemory& memory(std::int64_t layer) { return layer < 0 ? outer_ : layers_[static_cast<std::size_t>(layer)]; }

 private:
  void give(ProgramMemory& memory, int id, const Array& global);
  void embed(int kind, const Array& tokens);
  /// Runs layers [first, last) starting from x; afterwards `flowing_` is the last layer's result.
  void run_forward(std::int64_t first, std::int64_t last, const Shards& x);
  void run_backward();
  int token_inputs() const;
  void embedding_backward(int kind);
  void layer_backward(std::int64_t l, Gradients which);

  HostCopies* copies_;                             ///< nullptr: everything stays on the devices
  std::map<std::int64_t, HostCopies::Away> away_;  ///< by layer
  Shards encoded_, encoded_gradient_;
  Shards embedded_gradient_;                                              ///< from blocks that also read the embedding
  std::map<std::pair<std::int64_t, std::size_t>, Shards> key_gradients_;  ///< by lending layer and tensor
  std::map<std::int64_t, Shards> token_gradients_;                        ///< by layer of the decoder
  const Shards* flowing_ = nullptr;                                       ///< the residual stream, or its gradient
  ProgramRunner& runner_;
  const program::Program& program_;
  ProgramMemory outer_;
  StackMemory layers_;
};

/// The last value of the gradient of a block's input.
int input_gradient(const program::Program& program, const program::Block& block, std::string_view name = "In");

/// Marks the steps of a block that the gradient of its input depends on.
std::vector<char> steps_to_input(const program::Program& program, const program::Block& block);

/// Tensors whose sums over microbatches are the inputs of steps that run once per optimizer step: gradients of a
/// layer's own weights, or of its shared weights.
std::vector<int> summed_tensors(const program::Program& program, bool shared);

/// Tensors of the embedding's backward pass that the head's makes: where both use one weight.
std::vector<int> tied_tensors(const program::Program& program);

/// Weights that updates of the decoder's embedding or head change, by the name of the block.
std::vector<int> trained_weights(const program::Program& program, std::string_view name);

/// Adds arrays of shards; empty sums are zero.
void add_to(Shards& sums, const Shards& more);

}  // namespace assay::engine

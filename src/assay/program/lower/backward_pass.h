// Writes the backward steps of a block into a Builder's program. Used only by program/lower/backward.cpp and
// program/lower/gradient_rules.cpp; all other code calls Builder::backward().
#pragma once
#include <cstdint>
#include <span>
#include <vector>

#include "assay/program/lower/branches.h"

namespace assay::lower {

class BackwardPass {
 public:
  /// The backward pass of forward steps [first, last).
  BackwardPass(Builder& builder, std::int32_t first, std::int32_t last);

  void run(std::span<const Builder::Seed> seeds);
  /// The backward pass of forward steps that form branches [first, last) of a layer.
  void run(std::span<const Builder::Seed> seeds, Branches& branches, int first, int last);

 private:
  static std::size_t at(int id) { return static_cast<std::size_t>(id); }
  /// The sharding of a tensor without partial sums.
  static program::Sharding reduced_sharding(const program::ProgramTensor& tensor);

  // --- the pass, program/lower/backward.cpp
  int last_tensor() const { return static_cast<int>(program_.tensors.size()); }
  void take_seeds(std::span<const Builder::Seed> seeds);
  /// Whether the gradient of a branch depends on the branch alone: no value of the residual stream is recomputed from
  /// earlier branches, and products are not counted from the first one.
  bool is_pure() const;
  /// Whether the backward steps of these branches could be copied from equal ones.
  bool copied(Branches& branches, int first, int last);
  /// Recomputes all forward steps of a layer, for software that does not stop at the last result a gradient reads.
  void recompute_all();
  void transpose(Branches& branches, int number, bool is_last);
  void transpose(std::int32_t first, std::int32_t last);
  /// Sums the gradients of weights with numbers below `limit` over devices: over some axes in every microbatch, over
  /// the others once.
  void finish_weights(int limit);

  // --- values and gradients of tensors, program/lower/backward.cpp
  int& slot(int id) { return build_.notes(id).gradient; }
  /// A forward value in the backward pass, kept or recomputed. The gradient of the step that produced it uses it
  /// as is.
  int forward_value(int id, bool by_own_gradient = false);
  /// Whether the result `id` of a forward step is recomputed.
  bool is_recomputed(std::int32_t index, int id) const;
  /// A new gradient tensor with the shape and sharding of `of`, partial over `unreduced`.
  int make_gradient(int of, program::AxisSet unreduced = 0);
  bool is_weight(int id) const;
  /// Whether a tensor has a gradient at all: tokens, targets, caches and frozen weights have none.
  bool wants_gradient(int id) const;
  /// Adds a weight to the block's weights with gradients; `first`: it had no gradient before.
  void note_weight(int id, bool first);
  void accumulate(int id, int gradient);
  /// Target of the gradient `held` of a tensor: the tensor's sharding, reduced except for the sums of copied keys.
  program::Sharding settled_sharding(int id, int held) const;
  /// The gradient of a tensor, reduced over all axes except `staying`; below 0: none.
  int gradient(int id, program::AxisSet staying = 0);
  /// Axes that split the activations of a step but not this operand: its gradient is a partial sum over them.
  program::AxisSet partial_over(int id, int activation) const;

  // --- a function for each gradient rule, program/lower/gradient_rules.cpp
  void transpose_step(program::GradientRule rule, const program::Step& step);
  void transpose_per_input(const program::Step& step);
  /// A maximum over a dimension of which devices hold parts: elements as large as the largest share its gradient, on
  /// whatever device they are.
  void transpose_split_largest(const program::Step& step);
  void transpose_product(const program::Step& step);
  void transpose_norm(const program::Step& step);
  void transpose_attention(const program::Step& step);
  /// Gradients of tokens only: the choice of experts has no gradient through their positions.
  void transpose_dispatch(const program::Step& step);
  void transpose_embed(const program::Step& step);
  void transpose_place(const program::Step& step);
  void transpose_loss_sums(const program::Step& step);
  void pass_on_gradient(const program::Step& step);
  void reshard_gradient(const program::Step& step);
  /// The gradient of what a permutation or a ragged exchange sends goes back the way it came.
  void send_back(const program::Step& step);

  bool is_bias(const program::Step& step, int id) const { return step.op == program::Op::add && is_weight(id); }
  /// The gradient of a bias sums the gradients of everything it was added to.
  void transpose_bias(int bias, int dy);
  /// gradient(of) += x · y
  void add_product(int of, int x, int y);
  /// The axes over which the gradients of all results of a step are partial sums.
  program::AxisSet common_sums(const program::Step& step);
  /// Axes over which the gradient of an input is partial because the other inputs are: factors of a partial sum, and
  /// the weights of experts' results that are spread over several devices.
  program::AxisSet partial_by_others(const program::Step& step, int id) const;

  Builder& build_;
  program::Program& program_;
  std::int32_t first_, last_;
  std::vector<int>& weights_;
  std::size_t finished_ = 0;  ///< number of weights already summed
  int sums_ = -1;             ///< statistics of the loss
};

}  // namespace assay::lower

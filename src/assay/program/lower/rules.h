// Sharding rules: for each class of tensors, which mesh axes split which logical dimension. A parallelism scheme is
// just a set of such rules; the collectives follow from them.
#pragma once
#include <array>

#include "assay/program/form/program.h"

namespace assay::lower {

/// Invariant: only axes of more than one device appear.
struct ShardingRules {
  std::array<std::array<program::AxisList, model::logical_dims>, program::tensor_classes> axes{};
  /// Axes that split every tensor of the class somewhere, each axis separately: on d_model if that divides, else on the
  /// first dimension that does, else nowhere.
  std::array<program::AxisList, program::tensor_classes> spread{};
  /// Axes over which weight gradients are summed once per optimizer step, not in every microbatch.
  program::AxisSet deferred = 0;
  /// Axes that split heads but not always key heads. Gradients of keys and values that they do not split stay
  /// partial sums over them until the gradient of a weight or of the layer's input ends the sums.
  program::AxisSet key_replicas = 0;

  program::AxisList& at(program::TensorClass tensor_class, model::LogicalDim dim) {
    return axes[static_cast<std::size_t>(tensor_class)][static_cast<std::size_t>(dim)];
  }
  program::AxisList at(program::TensorClass tensor_class, model::LogicalDim dim) const {
    return axes[static_cast<std::size_t>(tensor_class)][static_cast<std::size_t>(dim)];
  }
};

/// The sharding that the rules give a tensor of the first `rank` of these dimensions. Each axis is used once, on the
/// first dimension that names it. Key heads are split as far as they divide; the remaining axes hold copies of
/// them.
program::Sharding rule_sharding(const ShardingRules& rules, const program::Program& program,
                                program::TensorClass tensor_class, const program::TensorDims& dims, std::size_t rank);

/// The dimensions of a weight as rules see them: a router's experts are choices for tokens, not destinations.
std::array<model::Weight::Size, 4> ruled_dims(const model::Weight& weight);
/// Elements of a weight on one device when it is sharded like tensors of that class.
template <class N>
NumberOf<N, double> local_elements(const N& num, const ShardingRules& rules, const program::Program& program,
                                   program::TensorClass tensor_class, const model::Weight& weight);
inline double local_elements(const ShardingRules& rules, const program::Program& program,
                             program::TensorClass tensor_class, const model::Weight& weight) {
  return local_elements(Plain{}, rules, program, tensor_class, weight);
}

/// All axes of the list except those in `without`, in order.
constexpr program::AxisList remaining(program::AxisList list, program::AxisSet without) {
  if ((list.set() & without) == 0) return list;
  const program::AxisList outer = remaining(list.popped(), without);
  return without & program::axis_bit(list.last()) ? outer : outer.pushed(list.last());
}
/// The axes of `a`, then the axes of `b` inside them.
constexpr program::AxisList joined(program::AxisList a, program::AxisList b) {
  return b.empty() ? a : joined(a, b.popped()).pushed(b.last());
}
/// Whether a list begins with another one, so that it cuts the same blocks further.
constexpr bool begins_with(program::AxisList list, program::AxisList outer) {
  while (!list.empty() && !outer.has(list.last())) list = list.popped();
  return list == outer;
}
/// The common prefix of both lists: the blocks that a dimension is cut into either way.
constexpr program::AxisList common_prefix(program::AxisList a, program::AxisList b) {
  // If two lists differ, one that ends with an axis of the other is not its prefix.
  while (a != b) (b.empty() || a.has(b.last()) ? a : b) = (b.empty() || a.has(b.last()) ? a : b).popped();
  return a;
}

}  // namespace assay::lower

// Backward plans: the collectives of the gradients, derived from a forward plan by transposing its steps.
//
// Only its own device uses a copy of a replicated tensor, so after a local product the gradient of a copy
// is a partial sum over the axes that split a dimension summed in that product; elsewhere copies of a gradient agree.
// Each transposed step knows which of the two cases applies:
//   forward        gradient's copies agree      gradient is a partial sum
//   all-gather     slice                        reduce-scatter
//   slice          all-gather                   all-gather, still partial over other axes
//   all-reduce     nothing                      all-reduce
//   reduce-scatter all-gather                   (cannot be: the axis splits the gradient)
//   all-to-all, permute                         undone
// Gradients end in the sharding of their operand; the gradient of a partial sum is the same for every addend.
#pragma once
#include "assay/plan/planner.h"

namespace assay::plan {

struct BackwardPlan {
  Plan plan;
  int flowing = -1;                             ///< the result's gradient, which is given
  int left_factor = -1, right_factor = -1;      ///< given: the shards that were multiplied forwards
  int left_gradient = -1, right_gradient = -1;  ///< in the operands' shardings
};

/// The gradients of a product's operands; the forward plan is for the expression on the same mesh, and the factors of
/// its local product are kept.
BackwardPlan plan_backward(const program::Mesh& mesh, const ShardingExpression& expression, const Plan& forward);

/// The gradient of a resharding; the plan's first tensor is the gradient of its result.
Plan reshard_backward(const program::Mesh& mesh, const Plan& forward);

}  // namespace assay::plan

// Backward plans: the collectives of the gradients of a planned product or resharding.
//
// A gradient has the sharding of its tensor, so where a tensor moved, its gradient moves back: the adjoint of a
// movement is the resharding in reverse, planned like any other. Only its own device uses a copy of a replicated
// tensor, so after a local product the gradient of a copy is a partial sum over the axes that split a dimension summed
// in that product; elsewhere copies of a gradient agree. What was gathered is therefore reduce-scattered where its
// gradient is a partial sum, and sliced for free where it is not. The gradient of a partial sum is the same for every
// addend.
#pragma once
#include "assay/program/plan/planner.h"

namespace assay::plan {

struct BackwardPlan {
  Plan plan;
  int flowing = -1;                             ///< the result's gradient, which is given
  int left_factor = -1, right_factor = -1;      ///< given: the shards that were multiplied forwards
  int left_gradient = -1, right_gradient = -1;  ///< gradients in the operands' shardings
};

/// The gradients of a product's operands; the forward plan is for the expression on the same mesh, and the factors of
/// its local product are kept.
BackwardPlan plan_backward(const program::Mesh& mesh, const ShardingExpression& expression, const Plan& forward,
                           const Prices& prices);

/// The gradient of a resharding; the plan's first tensor is the gradient of its result.
Plan reshard_backward(const program::Mesh& mesh, const Plan& forward, const Prices& prices);

}  // namespace assay::plan

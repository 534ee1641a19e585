// The result of a product whose sharding is left open.
#pragma once
#include "assay/program/plan/planner.h"

namespace assay::plan {

struct PropagatedResult {
  program::Tensor tensor;
  double cost = 0;                      ///< cost of the plan that ends in it, in the unit of the prices
  std::size_t considered = 0;           ///< number of shardings considered
  std::optional<program::Tensor> next;  ///< the best sharding with another cost
  double next_cost = 0;
};

/// The result with the dimensions that only one operand has, in the sharding whose plan is cheapest; between equal
/// costs, the one that leaves least on a device. Every sharding by the operands' axes that divides is considered.
Result<PropagatedResult> propagated_result(const program::Mesh& mesh, const ShardingExpression& expression,
                                           const Prices& prices);

}  // namespace assay::plan

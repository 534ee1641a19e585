// Executes a plan on virtual devices with real data and checks the result and the bytes moved.
#pragma once
#include <vector>

#include "assay/base/result.h"
#include "assay/engine/devices.h"
#include "assay/engine/kernels/product.h"
#include "assay/program/plan/planner.h"

namespace assay::engine {

/// What the movements of a plan took.
struct MovedBytes {
  Bytes moved;      ///< received per device, the mean over devices; for a permute, by the device that receives most
  Bytes predicted;  ///< by the plan
  /// Every step moved the predicted bytes; a permute of padded shards may move less.
  bool agree = true;
};

/// Runs the steps of a plan. `memory` has the shards of every tensor by number: those of the given tensors before,
/// those of all tensors afterwards.
MovedBytes run_steps(VirtualDevices& devices, const plan::Plan& plan, std::vector<Shards>& memory);

struct PlanRun {
  Array result;
  double max_error = 0;         ///< largest difference to the unsharded result, as a share of its largest value
  std::vector<Bytes> received;  ///< by each device
  MovedBytes bytes;
};

/// The names of a tensor's dimensions in order.
DimensionNames names_of(const program::Tensor& tensor);

/// Runs a product or a resharding. The expression is over the plan's mesh. Operands hold small integers: their sums are
/// exact, so that any difference is a fault.
PlanRun run_plan(const program::Mesh& mesh, const plan::Plan& plan, const plan::ShardingExpression& expression,
                 std::uint64_t seed = 0);

/// The expression over the mesh of a thorough plan, whose axes may be parts of the axes of `mesh`.
plan::ShardingExpression over_plan_mesh(const program::Mesh& mesh, const program::Mesh& plan_mesh,
                                        const plan::ShardingExpression& expression);

/// Refuses plans that would take too much memory or time: see the limits in the source.
Result<void> check_runnable(const program::Mesh& mesh, const plan::Plan& plan,
                            const plan::ShardingExpression& expression);

}  // namespace assay::engine

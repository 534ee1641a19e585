// Executes a plan on virtual devices with real data and checks the result and the bytes moved.
#pragma once
#include <vector>

#include "assay/base/result.h"
#include "assay/execute/devices.h"
#include "assay/plan/planner.h"

namespace assay::execute {

/// The bytes moved by one step.
struct StepRun {
  Bytes moved;      ///< received per device, the mean over devices; for a permute, by the device that receives most
  Bytes busiest;    ///< received by the device that receives most
  Bytes predicted;  ///< by the plan
};

template <class T>
struct PlanRun {
  Array<T> result;
  double max_error = 0;         ///< largest difference to the unsharded result, as a share of its largest value
  std::vector<Bytes> received;  ///< by each device
  std::vector<StepRun> steps;
  Bytes moved, predicted;  ///< over all steps
  /// Every step moved the predicted bytes; a permute of padded shards may move less.
  bool bytes_agree = true;
};

/// Values to fill operands with: small integers make sums exact, so that any difference is a fault.
enum class Fill { integers, reals };

/// Runs a product or a resharding. The expression is over the plan's mesh.
template <class T>
PlanRun<T> run_plan(const program::Mesh& mesh, const plan::Plan& plan, const plan::ShardingExpression& expression,
                    std::uint64_t seed = 0, Fill fill = Fill::integers);

/// The expression over the mesh of a thorough plan, whose axes may be parts of the axes of `mesh`.
plan::ShardingExpression over_plan_mesh(const program::Mesh& mesh, const program::Mesh& plan_mesh,
                                        const plan::ShardingExpression& expression);

/// Refuses plans that would take too much memory or time: see the limits in the source.
Result<void> check_runnable(const program::Mesh& mesh, const plan::Plan& plan,
                            const plan::ShardingExpression& expression);

}  // namespace assay::execute

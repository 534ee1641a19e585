// The parts of `assay shard`: the question, and products that overlap with the collectives that they need.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "assay/ask/report/response.h"
#include "assay/ask/verbs/request.h"
#include "assay/hardware/cluster.h"
#include "assay/predict/collective/placement.h"
#include "assay/program/plan/planner.h"
#include "assay/program/plan/propagation.h"

namespace assay::verbs::shard {

// What `assay shard` is asked.

struct Query {
  program::Mesh mesh;
  plan::ShardingExpression expression;
  std::vector<std::string> unknown;  ///< dimensions without a size, where --sizes is not given
  std::optional<hardware::Cluster> cluster;
  collective::Placement placement;                   ///< on the cluster
  std::optional<FlopsPerSecond> peak;                ///< of a product on the cluster
  std::optional<plan::PropagatedResult> propagated;  ///< where the expression leaves the result open
};

// assay shard --overlap: a product after its collective, and in chunks beside it.

/// Adds `overlap`, and the timeline as the picture. The mesh is the plan's.
Result<void> add_overlap(const Request& request, const Query& query, const program::Mesh& mesh, const plan::Plan& plan,
                         report::Response& response);

}  // namespace assay::verbs::shard

// What `assay shard` is asked.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "assay/hardware/cluster.h"
#include "assay/predict/collective/placement.h"
#include "assay/program/plan/planner.h"
#include "assay/program/plan/propagation.h"

namespace assay::verbs::shard {

struct Query {
  program::Mesh mesh;
  plan::ShardingExpression expression;
  std::vector<std::string> unknown;  ///< dimensions without a size, where --sizes is not given
  std::optional<hardware::Cluster> cluster;
  collective::Placement placement;                   ///< on the cluster
  std::optional<FlopsPerSecond> peak;                ///< of a product on the cluster
  std::optional<plan::PropagatedResult> propagated;  ///< where the expression leaves the result open
};

}  // namespace assay::verbs::shard

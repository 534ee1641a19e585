// The ways of tensors between shardings as programs take them: planned once, looked up ever after.
#pragma once
#include <cstddef>
#include <unordered_map>
#include <vector>

#include "assay/program/plan/planner.h"

namespace assay::plan {

/// What changes when a tensor is resharded: its dimensions that are split otherwise, without the outer axes that stay,
/// and the partial sums that end.
struct ShardingChange {
  program::Sharding from, to;
  std::size_t rank = 0;

  friend bool operator==(const ShardingChange&, const ShardingChange&) = default;
};

/// One movement of a route, and the changed part of the sharding after it.
struct RouteMove {
  MoveKind kind;
  program::AxisSet axes = 0;
  program::Sharding after;
};

/// Remembers the cheapest movements by bytes received. A program stands for all sizes of its data-parallel axes, so a
/// route does not depend on the sizes of axes; nor does it permute devices, which frameworks do not do, use axes and
/// dimensions that need no change, or split a dimension further than at one of its ends.
class Routes {
 public:
  const std::vector<RouteMove>& find(const ShardingChange& change);

 private:
  struct Hash {
    std::size_t operator()(const ShardingChange& change) const;
  };
  std::unordered_map<ShardingChange, std::vector<RouteMove>, Hash> known_;
};

}  // namespace assay::plan

// Reshardings on meshes of many axes, where the space of all plans is too large to search.
#pragma once
#include <map>

#include "assay/program/plan/planner.h"

namespace assay::plan {

/// On a mesh of up to this many axes longer than one, plans are the best there are.
inline constexpr int most_exact_axes = 5;

/// Plans of reshardings. On larger meshes the axes that keep their place stay there, and the best plan for the others
/// is found; where more than `most_exact_axes` change place, they are gathered at once and sliced again. Such plans may
/// move more than the best one, never more than gathering takes.
class BoundedPlanner {
 public:
  explicit BoundedPlanner(const program::Mesh& mesh);

  Plan reshard(const program::Tensor& from, const program::Sharding& to, const Prices& prices);

 private:
  struct Ways;  ///< before, after, and what stays

  Plan on_moving_axes(const program::Tensor& from, const Ways& ways, program::AxisSet moving, const Prices& prices);
  Plan gathered_and_sliced(const program::Tensor& from, const Ways& ways, const Prices& prices) const;

  program::Mesh mesh_;
  int axes_ = 0;  ///< number of axes longer than one
  Planner exact_;
  std::map<program::AxisSet, Planner> smaller_;  ///< by the axes that move
};

}  // namespace assay::plan

// Where each value of a program would lie best: shardings that people state spread over rows, forwards and backwards,
// to values that nobody has said anything about. A dimension that two neighbours divide in other ways stays as it is;
// what moves then is for the planner to choose.
#pragma once
#include <vector>

#include "assay/profile/hlo/partition/rows.h"

namespace assay::hlo {

struct PartitionHints {
  std::vector<program::Sharding> shardings;               ///< of each value
  std::vector<bool> stated;                               ///< somebody says so
  std::vector<std::optional<program::Sharding>> results;  ///< of the program, where it says how it wants them
};

/// Which sharding gets there first where two want one axis.
struct SpreadOrder {
  bool rows_backwards = false;  ///< the last row of an operation before the first
  bool results_first = false;   ///< from the end of the program
  bool all_at_once = false;     ///< through products as soon as through operations on elements
};

/// A sharding of what one operation makes, as a constraint behind it would say.
struct PartitionPin {
  const Instruction* at = nullptr;
  Shape shape;
  program::Sharding sharding;
};

Result<PartitionHints> partition_hints(const Module& module, const PartitionGraph& graph, const PartitionMesh& mesh,
                                       const std::vector<PartitionRows>& rows, const SpreadOrder& order,
                                       const PartitionPin* pin = nullptr);

/// Constraints that could help a plan: other places for what moves in it, the costliest first. `homes` and `moved` are
/// of each value: where it would lie best, and what its movements cost.
std::vector<PartitionPin> partition_pins(const PartitionGraph& graph, const PartitionMesh& mesh,
                                         const std::vector<program::Sharding>& homes, const std::vector<double>& moved);

}  // namespace assay::hlo

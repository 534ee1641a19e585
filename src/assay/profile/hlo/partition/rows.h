// Which dimensions of the operands and results of an operation are the same index: the rows by which mesh axes may
// split it. One function a kind of operation; what no function knows is computed whole on every device.
#pragma once
#include <vector>

#include "assay/profile/hlo/partition/graph.h"

namespace assay::hlo {

struct PartitionRow {
  enum class Kind : std::uint8_t {
    kept,    ///< the results have it
    summed,  ///< they lack it: devices that split it hold partial sums
    found,   ///< they lack it: each device has the elements of its part, and zeros for the others
    whole    ///< each device needs all of it
  };
  Kind kind = Kind::kept;
  std::int64_t size = 1;     ///< that shards divide evenly
  std::vector<int> operand;  ///< its dimension in each operand; -1 where they lack it
  int result = -1;
  int halo = 0;  ///< elements that a device needs of its neighbours, with 1 added; 0: none
};

struct PartitionRows {
  std::vector<PartitionRow> rows;
  bool adds = true;          ///< partial results add up, and may wait; else they end at once (a maximum)
  std::vector<bool> linear;  ///< of partial sums of an operand, the operation makes partial sums
  bool together = false;     ///< only if all operands are partial sums over the same axes
};

PartitionRows partition_rows(const PartitionGraph& graph, const PartitionOperation& operation);

}  // namespace assay::hlo

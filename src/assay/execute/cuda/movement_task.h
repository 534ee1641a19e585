// The collective or the slice of a step as a task: which dimension it cuts or joins, and between which devices.
#pragma once
#include <vector>

#include "assay/base/result.h"
#include "assay/execute/cuda/cuda_table.h"
#include "assay/execute/cuda/task_of_step.h"

namespace assay::execute {

struct MovementTask {
  AssayCudaTask task{};   ///< operands are tensors of the program; the number of its group is still to be set
  std::vector<int> axes;  ///< of the mesh, in the order of the parts; none: a slice
};

/// An error where a GPU cannot move a tensor so.
Result<MovementTask> movement_task(const StepPlace& place, const program::Step& step);

}  // namespace assay::execute

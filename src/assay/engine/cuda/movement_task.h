// The collective or the slice of a step as a task: which dimension it cuts or joins, and between which devices.
#pragma once
#include <map>
#include <vector>

#include "assay/base/result.h"
#include "assay/base/units.h"
#include "assay/engine/cuda/cuda_table.h"
#include "assay/engine/cuda/task_of_step.h"
#include "assay/engine/devices.h"

namespace assay::engine {

/// Devices that the collectives of a device are between, in the order of their parts, and its own place among them.
struct TaskGroups {
  std::vector<std::vector<int>> devices;
  std::vector<int> places;
};

/// A block that is passed on around the devices of a group, instead of a collective of all of them.
struct RingShift {
  AssayCudaTask task{};  ///< without operands
  int mine = 0, count = 1;
};

/// The movements of one device. Groups are numbered as they are first met, alike in all programs over the mesh.
class Movements {
 public:
  /// The first device of the mesh has rank `first`.
  Movements(const program::Mesh& mesh, std::size_t device, std::size_t first = 0)
      : devices_(mesh), device_(device), first_(first) {}

  /// Numbers all groups of a program: devices that run different parts of it number them alike then.
  Result<void> prepare(const StepPlace& place);
  /// Operands are tensors of the program. An error where a GPU cannot move a tensor so.
  Result<AssayCudaTask> task(const StepPlace& place, const program::Step& step);
  /// The same for a gathering or a reduction that is done in a ring; what moves is counted with its tasks.
  Result<RingShift> shift(const StepPlace& place, const program::Step& step);
  const TaskGroups& groups() const { return groups_; }

  Bytes moved, stated;  ///< that the device receives, by its tasks and by the steps of the program

 private:
  int number_of(const std::vector<int>& axes);

  VirtualDevices devices_;
  std::size_t device_, first_;
  TaskGroups groups_;
  std::map<std::vector<int>, int> numbers_;  ///< by axes
};

}  // namespace assay::engine

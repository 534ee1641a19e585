// Arrays of a GPU and the tasks that use them, in order; where arrays lie follows from when tasks use them.
#pragma once
#include <cstdint>
#include <initializer_list>
#include <map>
#include <vector>

#include "assay/engine/cuda/cuda_table.h"
#include "assay/engine/cuda/memory_plan.h"

namespace assay::engine {

/// A task without operands.
AssayCudaTask empty_task(int kernel);
/// A task of a step of the program (below 0: of none), with its operands and sizes in the order of its kernel.
AssayCudaTask task_of(int kernel, int step, std::initializer_list<int> in, std::initializer_list<int> out,
                      std::initializer_list<long long> sizes = {});
std::int64_t bytes_of_type(int type);

class TaskBuilder {
 public:
  /// An array from its first to its last task.
  int added(int type, std::int64_t elements);
  /// An array that stays from step to step.
  int kept(int type, std::int64_t elements);
  /// Elements of another array, from `first` on.
  int part_of(int whole, std::int64_t first, std::int64_t elements);
  /// An array of an earlier plan, which stays where it is.
  int fixed(const AssayCudaArray& array);

  /// Adds a task. What moves tokens to experts and back also gets their slots, which follow from the gates.
  void add(AssayCudaTask task);

  void add_sum(int step, int a, int b, int sum) {
    add(task_of(assay_cuda_add, step, {a, b}, {sum}, {array(sum).elements}));
  }

  /// An array stays in use until the last task so far.
  void keep(int number);

  /// Gives every array that is not fixed its place, from `start` on; returns where they end.
  std::int64_t place(std::int64_t start = 0);

  const AssayCudaArray& array(int number) const { return arrays_[static_cast<std::size_t>(number)]; }
  const std::vector<AssayCudaArray>& arrays() const { return arrays_; }
  const std::vector<AssayCudaTask>& tasks() const { return tasks_; }

 private:
  int slots_of(int gates, const AssayCudaTask& task);

  std::vector<AssayCudaArray> arrays_;
  std::vector<AssayCudaTask> tasks_;
  std::vector<Lifetime> lifetimes_;  ///< by array
  std::vector<int> parts_;           ///< by array: the one that it is a part of; below 0: none
  std::map<int, int> slots_;         ///< by array of gates
};

}  // namespace assay::engine

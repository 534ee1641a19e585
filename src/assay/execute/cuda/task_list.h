// The program of one device as a list of kernels over planned memory: what libassay-cuda.so runs.
#pragma once
#include <string>
#include <vector>

#include "assay/base/result.h"
#include "assay/execute/cuda/cuda_table.h"
#include "assay/execute/program/adam.h"
#include "assay/execute/program/run_program.h"

namespace assay::execute {

/// A weight of the model with its arrays.
struct TaskWeight {
  std::string name;
  Shape shape;
  int weight = -1, master = -1;
};

struct TaskList {
  std::vector<AssayCudaArray> arrays;
  std::vector<AssayCudaTask> tasks;  ///< of one optimizer step, all microbatches
  std::vector<AssayCudaStart> starts;
  std::vector<TaskWeight> weights;
  std::vector<std::int64_t> runs;  ///< by step of the program: how often it runs in an optimizer step
  std::int64_t bytes = 0;
  int tokens = -1, targets = -1;
};

/// The training step of a program of one device, which is not checked, in the order in which virtual devices run it. An
/// error names the first step that has no kernel.
Result<TaskList> task_list(const program::Program& program, const model::Transformer& model, std::uint64_t seed);

}  // namespace assay::execute

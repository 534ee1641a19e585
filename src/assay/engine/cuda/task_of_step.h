// The kernel of one step of a program: which one, and its sizes. Operands are still tensors of the program.
#pragma once
#include "assay/base/result.h"
#include "assay/engine/cuda/cuda_table.h"
#include "assay/engine/program/tensor_layout.h"
#include "assay/model/transformer.h"
#include "assay/program/form/program.h"

namespace assay::engine {

inline constexpr const char* cuda_remedy = "use --engine virtual, with a small model";

/// Where a step runs: on one device of the program's mesh.
struct StepPlace {
  const program::Program& program;
  const TensorLayout& layout;
  std::size_t device = 0;
  const model::Layer* layer = nullptr;  ///< nullptr: embedding and head
  double tokens = 1;                    ///< the loss is averaged over these
  bool in_blocks = false;               ///< attention is over one block of keys after the other
};

/// An error where no kernel does what the step says.
Result<AssayCudaTask> task_of_step(const StepPlace& place, const program::Step& step);

/// Puts the arrays of its input tensors into a task; an error where one comes from another layer.
Result<void> find_arrays(const program::Program& program, const program::Step& step, const std::vector<int>& arrays,
                         AssayCudaTask& task);

/// Whether a kernel can add to what its result holds.
bool adds_up(const AssayCudaTask& task);

int type_of(const program::ProgramTensor& tensor);
/// On one device.
std::int64_t elements_of(const program::ProgramTensor& tensor);
std::int64_t local_size(const program::Program& program, const program::ProgramTensor& tensor, std::size_t dim);

}  // namespace assay::engine

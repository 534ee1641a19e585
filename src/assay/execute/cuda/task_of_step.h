// The kernel of one step of a program: which one, and its sizes. Operands are still tensors of the program.
#pragma once
#include "assay/base/result.h"
#include "assay/execute/cuda/cuda_table.h"
#include "assay/model/transformer.h"
#include "assay/program/program.h"

namespace assay::execute {

inline constexpr const char* cuda_remedy = "use --engine virtual, with a small model";

/// An error where no kernel does what the step says. `layer`: nullptr for embedding and head; the loss is averaged
/// over `tokens`.
Result<AssayCudaTask> task_of_step(const program::Program& program, const program::Step& step,
                                   const model::Layer* layer, double tokens);

/// Whether a kernel can add to what its result holds.
bool adds_up(const AssayCudaTask& task);

int type_of(const program::ProgramTensor& tensor);
std::int64_t elements_of(const program::ProgramTensor& tensor);

}  // namespace assay::execute

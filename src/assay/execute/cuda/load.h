// The library that runs kernels on a GPU, loaded when a run asks for it.
#pragma once
#include <string>

#include "assay/base/result.h"
#include "assay/execute/cuda/cuda_table.h"

namespace assay::execute {

/// `programs` is the directory of this program.
Result<const AssayCuda*> load_cuda(const std::string& programs);

}  // namespace assay::execute

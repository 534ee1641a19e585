// The library that runs kernels on a GPU, loaded when a run asks for it.
#pragma once
#include <string>

#include "assay/base/result.h"
#include "assay/engine/cuda/cuda_table.h"

namespace assay::engine {

/// `programs` is the directory of this program.
Result<const AssayCuda*> load_cuda(const std::string& programs);

/// What a function of the library says went wrong; null is nothing.
inline Result<void> told_by_engine(
    const char* why, const char* hint = "nvidia-smi shows the GPU's state; --engine virtual runs without one") {
  if (!why) return {};
  return fail("--engine cuda", why, hint, Error::Kind::missing);
}

}  // namespace assay::engine

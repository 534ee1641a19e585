// Collectives between the GPUs of this machine: nccl/ implements them with NCCL, no_nccl/ replaces it elsewhere.
#pragma once
#include "assay/lab/measure/gpu.h"

namespace assay::measure::cuda {

/// Adds rows all_gather, reduce_scatter, all_reduce and all_to_all in bf16 over 2, 4, ... GPUs, and notes anything
/// missing. A single GPU still runs them to check that the library works.
void measure_collectives(Measurement& out, Extent extent);

}  // namespace assay::measure::cuda

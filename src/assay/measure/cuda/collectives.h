// Collectives between the GPUs of this machine. nccl/ holds them where NCCL is, no_nccl/ stands in elsewhere.
#pragma once
#include "assay/measure/gpu.h"

namespace assay::measure::cuda {

/// Adds rows all_gather, reduce_scatter, all_reduce and all_to_all in bf16 over 2, 4, ... GPUs, and notes what is
/// missing. One GPU alone is still used to see that the library works.
void measure_collectives(Measurement& out, Extent extent);

}  // namespace assay::measure::cuda

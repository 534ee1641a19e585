// Measures this machine's processor: products through BLAS, and the speed of memory reads and copies by size.
#pragma once
#include "assay/lab/measure/grid.h"
#include "assay/lab/measure/machine.h"
#include "assay/lab/measure/rows.h"

namespace assay::measure {

struct CpuRequest {
  Extent extent = Extent::full;
  int threads = 0;  ///< 0: one per core
};

/// Rows `gemm` in fp32 and fp64 and `copy` read operands from main memory: each call takes the next part of a pool
/// larger than any cache. Rows `read` go over the same bytes repeatedly, so that small ones show the caches. Every row
/// is a median after a warm-up. Facts describe the machine, its clock and the library.
Measurement measure_cpu(const CpuRequest& request, const Machine& machine);

/// The clock of this thread's core under load: a chain of additions of one cycle each.
Hertz measured_clock();

}  // namespace assay::measure

// Measures a GPU through its libraries: cuda/ with the CUDA toolkit, no_cuda/ without.
// Standard library only, see rows.h.
#pragma once
#include <string>

#include "assay/lab/measure/grid.h"
#include "assay/lab/measure/rows.h"

namespace assay::measure {

struct GpuRequest {
  Extent extent = Extent::full;
  int device = 0;
};

/// Rows `gemm` and `bmm` in bf16 and fp8 (e4m3, result bf16), `copy` on the device, `upload` and `download` between
/// host and device, attention with cuDNN. A product runs as a graph of one kernel between two events, after flushing
/// the L2 cache; operands are random. Rows with the note "sustained" are the mean of a long series of the same
/// product. A failure becomes a note; without a GPU there are no rows.
Measurement measure_gpu(const GpuRequest& request);

}  // namespace assay::measure

// Measures a GPU through its libraries. cuda/ holds it where the CUDA toolkit is, no_cuda/ stands in elsewhere.
// Standard library only, see rows.h.
#pragma once
#include <string>

#include "assay/measure/grid.h"
#include "assay/measure/rows.h"

namespace assay::measure {

struct GpuRequest {
  Extent extent = Extent::full;
  int device = 0;
};

/// Rows `gemm` and `bmm` in bf16 and fp8 (e4m3, result bf16), `copy` on the device, `upload` and `download` between
/// host and device, attention where cuDNN is. A product runs as a graph of one kernel between two events, the L2 cache
/// flushed before; operands are random. Rows with the note "sustained" are the mean of a long train of the same
/// product. What fails becomes a note; a GPU that is not there leaves no rows.
Measurement measure_gpu(const GpuRequest& request);

}  // namespace assay::measure

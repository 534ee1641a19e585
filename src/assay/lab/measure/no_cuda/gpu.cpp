#include "assay/lab/measure/gpu.h"

namespace assay::measure {

Measurement measure_gpu(const GpuRequest&) {
  Measurement nothing;
  nothing.notes.emplace_back(
      "this program was built without the CUDA toolkit, so no GPU can be measured; build it where nvcc and cuBLASLt "
      "are, "
      "or measure there with assay-measure-cuda and give its table to --rows");
  return nothing;
}

}  // namespace assay::measure

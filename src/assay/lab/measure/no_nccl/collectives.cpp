#include "assay/lab/measure/cuda/collectives.h"

namespace assay::measure::cuda {

void measure_collectives(Measurement& out, Extent) {
  out.notes.emplace_back("no collectives between GPUs: this program was built without NCCL");
}

}  // namespace assay::measure::cuda

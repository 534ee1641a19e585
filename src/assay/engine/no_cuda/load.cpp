// Where no library can be loaded there is no GPU.
#include "assay/engine/cuda/load.h"

namespace assay::engine {

Result<const AssayCuda*> load_cuda(const std::string&) {
  return fail("--engine cuda", "there is no CUDA here", "use --engine virtual", Error::Kind::missing);
}

}  // namespace assay::engine

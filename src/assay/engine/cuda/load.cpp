#include "assay/engine/cuda/load.h"

#include <dlfcn.h>

namespace assay::engine {

Result<const AssayCuda*> load_cuda(const std::string& programs) {
  constexpr const char* name = "libassay-cuda.so";
  std::string why;
  void* library = nullptr;
  for (const std::string& directory : {programs + "/", programs + "/../lib/assay/"}) {
    library = dlopen((directory + name).c_str(), RTLD_NOW | RTLD_LOCAL);
    if (library) break;
    if (const char* text = dlerror(); text && why.empty()) why = text;
  }
  if (!library)
    return fail("--engine cuda", "this engine is not there: " + why,
                "install CUDA with cuDNN and build again, or use --engine virtual", Error::Kind::missing);
  const auto* table = static_cast<const AssayCuda*>(dlsym(library, ASSAY_CUDA_TABLE));
  if (!table || table->version != ASSAY_CUDA_VERSION)
    return fail("--engine cuda", std::string(name) + " belongs to another version of assay", "build both again",
                Error::Kind::missing);
  return table;
}

}  // namespace assay::engine

#include "assay/profile/trace/bytes.h"

namespace assay::trace {

Result<std::string> inflated(std::string_view, std::string_view file) {
  return fail(std::string(file), "this build of assay does not read compressed files", "decompress it: gunzip FILE");
}

}  // namespace assay::trace

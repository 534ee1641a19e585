#include "assay/profile/trace/bytes.h"

namespace assay::trace {

Result<std::string> inflated(std::string_view, std::string_view file, Bytes) {
  return fail(std::string(file), "this build of assay does not read compressed files", "decompress it: gunzip FILE");
}

Result<SpooledFile> spooled(const std::string& path, std::string_view) {
  return fail(path, "this build of assay reads neither compressed archives nor pipes", "name a plain file");
}

}  // namespace assay::trace

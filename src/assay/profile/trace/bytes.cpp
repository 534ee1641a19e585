#include "assay/profile/trace/bytes.h"

#include "assay/hardware/catalogue.h"

namespace assay::trace {

Result<std::string> file_bytes(const std::string& path, std::string_view where) {
  return hardware::read_file(path, where, {largest_profile, "profile fewer steps"});
}

}  // namespace assay::trace

#include "assay/profile/trace/readers.h"

namespace assay::trace {

Result<Trace> read_nsys(std::string_view, std::string_view file, const Vocabulary&) {
  return fail(std::string(file), "this build of assay does not read databases", "use the command line");
}

}  // namespace assay::trace

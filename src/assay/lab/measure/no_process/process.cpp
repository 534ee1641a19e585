// Where one program cannot run another.
#include "assay/lab/measure/process.h"

namespace assay::measure {

Result<ProcessOutput> run_process(const std::vector<std::string>& words) {
  return fail(words.front(), "programs cannot be run here", "use the command line", Error::Kind::missing);
}

}  // namespace assay::measure

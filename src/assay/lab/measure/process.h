// Runs another program and captures its output.
#pragma once
#include <string>
#include <vector>

#include "assay/base/result.h"

namespace assay::measure {

struct ProcessOutput {
  int status = 0;  ///< its exit code; 128 + the signal that ended it
  std::string text;
};

/// `words` are the program, by path or name, and its arguments. Its stderr is passed through.
Result<ProcessOutput> run_process(const std::vector<std::string>& words);

}  // namespace assay::measure

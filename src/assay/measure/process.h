// Runs another program and takes what it prints.
#pragma once
#include <string>
#include <vector>

#include "assay/base/result.h"

namespace assay::measure {

struct ProcessOutput {
  int status = 0;  ///< its exit code; 128 + the signal that ended it
  std::string text;
};

/// `words` are the program, by path or by name, and its arguments. What it prints on stderr is passed on.
Result<ProcessOutput> run_process(const std::vector<std::string>& words);

}  // namespace assay::measure

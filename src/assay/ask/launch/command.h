// Files and command lines of users: which program they are for, and the options that they give.
#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "assay/ask/launch/document.h"
#include "assay/ask/launch/target.h"
#include "assay/base/result.h"

namespace assay::launch {

struct FoundOptions {
  Target target;
  std::vector<Given> given;
  std::vector<std::string> notes;  ///< files that the command names and that cannot be read
};

/// Reads a file (TOML, YAML, JSON or a script) or a command line.
Result<FoundOptions> find_options(const std::vector<Target>& targets, const std::string& from, std::string_view where);

/// The same of the text of a script.
Result<FoundOptions> find_options_in(const std::vector<Target>& targets, std::string_view script,
                                     std::string_view where);

}  // namespace assay::launch

// Files and command lines of users: which program they are for, and the options that they give.
#pragma once
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "assay/ask/launch/document.h"
#include "assay/ask/launch/job.h"
#include "assay/ask/launch/target.h"
#include "assay/base/result.h"

namespace assay::launch {

/// What files are read with.
struct Reader {
  std::span<const Target> targets;
  const Jobs& jobs;
  Variables given;        ///< variables of the environment
  std::string directory;  ///< where files are that are named without their place
  bool reads_files = true;
};

struct FoundOptions {
  Target target;
  std::vector<Given> given;
  Settings job;                    ///< what starts the program says of chips: as of a Job
  std::vector<std::string> asked;  ///< files of options whose names only a shell knows
  std::vector<std::string> unset;  ///< variables that conditions ask for
  Variables variables;             ///< of its script, at its end
  std::vector<std::string> notes;  ///< files that the command names and that cannot be read, and other commands
};

/// Reads a file (TOML, YAML, JSON, prose or a script) or a command line.
Result<FoundOptions> find_options(Reader reader, const std::string& from, std::string_view where);

/// The same of the text of a script.
Result<FoundOptions> find_options_in(const Reader& reader, std::string_view script, std::string_view where);

}  // namespace assay::launch

// A plan as something to run: a shell script with its configuration, or a job of a cluster's launcher.
#pragma once
#include <string>
#include <vector>

#include "assay/ask/launch/document.h"
#include "assay/ask/launch/target.h"

namespace assay::launch {

struct ScriptParts {
  std::string name;                    ///< of the job
  std::vector<std::string> header;     ///< comments
  std::string maker;                   ///< of the chip
  const Launcher* launcher = nullptr;  ///< nullptr: a plain script
};

/// The whole text. Nothing in it that came from a user is run by a shell.
Result<std::string> write_script(const Target& target, const std::vector<Line>& lines, const Settings& plan,
                                 const ScriptParts& parts);

/// The lines of a text, as they are.
std::vector<std::string> lines_in(std::string_view text);

}  // namespace assay::launch

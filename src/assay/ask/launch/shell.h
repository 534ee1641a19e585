// Shell text: words quoted so that a shell takes them as they are, and scripts read without running them.
#pragma once
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "assay/base/result.h"

namespace assay::launch {

/// The word as a POSIX shell reads it back: plain where that is safe, else in single quotes.
std::string shell_quoted(std::string_view word);

using Variables = std::map<std::string, std::string, std::less<>>;

/// What a script is read with.
struct ShellSurroundings {
  Variables given;     ///< values that nothing in the script changes; arguments go by their numbers
  Variables standard;  ///< values of the environment
  std::vector<std::string> script_options;  ///< options whose value is a script, e.g. --command
  std::string directory;                    ///< where files that it reads are
};

/// What a script would run.
struct ShellScript {
  std::vector<std::vector<std::string>> commands;
  Variables files;                   ///< that it writes, by name
  Variables variables;               ///< as they are at its end; lists as words
  std::vector<std::string> unset;    ///< variables whose value nothing gives, where a condition asks for them
  std::vector<std::string> missing;  ///< scripts that it reads and that are not there
};

/// Reads a script or a command line, as a shell would run it without arguments in an empty environment, but that files
/// exist, programs succeed and nothing exits. Words keep `$NAME` and `$(...)` where only a shell knows the value.
Result<ShellScript> read_shell(std::string_view text, std::string_view where, const ShellSurroundings& around = {});

}  // namespace assay::launch

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

/// What a script would run: its commands with the variables it sets itself put in, and the files it writes.
struct ShellScript {
  std::vector<std::vector<std::string>> commands;
  std::map<std::string, std::string, std::less<>> files;  ///< of here-documents, by name
};

/// Reads a script or a command line. Branches and loops are not run: assignments in them are left out, so that words
/// keep `$NAME` where only a branch sets it. What cannot be known ($(...), other variables) stays as written.
Result<ShellScript> read_shell(std::string_view text, std::string_view where);

}  // namespace assay::launch

// Configuration files as flat lists of options, "parallelism.tensor_parallel_degree" and its value, and back.
#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "assay/ask/launch/target.h"
#include "assay/base/result.h"

namespace assay::launch {

/// An option as a file or a command line gives it. Lists are joined by commas; a flag alone is "true".
struct Given {
  std::string name, value;
  bool launcher = false;  ///< stands before the program that it starts
};

/// The options of a file in one of the styles of files.
Result<std::vector<Given>> read_document(Style style, std::string_view text, std::string_view file);
/// The same of YAML; the only user of the YAML library.
Result<std::vector<Given>> read_yaml(std::string_view text, std::string_view file);

/// One option of a plan for a target, and why it is so.
struct Line {
  std::string name, value, reason;
  bool is_text = false;   ///< quoted even where it looks like a number
  bool launcher = false;  ///< of the program that starts the processes
  bool first = false;     ///< an argument without a name
};

/// A file with a comment for each line; JSON has none.
std::string write_document(Style style, const std::vector<Line>& lines);

}  // namespace assay::launch

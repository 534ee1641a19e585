// Configuration files as flat lists of options, "parallelism.tensor_parallel_degree" and its value, and back.
#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "assay/ask/launch/target.h"
#include "assay/base/result.h"
#include "assay/model/checkpoint/json_reader.h"

namespace assay::launch {

/// An option as a file or a command line gives it. Lists are joined by commas; a flag alone is "true".
struct Given {
  std::string name, value;
  bool launcher = false;  ///< stands before the program that it starts
};

/// A file in one of the styles of files as trees, one for each document in it.
Result<std::vector<model::Json>> read_trees(Style style, std::string_view text, std::string_view file);
/// The documents of a YAML file as trees whose scalars stay texts; the only user of the YAML library.
Result<std::vector<model::Json>> read_yaml(std::string_view text, std::string_view file);
/// A tree as options; lists are joined by commas.
std::vector<Given> flat(const model::Json& tree);
/// The options of a file.
Result<std::vector<Given>> read_document(Style style, std::string_view text, std::string_view file);
/// A number, a text or a truth as text.
std::string scalar_of(const model::Json& node);

/// One option of a plan for a target, and why it is so.
struct Line {
  std::string name, value, reason;
  bool is_text = false;      ///< quoted even where it looks like a number
  bool is_list = false;      ///< a list in a file: its items, separated by commas
  bool launcher = false;     ///< of the program that starts the processes
  bool first = false;        ///< an argument without a name
  bool environment = false;  ///< a variable, exported before the program starts
};

/// A file with a comment for each line; JSON has none.
std::string write_document(Style style, const std::vector<Line>& lines);

}  // namespace assay::launch

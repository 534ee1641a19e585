// What the values of arguments and options are: the meaning of the placeholders in the verb table. Schema, completion
// and the check of what touches files come from here.
#pragma once
#include <map>
#include <string>
#include <string_view>

#include "assay/ask/verbs/request.h"

namespace assay::verbs {

enum class ValueKind {
  flag,
  text,
  choice,     ///< one of the option's choices
  count,      ///< 4096, 4Mi, 15T
  number,     ///< 1.25
  share,      ///< 0.5 or 50%
  quantity,   ///< a number with a unit
  dtype,      ///< a number format
  chip,       ///< of the catalogue
  cluster,    ///< CHIP, CHIP:N, CHIP:AxB, ... or @file
  model,      ///< of the catalogue, or @file, or a path, or a configuration in JSON
  software,   ///< of the catalogue
  file,       ///< a path that is read or written
  directory,  ///< the same
  catalogue,  ///< a directory of files, or the files in JSON
  records,    ///< a path that is read, or JSON lines
  request,    ///< another request: a command line, JSON, or @file
  provider,   ///< of prices, or a path of a table of them
};

struct ValueType {
  ValueKind kind = ValueKind::text;
  std::string_view unit = {};  ///< of a quantity, in base units
};

ValueType type_of(const OptionSpec& option);
ValueType type_of(const VerbSpec& verb, const ArgumentSpec& argument);
std::string_view name(ValueKind kind);
/// Whether the value of a given option is a path.
bool names_path(const Request& request, std::string_view option);
/// Whether JSON may hold an object for such a value.
bool may_be_object(ValueKind kind);

/// Whether a placeholder of the verb table has a meaning here.
bool is_known_placeholder(std::string_view value);

/// Whether a request reads or writes files, runs programs, or may do so by what its arguments and options say, but for
/// files that came with it. Front ends that serve others refuse such requests; the error names what it is.
Result<void> check_without_files(const Request& request, const std::map<std::string, std::string_view>& attached = {});

}  // namespace assay::verbs

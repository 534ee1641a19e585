// Where there is no libyaml.
#include "assay/ask/launch/document.h"

namespace assay::launch {

Result<std::vector<model::Json>> read_yaml(std::string_view, std::string_view file) {
  return fail(std::string(file), "this build reads no YAML", "write it as JSON or TOML, or use the command line");
}

}  // namespace assay::launch

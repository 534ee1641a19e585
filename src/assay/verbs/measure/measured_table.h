// Where `assay measure` takes its rows from: this machine's processor and ranks, a GPU, or a file.
#pragma once
#include <string>
#include <vector>

#include "assay/base/result.h"
#include "assay/verbs/request.h"

namespace assay::verbs::measure {

/// A table in the form of measure/rows.h.
struct MeasuredTable {
  std::string text, file;          ///< `file` names it in errors
  std::vector<std::string> notes;  ///< what could not be measured
};
Result<MeasuredTable> measured_table(const Request& request, const Context& context);

/// The command that reproduces this table.
std::string measure_command(const Request& request);

}  // namespace assay::verbs::measure

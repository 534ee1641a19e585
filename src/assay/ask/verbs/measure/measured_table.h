// Where `assay measure` takes its rows from: this machine's processor and ranks, a GPU, or a file.
#pragma once
#include <string>
#include <vector>

#include "assay/ask/report/document.h"
#include "assay/ask/verbs/request.h"
#include "assay/base/result.h"
#include "assay/engine/ranks/mpi.h"

namespace assay::verbs::measure_verb {

/// A table in the form of lab/measure/rows.h.
struct MeasuredTable {
  std::string text, file;                                    ///< `file` names it in errors
  std::vector<std::string> notes;                            ///< what could not be measured
  report::Items contention{};                                ///< of two collectives at once
  report::Items ranks{};                                     ///< how long each takes for the same work
  std::vector<std::pair<std::string, std::string>> files{};  ///< to be written besides: path below the directory, text
};
Result<MeasuredTable> measured_table(const Request& request, const Context& context);
/// The same of a core and of the collectives between ranks. To be called by all of them; the first one has the table.
Result<MeasuredTable> network_table(const Request& request, const Context& context, engine::Transport& ranks);

/// The command that reproduces this table.
std::string measure_command(const Request& request);

}  // namespace assay::verbs::measure_verb

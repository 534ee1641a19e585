// The parts of `assay measure` besides the answer itself.
#pragma once
#include <string>
#include <vector>

#include "assay/ask/report/document.h"
#include "assay/ask/verbs/profile/profile.h"
#include "assay/ask/verbs/request.h"
#include "assay/base/result.h"
#include "assay/engine/ranks/mpi.h"

namespace assay::verbs::measure_verb {

// Where `assay measure` takes its rows from: this machine's processor and ranks, a GPU, or a file.

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

/// What the written files change: with --out, nothing until a command names the directory.
std::string written_note(const Request& request, const std::string& directory, const std::string& chip);

// Calibrations from profiles: kernels inside of real steps, as rows of a table.

/// A profile with its products and attention as a table in the form of lab/measure/rows.h.
struct ProfiledRows {
  profile::Query query;
  MeasuredTable table;
};
Result<ProfiledRows> profiled_rows(const std::string& file, std::string_view where, const Context& context);

/// The answer of --profile: the calibration of the chip with what its kernels say, and how much nearer it is.
Result<report::Response> answer_profiles(const Request& request, const Context& context, const std::string& directory);

}  // namespace assay::verbs::measure_verb

// For builds without SQLite.
#include "assay/ask/verbs/fleet/fleet.h"

namespace assay::verbs::fleet {

Result<RowSink> database_sink(const std::vector<std::string>&, const std::string& file) {
  return fail(file, "this build has no SQLite", "rows as CSV or JSON lines: --rows rows.csv");
}

}  // namespace assay::verbs::fleet

// For builds without SQLite.
#include "assay/ask/sweep/tables.h"

namespace assay::sweep {

Result<void> write_database(const std::string& path, const Store&, std::span<const std::string>, const Columns&) {
  return fail(path, "this build has no SQLite", "use the CSV file or the rows as JSON");
}

}  // namespace assay::sweep

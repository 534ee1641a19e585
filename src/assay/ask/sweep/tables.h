// The rows of a sweep as tables for other programs: CSV, and a database of SQLite.
#pragma once
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "assay/ask/sweep/store.h"
#include "assay/base/result.h"

namespace assay::sweep {

/// Arguments first, then what was found; a unit is empty where a column has none.
struct Columns {
  std::vector<std::string> arguments;
  std::vector<std::pair<std::string, std::string>> results;  ///< path and unit

  /// Takes in a row's.
  void add(const Row& row);
  /// The results of a row in this order; null where it has none.
  std::vector<const report::Value*> results_of(const Row& row) const;

 private:
  /// The place of a result, which is most often where the one before it suggests; results.size() if there is none.
  std::size_t place_of(const std::string& path, std::size_t guess) const;
};

/// Quantities are in base units, which the head names: "step_time.estimate [s]".
Result<void> write_csv(const std::string& path, const Store& store, std::span<const std::string> requests,
                       const Columns& columns);
/// Tables `answers`, with a column for each argument (`arg.on`) and result (`step_time.estimate`), and `units`.
Result<void> write_database(const std::string& path, const Store& store, std::span<const std::string> requests,
                            const Columns& columns);

}  // namespace assay::sweep

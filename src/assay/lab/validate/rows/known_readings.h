// What the configurations behind a table say that its columns leave out or get wrong:
// catalogue/validation/readings.toml.
#pragma once
#include <string>
#include <utility>
#include <vector>

#include "assay/hardware/catalogue.h"
#include "assay/lab/validate/rows/csv_schema.h"

namespace assay::validate {

class KnownReadings {
 public:
  static Result<KnownReadings> make(const hardware::Catalogue& catalogue);
  /// Rewrites the fields of the rows that are known; says of every row why it cannot be asked, if so.
  std::vector<Why> apply(CsvTable& table) const;

 private:
  using Pairs = std::vector<std::pair<std::string, std::string>>;
  struct Reading {
    Pairs where;  ///< columns and their texts, * for any part
    Pairs set;    ///< columns and what they say instead
    Why refused;

    bool is_of(const CsvTable& table, std::size_t row) const;
  };
  std::vector<Reading> readings_;
};

}  // namespace assay::validate

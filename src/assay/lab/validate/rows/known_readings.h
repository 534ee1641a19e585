// What the configurations behind a table say that its columns leave out or get wrong:
// catalogue/validation/readings.toml.
#pragma once
#include <fmt/format.h>

#include <string>
#include <utility>
#include <vector>

#include "assay/hardware/catalogue.h"
#include "assay/lab/validate/rows/table_line.h"

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

/// The rows of a table after its readings; `read` fills a row, or says why it cannot be predicted.
template <class Rows, class Read>
Result<Rows> rows_after_readings(CsvTable table, const hardware::Catalogue& catalogue, Read read) {
  ASSAY_TRY(readings, KnownReadings::make(catalogue));
  const std::vector<Why> refused = readings.apply(table);
  Rows out;
  for (std::size_t i = 0; i < table.rows(); ++i) {
    typename decltype(out.rows)::value_type row;
    if (auto why = refused[i] ? refused[i] : read(TableLine{table, i}, row))
      out.unanswered.push_back({std::string(table.text(i, "id")),
                                fmt::format("{}, {}", table.text(i, "source_key"), table.text(i, "op")),
                                std::move(*why)});
    else
      out.rows.push_back(std::move(row));
  }
  return out;
}

}  // namespace assay::validate

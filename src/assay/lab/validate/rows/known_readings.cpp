#include "assay/lab/validate/rows/known_readings.h"

#include <algorithm>

#include "assay/base/record_reader.h"
#include "assay/predict/kernel/software/version_numbers.h"

namespace assay::validate {

Result<KnownReadings> KnownReadings::make(const hardware::Catalogue& catalogue) {
  KnownReadings known;
  const auto read_columns = [](RecordReader& reader, std::string_view key, Pairs& columns) {
    reader.each_key(key, [&](const std::string& name, RecordReader& inner) {
      auto& [column, text] = columns.emplace_back(name, "");
      inner.text(column, text);
    });
  };
  for (const auto& [path, text] : catalogue.files("validation/readings.toml")) {
    RecordFile shared{.name = path};
    ASSAY_CHECK(read_record(text, shared, [&](RecordReader& reader) {
      reader.sources();
      reader.items("reading", known.readings_, [&](Reading& one, RecordReader& inner) {
        read_columns(inner, "where", one.where);
        read_columns(inner, "set", one.set);
        inner.text("refused", one.refused);
        if (one.where.empty())
          inner.fault("where", "a reading of every row of every table", "name a column and its text");
        if (one.set.empty() != one.refused.has_value())
          inner.fault("set", "a reading either sets columns or is refused");
      });
    }));
  }
  return known;
}

bool KnownReadings::Reading::is_of(const CsvTable& table, std::size_t row) const {
  return std::all_of(where.begin(), where.end(), [&](const auto& column) {
    return table.has(column.first) && kernel::matches(column.second, table.text(row, column.first));
  });
}

std::vector<Why> KnownReadings::apply(CsvTable& table) const {
  std::vector<Why> refused(table.rows());
  for (std::size_t row = 0; row < table.rows(); ++row)
    for (const Reading& one : readings_) {
      if (!one.is_of(table, row)) continue;
      for (const auto& [column, text] : one.set) table.put(row, column, text);
      if (one.refused) refused[row] = one.refused;
    }
  return refused;
}

}  // namespace assay::validate

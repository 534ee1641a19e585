// Where tables of measurements come from: the catalogue, or the directory given by --data.
#pragma once
#include <fmt/format.h>

#include <set>
#include <string>
#include <string_view>
#include <utility>

#include "assay/hardware/catalogue.h"
#include "assay/lab/validate/rows/csv.h"
#include "assay/lab/validate/validation.h"

namespace assay::validate {

Result<CsvTable> catalogue_table(const hardware::Catalogue& catalogue, std::string_view path);
/// `file` below `directory`, which --data gave.
Result<CsvTable> data_table(const std::string& directory, std::string_view file);
bool has_data(const ValidationInput& input, std::string_view file);

/// The rows of one of our tables, plus rows of the --data table that ours does not have: no fit uses those.
/// `key` identifies a row.
template <class Read, class Key>
auto measured_rows(const ValidationInput& input, std::string_view ours, std::string_view given, Read read, Key key)
    -> decltype(read(std::declval<CsvTable>())) {
  ASSAY_TRY(table, catalogue_table(input.catalogue, ours));
  ASSAY_TRY(rows, read(table));
  if (!has_data(input, given)) return rows;
  std::set<std::string> known;
  for (const auto& row : rows.rows) known.insert(key(row));
  for (const auto& row : rows.unanswered) known.insert(row.id);
  ASSAY_TRY(other, data_table(*input.data, given));
  ASSAY_TRY(more, read(other));
  for (auto& row : more.rows) {
    if (known.contains(key(row))) continue;
    row.fold = held_out;
    rows.rows.push_back(std::move(row));
  }
  for (auto& row : more.unanswered)
    if (!known.contains(row.id)) rows.unanswered.push_back(std::move(row));
  return rows;
}

/// Cases of the published rows of the catalogue (with --data also of its own file `published/FILE`), and with --data of
/// `third_party/FILE`.
template <class Read, class Key, class Add>
Result<ValidationResult> published_cases(const ValidationInput& input, std::string_view ours, std::string_view file,
                                         Read read, Key key, Add add) {
  const std::string given = fmt::format("published/{}", file), others = fmt::format("third_party/{}", file);
  ASSAY_TRY(rows, measured_rows(input, ours, given, read, key));
  ValidationResult result;
  add(rows, result);
  if (input.data && (has_data(input, others) || !has_data(input, given))) {
    ASSAY_TRY(table, data_table(*input.data, others));
    ASSAY_TRY(more, read(table));
    add(more, result);
  }
  return result;
}

}  // namespace assay::validate

// Tables of measurements as comma-separated text.
#pragma once
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "assay/base/result.h"

namespace assay::validate {

/// A table with named columns. Lines that start with # are comments; a field in double quotes may hold commas.
class CsvTable {
 public:
  /// `file` names the place in errors. Every row must have as many fields as the header, whose names must differ.
  static Result<CsvTable> parse(std::string_view text, std::string_view file);

  std::size_t rows() const { return lines_.size(); }
  bool has(std::string_view column) const { return columns_.find(column) != columns_.end(); }
  /// The text of a field; empty if the table has no such column.
  std::string_view text(std::size_t row, std::string_view column) const;
  /// Its number; `missing` if it is empty or not a number.
  double number(std::size_t row, std::string_view column, double missing = 0.0) const;
  /// Rewrites a field; does nothing if the table has no such column.
  void put(std::size_t row, std::string_view column, std::string text);
  /// The line of a row in the file.
  int line(std::size_t row) const { return numbers_[row]; }

 private:
  std::map<std::string, std::size_t, std::less<>> columns_;
  std::vector<std::vector<std::string>> lines_;
  std::vector<int> numbers_;
};

/// The contents of a data file of at most 256 MiB; `where` names the option it came from.
Result<std::string> read_data(const std::string& path, std::string_view where);

}  // namespace assay::validate

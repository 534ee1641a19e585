#include "assay/lab/validate/rows/csv.h"

#include <fmt/format.h>

#include "assay/base/text.h"
#include "assay/hardware/catalogue.h"

namespace assay::validate {
namespace {

/// Reads one record from `at` on and moves `at` past its end of line. Quotes group; a doubled quote is one quote.
std::vector<std::string> read_record(std::string_view text, std::size_t& at, int& line) {
  std::vector<std::string> fields(1);
  bool quoted = false;
  for (; at < text.size(); ++at) {
    const char c = text[at];
    if (c == '\n') ++line;
    if (quoted) {
      if (c != '"')
        fields.back() += c;
      else if (at + 1 < text.size() && text[at + 1] == '"') {
        fields.back() += c;
        ++at;
      } else
        quoted = false;
    } else if (c == '"') {
      quoted = true;
    } else if (c == ',') {
      fields.emplace_back();
    } else if (c == '\n') {
      ++at;
      break;
    } else if (c != '\r') {
      fields.back() += c;
    }
  }
  return fields;
}

}  // namespace

Result<CsvTable> CsvTable::parse(std::string_view text, std::string_view file) {
  CsvTable table;
  std::size_t at = 0;
  int line = 1;
  while (at < text.size()) {
    const int begin = line;
    const bool comment = text[at] == '#';
    std::vector<std::string> fields = read_record(text, at, line);
    if (comment || (fields.size() == 1 && trim(fields[0]).empty())) continue;
    const std::string where = fmt::format("{}:{}", file, begin);
    if (table.columns_.empty()) {
      for (std::size_t i = 0; i < fields.size(); ++i)
        if (!table.columns_.emplace(fields[i], i).second)
          return fail(where, fmt::format("column {} stands twice", in_quotes(fields[i])), "");
      continue;
    }
    if (fields.size() != table.columns_.size())
      return fail(where, fmt::format("{} fields where the header has {}", fields.size(), table.columns_.size()),
                  "a field with commas stands in double quotes");
    table.lines_.push_back(std::move(fields));
    table.numbers_.push_back(begin);
  }
  if (table.columns_.empty()) return fail(std::string(file), "the table is empty", "its first line names the columns");
  return table;
}

std::string_view CsvTable::text(std::size_t row, std::string_view column) const {
  const auto found = columns_.find(column);
  return found == columns_.end() ? std::string_view() : std::string_view(lines_[row][found->second]);
}

double CsvTable::number(std::size_t row, std::string_view column, double missing) const {
  return parse_number(trim(text(row, column))).value_or(missing);
}

void CsvTable::put(std::size_t row, std::string_view column, std::string text) {
  if (const auto found = columns_.find(column); found != columns_.end()) lines_[row][found->second] = std::move(text);
}

Result<std::string> read_data(const std::string& path, std::string_view where) {
  return hardware::read_file(
      path, where,
      {256_MiB, "", where == "--data" ? "give the directory that holds the data sets" : "is the path right?"});
}

}  // namespace assay::validate

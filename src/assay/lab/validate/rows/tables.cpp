#include "assay/lab/validate/rows/tables.h"

#include <fmt/format.h>

#include <filesystem>

namespace assay::validate {

Result<CsvTable> catalogue_table(const hardware::Catalogue& catalogue, std::string_view path) {
  for (const auto& [name, text] : catalogue.files(path)) return CsvTable::parse(text, name);
  return fail(std::string(path), "is not in the catalogue", "", Error::Kind::missing);
}

Result<CsvTable> data_table(const std::string& directory, std::string_view file) {
  ASSAY_TRY(text, read_data(fmt::format("{}/{}", directory, file), "--data"));
  return CsvTable::parse(text, file);
}

bool has_data(const ValidationInput& input, std::string_view file) {
  std::error_code failed;
  return input.data && std::filesystem::is_regular_file(fmt::format("{}/{}", *input.data, file), failed);
}

}  // namespace assay::validate

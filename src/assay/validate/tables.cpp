#include "assay/validate/tables.h"

#include <fmt/format.h>

namespace assay {

Result<CsvTable> catalogue_table(const Catalogue& catalogue, std::string_view path) {
  for (const auto& [name, text] : catalogue.files(path)) return CsvTable::parse(text, name);
  return fail(std::string(path), "is not in the catalogue", "", Error::Kind::missing);
}

Result<CsvTable> data_table(const std::string& directory, std::string_view file) {
  ASSAY_TRY(text, read_data(fmt::format("{}/{}", directory, file), "--data"));
  return CsvTable::parse(text, file);
}

}  // namespace assay

// Where the tables of measurements lie: in the catalogue, or in the directory of --data.
#pragma once
#include <string>
#include <string_view>

#include "assay/hardware/catalogue.h"
#include "assay/validate/csv.h"

namespace assay {

Result<CsvTable> catalogue_table(const Catalogue& catalogue, std::string_view path);
/// `file` below `directory`, which --data named.
Result<CsvTable> data_table(const std::string& directory, std::string_view file);

}  // namespace assay

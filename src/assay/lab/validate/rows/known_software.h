// The software that a row of a table names.
#pragma once
#include <fmt/format.h>

#include "assay/base/text.h"
#include "assay/lab/validate/rows/table_line.h"
#include "assay/predict/kernel/software/software.h"

namespace assay::validate {

struct NamedSoftware {
  kernel::ChosenSoftware chosen;
  Why why;  ///< it has none, or none that can be predicted
};
/// `column` holds the name, `version` the release (empty: no such column).
inline NamedSoftware software_in(const TableLine& in, const kernel::SoftwareList& all, kernel::SoftwareVerb verb,
                                 std::string_view column, std::string_view version) {
  const std::string_view text = in.text(column);
  if (text.empty()) return {{}, "the software is not stated"};
  const auto found =
      kernel::named_software(all, verb, text, version.empty() ? version : in.text(version), in.count("year"));
  if (!found) return {{}, fmt::format("the software {} is not in the catalogue", in_quotes(text))};
  if (!found->software->unmodelled.empty()) return {{}, found->software->unmodelled};
  return {*found, std::nullopt};
}

}  // namespace assay::validate

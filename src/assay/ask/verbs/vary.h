// --vary NAME=FROM..TO or NAME=A,B,C: one number of a request takes several values.
#pragma once
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "assay/ask/verbs/request.h"

namespace assay::verbs {

struct Variation {
  std::string name;
  std::vector<double> values;  ///< in base units, in the order given
};

/// A number that may vary, and how it is written.
struct VariedNumber {
  std::string_view name;
  Result<double> (*parse)(std::string_view text, std::string_view where);
  std::string_view example;
};

/// FROM..TO doubles and ends with TO. Nothing without --vary.
Result<std::optional<Variation>> read_variation(const Request& request, std::span<const VariedNumber> axes);

}  // namespace assay::verbs

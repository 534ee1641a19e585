// Intervals for chips and software that no row is of: from rows whose whole chip or source no fit saw.
#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "assay/validate/validation.h"

namespace assay::validate {

/// Gives every case the interval that an answer would have had without any row of what was left out with it: the
/// quantile over all other chips or sources, each with the same weight, but no less than the interval of its class.
void widen_to_unseen(std::vector<ValidationCase>& cases);

/// The file of catalogue/steps/unseen that follows from the cases; `set` and `left_out` as a request names them.
std::pair<std::string, std::string> unseen_file_of(const std::vector<ValidationCase>& cases, std::string_view set,
                                                   std::string_view left_out);

}  // namespace assay::validate

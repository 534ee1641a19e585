// Intervals for chips and software that no row is of: from rows whose whole chip or source no fit saw.
#pragma once
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "assay/lab/validate/folds.h"
#include "assay/lab/validate/validation.h"

namespace assay::validate {

/// Rows of a set, as numbers predict them that were fitted without their whole source or chip; the named set is first.
/// Fits of inference predict both of its sets of times. Throughputs have no intervals of their own: they are left out
/// only if there is someone to ask.
using LeftOutResults = std::vector<std::pair<std::string, ValidationResult>>;
Result<LeftOutResults> left_out_results(const std::string& set, LeftOut what, const hardware::Catalogue& catalogue,
                                        const std::optional<std::string>& data, const AskWith& ask_with = {});

/// Gives every case the interval that an answer would have had without any row of what was left out with it: the
/// quantile over all other chips or sources, each with the same weight, but no less than the interval of its class.
void widen_to_unseen(std::vector<ValidationCase>& cases);

/// The file of catalogue/steps/unseen that follows from the cases; `set` and `left_out` as a request names them.
std::pair<std::string, std::string> unseen_file_of(const std::vector<ValidationCase>& cases, std::string_view set,
                                                   std::string_view left_out);

}  // namespace assay::validate

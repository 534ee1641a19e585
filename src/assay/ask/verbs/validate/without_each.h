// What each fitted number is worth: the error of a set with the number at the value that has no effect.
#pragma once
#include <string>
#include <vector>

#include "assay/ask/verbs/request.h"
#include "assay/hardware/catalogue.h"

namespace assay::verbs::validate_verb {

/// A number of steps/training.toml, steps/serving.toml or a file of calibration/, and the file without its effect.
struct FittedNumber {
  std::string name;            ///< "products.slowdown.hopper"
  std::string value, without;  ///< as written: "1.065" and "1", "80.61 us" and "0 us"
  std::string text;            ///< the whole file with `without` in place of `value`
};
/// The numbers of a file that have an effect, but those of its intervals. Without one, factors are 1, times and bytes
/// 0, and others what fits/neutral.toml says.
Result<std::vector<FittedNumber>> fitted_numbers(const hardware::Catalogue& catalogue, const std::string& path);

Result<report::Response> answer_without_each(const Request& request, const Context& context);

}  // namespace assay::verbs::validate_verb

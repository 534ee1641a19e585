// The parts of `assay validate` besides the answer itself.
#pragma once
#include <span>
#include <string>
#include <vector>

#include "assay/ask/verbs/request.h"
#include "assay/hardware/catalogue.h"
#include "assay/lab/validate/validation.h"

namespace assay::verbs::validate_verb {

// How validation asks: command lines, answered as the program answers them.

/// Parses and answers command lines in this context.
validate::Ask asking(const Context& context);

/// The same with the numbers of other catalogues.
validate::AskWith asking_with(const Context& context);

/// A command line that a shell splits into these words.
std::string command_line(std::span<const std::string> words);

// The fit of the calibrations: what `assay validate --fit` writes.

/// The fitted files, below the directory that the request names.
Result<report::Response> answer_fit(const Request& request, const hardware::Catalogue& catalogue);

// What each fitted number is worth: the error of a set with the number at the value that has no effect.

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

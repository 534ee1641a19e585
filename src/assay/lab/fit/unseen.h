// Intervals for chips that no row is of: from rows whose whole chip no fit saw.
#pragma once
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "assay/lab/validate/validation.h"

namespace assay::numbers {
struct Family;
}

namespace assay::validate {

/// Which sources, or chips, the rows of each family of chips are of. Of a family that is left out as a whole, the fit
/// of the others says nothing.
class FamiliesSeen {
 public:
  void add(const numbers::Family* family, const std::string& of);
  /// Whether a fit without the rows of `of` sees the family.
  bool without(const numbers::Family* family, const std::string& of) const;

 private:
  std::map<std::string, std::set<std::string>> seen_;
};

/// Rows of a set, as numbers predict them that were fitted without their whole chip; the named set is first.
/// Fits of inference predict both of its sets of times. Throughputs have no intervals of their own: they are left out
/// only if there is someone to ask.
using LeftOutResults = std::vector<std::pair<std::string, ValidationResult>>;
Result<LeftOutResults> left_out_results(const std::string& set, const hardware::Catalogue& catalogue,
                                        const std::optional<std::string>& data, const AskWith& ask_with = {});

/// Gives every case the interval that an answer would have had without any row of its chip: the quantile over all other
/// chips, each with the same weight, but no less than the interval of its class.
void widen_to_unseen(std::vector<ValidationCase>& cases);

/// The file of catalogue/steps/unseen that follows from the cases; `set` as a request names it.
std::pair<std::string, std::string> unseen_file_of(const std::vector<ValidationCase>& cases, std::string_view set);

}  // namespace assay::validate

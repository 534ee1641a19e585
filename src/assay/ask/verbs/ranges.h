// Values of a range: --vary NAME=FROM..TO, NAME=FROM..TO:STEP or NAME=A,B,C makes one number of a request take several,
// and clusters may be several in one word: "h100-sxm:1024,b200:512" lists, "h100-sxm:8..64" takes every count that
// nodes allow, and "h100-sxm:8..64:16" steps.
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

/// A count as such a number.
Result<double> parse_varied_count(std::string_view text, std::string_view where);

/// FROM..TO doubles and ends with TO, FROM..TO:STEP takes steps. Nothing without --vary.
Result<std::optional<Variation>> read_variation(const Request& request, std::span<const VariedNumber> axes);

/// FROM..TO doubles and ends with TO, FROM..TO:STEP takes steps. Ends early where there are more than `most`.
Result<std::vector<std::int64_t>> counts_of_range(std::string_view text, std::string_view where, std::size_t most);

struct ClusterRange {
  std::vector<std::string> clusters;  ///< each in the CLUSTER grammar
  std::vector<bool> counted;  ///< whether it is from a range: sizes that a chip does not come in may be left out
  bool coarse = false;        ///< a range has so many counts that it doubles
};

/// One cluster is a range of one; `where` names the flag in errors.
Result<ClusterRange> parse_cluster_range(std::string_view text, std::string_view where,
                                         const hardware::Catalogue& catalogue);

/// The clusters of a coarse range, separated by commas, with counts between the chosen one and its neighbours added.
std::string finer_range(const ClusterRange& range, std::string_view chosen, const hardware::Catalogue& catalogue);

}  // namespace assay::verbs

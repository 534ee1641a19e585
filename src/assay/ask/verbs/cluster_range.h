// Several clusters in one word: "h100-sxm:1024,b200:512" lists, "h100-sxm:8..4096" doubles, "h100-sxm:8..64:8" steps.
#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "assay/base/result.h"

namespace assay::verbs {

struct ClusterRange {
  std::vector<std::string> clusters;  ///< each in the CLUSTER grammar
  std::vector<bool> counted;  ///< whether it is from a range: sizes that a chip does not come in may be left out
};

/// One cluster is a range of one; `where` names the flag in errors.
Result<ClusterRange> parse_cluster_range(std::string_view text, std::string_view where);

}  // namespace assay::verbs

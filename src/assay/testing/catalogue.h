// The built-in catalogue, read once for all tests, and clusters of it.
#pragma once
#include <string_view>

#include "assay/hardware/cluster.h"

namespace assay::testing {

inline const hardware::Catalogue& catalogue() {
  static const hardware::Catalogue builtin = hardware::Catalogue::builtin();
  return builtin;
}

inline hardware::Cluster cluster(std::string_view text) { return *hardware::parse_cluster(text, catalogue(), "test"); }

}  // namespace assay::testing

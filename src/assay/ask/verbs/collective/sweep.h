// A collective over sizes, chips, inner shards, or how unevenly its data is spread.
#pragma once
#include "assay/ask/draw/scene.h"
#include "assay/ask/report/document.h"
#include "assay/ask/verbs/vary.h"

namespace assay::verbs::collective_verb {

/// What one point of a sweep costs.
struct SweepPoint {
  double value = 0;  ///< of what varies
  Bytes bytes;       ///< of the whole array
  Seconds lower, estimate;
  double bus_over_algorithm = 1;  ///< bandwidths
  /// Of the devices that get a token: on average, and where all its picks are on different ones.
  struct Share {
    double exact = 1, approximate = 1;
  };
  std::optional<Share> share = {};
};

report::Items sweep_rows(const std::string& name, const std::vector<SweepPoint>& points);
/// Bus bandwidth over size, the share of devices that get a token, or time.
draw::Scene sweep_picture(const std::string& title, const std::string& name, const std::vector<SweepPoint>& points);

}  // namespace assay::verbs::collective_verb

// A collective over sizes, or over how unevenly its data is spread.
#pragma once
#include "assay/draw/scene.h"
#include "assay/report/document.h"
#include "assay/verbs/vary.h"

namespace assay::verbs::collective {

/// What one point of a sweep costs.
struct SweepPoint {
  double value = 0;  ///< of what varies
  Bytes bytes;       ///< of the whole array
  Seconds lower, estimate;
  double bus_over_algorithm = 1;  ///< bandwidths
};

report::Items sweep_rows(const std::string& name, const std::vector<SweepPoint>& points);
/// Bus bandwidth over size, or time over imbalance.
draw::Scene sweep_picture(const std::string& title, const std::string& name, const std::vector<SweepPoint>& points);

}  // namespace assay::verbs::collective

#include "assay/lab/validate/rows/measured_clusters.h"

namespace assay::validate {

Result<const Place*> Places::find(const std::string& cluster, const std::vector<hardware::Override>& changes,
                                  std::string_view where) {
  std::string key = cluster;
  for (const hardware::Override& change : changes) key += "," + change.path + "=" + change.value;
  if (const auto found = known_.find(key); found != known_.end()) return &found->second;
  ASSAY_TRY(parsed, hardware::parse_cluster(cluster, *catalogue_, std::string(where), changes));
  ASSAY_TRY(calibration, hardware::calibration_of(parsed.chip, *catalogue_));
  return &known_.emplace(std::move(key), Place{std::move(parsed), std::move(calibration)}).first->second;
}

}  // namespace assay::validate

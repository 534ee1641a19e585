#include "assay/validate/rows/measured_clusters.h"

#include <fmt/format.h>

#include <algorithm>

namespace assay::validate {

Result<const Place*> Places::find(const std::string& cluster, const std::vector<hardware::Override>& changes,
                                  std::string_view where, BytesPerSecond network) {
  std::string key = fmt::format("{},{}", cluster, network.value());
  for (const hardware::Override& change : changes) key += "," + change.path + "=" + change.value;
  if (const auto found = known_.find(key); found != known_.end()) return &found->second;
  ASSAY_TRY(parsed, hardware::parse_cluster(cluster, *catalogue_, std::string(where), changes));
  if (network > BytesPerSecond(0) && !parsed.torus)
    for (std::size_t l = 1; l < parsed.levels.size(); ++l) {
      hardware::Level& level = parsed.levels[l];
      const double slower = std::min(1.0, network / level.chip_bandwidth);
      level.chip_bandwidth = slower * level.chip_bandwidth;
      level.child_bandwidth = slower * level.child_bandwidth;
      level.in_network_reduction = false;
    }
  ASSAY_TRY(calibration, hardware::calibration_of(parsed.chip, *catalogue_));
  return &known_.emplace(std::move(key), Place{std::move(parsed), std::move(calibration)}).first->second;
}

}  // namespace assay::validate

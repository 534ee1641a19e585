// The clusters that measured steps ran on, with the calibrations of their chips, each read once.
#pragma once
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "assay/hardware/calibration.h"
#include "assay/hardware/cluster.h"

namespace assay::validate {

struct Place {
  hardware::Cluster cluster;
  std::optional<hardware::ChipCalibration> calibration;
};

class Places {
 public:
  explicit Places(const hardware::Catalogue& catalogue) : catalogue_(&catalogue) {}
  Result<const Place*> find(const std::string& cluster, const std::vector<hardware::Override>& changes,
                            std::string_view where);

 private:
  const hardware::Catalogue* catalogue_;
  std::map<std::string, Place> known_;
};

}  // namespace assay::validate

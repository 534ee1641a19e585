// What clouds ask for their instances: a table in CSV, an instance type a line, with the cheapest region's prices.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "assay/base/result.h"
#include "assay/base/units.h"

namespace assay::hardware {

class Catalogue;

/// An instance type of a cloud. It is rented whole.
struct InstanceOffer {
  std::string cloud, name, accelerator;  ///< as the table writes them
  std::string chip;                      ///< id; empty where the catalogue does not know the accelerator
  std::int64_t chips = 1;
  std::optional<DollarsPerSecond> on_demand, spot;
  std::size_t line = 0;

  const std::optional<DollarsPerSecond>& price(bool is_spot) const { return is_spot ? spot : on_demand; }
  std::string text() const { return name.empty() ? cloud + " " + accelerator : cloud + " " + name; }
};

struct InstanceTable {
  std::string file, date;  ///< date: of a comment, # 2026-08-22; empty where there is none
  std::vector<InstanceOffer> offers;
};

/// Columns by their names: cloud, instance, accelerator, count, ondemand_min_usd_h and, where known, spot_min_usd_h;
/// others are passed over. Reports every fault of the table with its line.
Result<InstanceTable> read_instance_table(std::string_view text, const std::string& file, const Catalogue& catalogue);

/// How many instances of so many chips hold replicas of so many. A replica lies within one instance; one that is larger
/// than a node (of `node` chips) takes whole nodes. Nothing where it does not fit.
std::optional<std::int64_t> instances_for(std::int64_t chips, std::int64_t replicas, std::int64_t of_replica,
                                          std::int64_t node);

}  // namespace assay::hardware

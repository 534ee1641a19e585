// Measured collectives: rows of a table as groups of links, and their prediction.
#pragma once
#include <string>
#include <vector>

#include "assay/estimate/collective_models.h"
#include "assay/hardware/catalogue.h"
#include "assay/validate/harness.h"
#include "assay/validate/rows/csv.h"
#include "assay/validate/validation.h"

namespace assay::validate {

struct CollectiveRow {
  std::string id, group, shape, source, chip;
  program::Collective kind = program::Collective::all_reduce;
  estimate::CollectiveAlgorithm algorithm = estimate::CollectiveAlgorithm::automatic;
  network::CollectiveGroup links;
  hardware::Fabric fabric = hardware::Fabric::infiniband;
  bool across = false;  ///< between nodes
  Bytes bytes;          ///< of the array, as collective_cost counts them
  Seconds measured;
  std::size_t fold = held_out;
  bool fitted = false;  ///< used by the current fit
};

struct CollectiveRows {
  std::vector<CollectiveRow> rows;
  std::vector<UnansweredCase> unanswered;
};
/// The third-party table of collectives; chips and their links come from the catalogue.
Result<CollectiveRows> read_collectives(const CsvTable& table, const hardware::Catalogue& catalogue);

Seconds predict(const CollectiveRow& row, const hardware::CollectiveCalibration& calibration, const Harness& harness);

}  // namespace assay::validate

// Measured collectives: rows of a table as groups of links, and their prediction.
#pragma once
#include <string>
#include <vector>

#include "assay/estimate/collective_models.h"
#include "assay/hardware/catalogue.h"
#include "assay/validate/harness.h"
#include "assay/validate/rows/csv.h"
#include "assay/validate/validation.h"

namespace assay {

struct CollectiveRow {
  std::string id, group, shape, source, chip;
  CollectiveKind kind = CollectiveKind::all_reduce;
  CollectiveAlgorithm algorithm = CollectiveAlgorithm::automatic;
  CollectiveGroup links;
  Fabric fabric = Fabric::infiniband;
  bool across = false;  ///< leaves the node
  Bytes bytes;          ///< of the array, as collective_cost counts them
  Seconds measured;
  std::size_t fold = kept_apart;
  bool fitted = false;  ///< the fit at work sees it
};

struct CollectiveRows {
  std::vector<CollectiveRow> rows;
  std::vector<UnansweredCase> unanswered;
};
/// The third-party table of collectives; chips and their links come from the catalogue.
Result<CollectiveRows> read_collectives(const CsvTable& table, const Catalogue& catalogue);

Seconds predict(const CollectiveRow& row, const CollectiveCalibration& calibration, const Harness& harness);

}  // namespace assay

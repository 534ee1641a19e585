// Measured collectives: rows of a table as requests of `assay collective`, and as groups of links for fits.
#pragma once
#include <string>
#include <vector>

#include "assay/hardware/catalogue.h"
#include "assay/lab/validate/rows/csv.h"
#include "assay/lab/validate/validation.h"
#include "assay/predict/collective/collective_models.h"
#include "assay/predict/kernel/measured/harness.h"

namespace assay::validate {

struct CollectiveRow {
  std::string id, group, shape, source, chip;
  program::Collective kind = program::Collective::all_reduce;
  collective::CollectiveAlgorithm algorithm = collective::CollectiveAlgorithm::automatic;
  std::string kernel;                       ///< of a serving engine, as --kernel takes it; empty: the library's
  std::string tokens, picks;                ///< of an exchange by such a kernel, as --bytes and --picks take them
  std::string cluster, axes;                ///< as --on and --axes take them
  std::vector<hardware::Override> changes;  ///< of the chip, as --set takes them
  collective::CollectiveGroup links;        ///< of that cluster
  hardware::Fabric fabric = hardware::Fabric::infiniband;
  bool across = false;  ///< between nodes
  Bytes bytes;          ///< of the array, as collective_cost counts them
  Seconds measured;
  std::size_t fold = held_out;
  bool fitted = false;  ///< used by the current fit
};

/// The request that predicts a row.
Question question_of(const CollectiveRow& row);

struct CollectiveRows {
  std::vector<CollectiveRow> rows;
  std::vector<UnansweredCase> unanswered;
};
/// The third-party table of collectives; chips and their links come from the catalogue.
Result<CollectiveRows> read_collectives(const CsvTable& given, const hardware::Catalogue& catalogue);

/// For fits, whose numbers are not in a catalogue yet: what the request would answer.
Seconds predict(const CollectiveRow& row, const hardware::CollectiveCalibration& calibration,
                const kernel::Harness& harness);

}  // namespace assay::validate

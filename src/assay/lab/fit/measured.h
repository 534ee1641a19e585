// Fits one chip's calibration to a table written by `assay measure`.
#pragma once
#include <optional>
#include <vector>

#include "assay/hardware/calibration.h"
#include "assay/hardware/chip.h"
#include "assay/lab/fit/ranges.h"
#include "assay/lab/measure/host_chip.h"
#include "assay/lab/measure/rows.h"
#include "assay/lab/validate/rows/csv.h"
#include "assay/lab/validate/validation.h"

namespace assay::validate {

/// The readable rows of a table; missing values are 0.
std::vector<measure::MeasuredRow> measured_rows(const CsvTable& table);

struct MeasuredFit {
  hardware::Calibration calibration;
  std::vector<ValidationCase> cases;       ///< all rows that can be predicted; half of them were fitted
  std::vector<UnansweredCase> unanswered;  ///< measured, but without a model
};

/// Half of the rows are fitted, chosen by the hash of their shape. `start` has a GPU's start values (its own or its
/// family's calibration); a CPU needs none. A section without rows is absent from the result. `cores`: that ranks
/// share, if the rows are of ranks.
MeasuredFit fit_measured(const CsvTable& table, const hardware::Chip& chip, const hardware::Calibration* start,
                         const MeasuredRanges& ranges, const hardware::CalibrationSource& source,
                         std::optional<double> cores = {});

/// Compares the same rows with an existing calibration; no row counts as fitted.
std::vector<ValidationCase> check_measured(const CsvTable& table, const hardware::Chip& chip,
                                           const hardware::Calibration& calibration);

/// A calibration with what kernels inside of a step say: how much products slow down at the sustained clock, the share
/// of the peak that each format reaches where that is not enough, and the shares of attention. All other numbers stay.
struct LearnedFit {
  hardware::Calibration calibration;
  std::vector<ValidationCase> before, after;  ///< the same rows, none of them held out
};
LearnedFit learn_measured(const CsvTable& table, const hardware::Chip& chip, const hardware::Calibration& start,
                          const MeasuredRanges& ranges, const hardware::CalibrationSource& source);
/// Rows of kernels inside of a step against a calibration: they have no launches or flushes of a table.
std::vector<ValidationCase> check_learned(const CsvTable& table, const hardware::Chip& chip,
                                          const hardware::Calibration& calibration);

}  // namespace assay::validate

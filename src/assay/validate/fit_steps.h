// The fit of what whole steps cost beyond their kernels: `assay validate --fit`.
#pragma once
#include <string>
#include <utility>
#include <vector>

#include "assay/validate/training_rows.h"

namespace assay {

/// Mean of |log(predicted / measured)|, groups alike.
double step_misfit(const std::vector<TrainingRow>& rows, TrainingPredictor& predict);

/// The file below the catalogue and its text; only fitted rows are looked at. Kernels are those of the catalogue's
/// calibrations.
Result<std::pair<std::string, std::string>> fit_steps(const ValidationInput& input);

}  // namespace assay

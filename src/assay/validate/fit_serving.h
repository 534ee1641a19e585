// The fit of what whole prefill and decode steps cost beyond their kernels: `assay validate --fit`.
#pragma once
#include <string>
#include <utility>
#include <vector>

#include "assay/validate/inference_rows.h"

namespace assay {

/// Mean of |log(predicted / measured)|, groups alike.
double serving_misfit(const std::vector<InferenceRow>& rows, InferencePredictor& predict);

/// The file below the catalogue and its text; only fitted rows are looked at. Kernels are those of the catalogue's
/// calibrations.
Result<std::pair<std::string, std::string>> fit_serving(const ValidationInput& input);

}  // namespace assay

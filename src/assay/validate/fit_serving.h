// The fit of what whole prefill and decode steps cost beyond their kernels: `assay validate --fit`.
#pragma once
#include <string>
#include <utility>
#include <vector>

#include "assay/validate/inference_rows.h"

namespace assay {

/// Mean of |log(predicted / measured)|, groups alike.
double serving_misfit(const std::vector<InferenceRow>& rows, InferencePredictor& predict);

/// The file below the catalogue and its text. Kernels are those of the catalogue's
/// calibrations.
Result<std::pair<std::string, std::string>> fit_serving(const FitInput& input);

}  // namespace assay

// The fit of the cost of whole prefill and decode steps beyond their kernels: `assay validate --fit`.
#pragma once
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "assay/validate/fit/inference_predictor.h"
#include "assay/validate/folds.h"

namespace assay::validate {

/// Mean of |log(predicted / measured)|; groups have equal weight.
double serving_misfit(const std::vector<InferenceRow>& rows, InferencePredictor& predict);

/// The text of steps/serving.toml by the fold left out of the fit, see FoldFits.
Result<std::vector<std::string>> fit_serving(std::span<const hardware::Catalogue> catalogues,
                                             const std::optional<std::string>& data);

}  // namespace assay::validate

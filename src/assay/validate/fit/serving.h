// The fit of what whole prefill and decode steps cost beyond their kernels: `assay validate --fit`.
#pragma once
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "assay/validate/folds.h"
#include "assay/validate/rows/inference_rows.h"

namespace assay::validate {

/// Mean of |log(predicted / measured)|; groups have equal weight.
double serving_misfit(const std::vector<InferenceRow>& rows, InferencePredictor& predict);

/// The text of steps/serving.toml by the fold that it was fitted without, see FoldFits.
Result<std::vector<std::string>> fit_serving(std::span<const hardware::Catalogue> catalogues,
                                             const std::optional<std::string>& data);

}  // namespace assay::validate

// The fit of the cost of whole prefill and decode steps beyond their kernels: `assay validate --fit`.
#pragma once
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "assay/lab/fit/inference_predictor.h"
#include "assay/lab/validate/folds.h"

namespace assay::validate {

/// The text of steps/serving.toml by the fold left out of the fit, the last with all of them.
Result<std::vector<std::string>> fit_serving(std::span<const hardware::Catalogue> catalogues,
                                             const std::optional<std::string>& data);

/// Published figures, as numbers predict them that were fitted without the row's whole source, or without its chip.
struct WithoutWhole {
  ValidationResult tokens, first_tokens, throughputs;
};
/// Kernels are those of the catalogue. Sources and chips are left out in as many parts as there are folds. Throughputs
/// are predicted only if there is someone to ask.
Result<WithoutWhole> without_whole(LeftOut what, const hardware::Catalogue& catalogue,
                                   const std::optional<std::string>& data, const AskWith& ask_with = {});

}  // namespace assay::validate

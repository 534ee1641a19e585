// The fit of the cost of whole prefill and decode steps beyond their kernels: `assay validate --fit`.
#pragma once
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "assay/lab/fit/inference_predictor.h"

namespace assay::validate {

/// The text of steps/serving.toml by the fold left out of the fit, the last with all of them.
Result<std::vector<std::string>> fit_serving(std::span<const hardware::Catalogue> catalogues,
                                             const std::optional<std::string>& data);

/// Published figures, as numbers predict them that were fitted without the row's chip.
struct WithoutChips {
  ValidationResult tokens, first_tokens, throughputs;
};
/// Kernels are those of the catalogue. Chips are left out in as many parts as there are folds. Throughputs are
/// predicted only if there is someone to ask.
Result<WithoutChips> without_chips(const hardware::Catalogue& catalogue, const std::optional<std::string>& data,
                                   const AskWith& ask_with = {});

}  // namespace assay::validate

// Fits without each fold.
#pragma once
#include <array>
#include <optional>
#include <span>
#include <string>
#include <utility>

#include "assay/base/parallel.h"
#include "assay/lab/validate/validation.h"

namespace assay::validate {

/// Numbers fitted without each fold, the last to all of them.
template <class Numbers>
using FoldFits = std::array<Numbers, folds + 1>;

/// `catalogues` by the fold left out of their kernels' fit. `fit` gets a FitInput and may run on any thread.
template <class Numbers, class Fit>
Result<FoldFits<Numbers>> fits_without_folds(std::span<const hardware::Catalogue> catalogues,
                                             const std::optional<std::string>& data, Fit fit) {
  std::array<std::optional<Result<Numbers>>, folds + 1> fitted;
  parallel_for(fitted.size(), 1, [&](std::size_t left_out) {
    fitted[left_out] = fit(FitInput{catalogues[left_out], data, left_out});
  });
  FoldFits<Numbers> fits;
  for (std::size_t i = 0; i < fits.size(); ++i) {
    ASSAY_TRY(numbers, std::move(*fitted[i]));
    fits[i] = std::move(numbers);
  }
  return fits;
}

}  // namespace assay::validate

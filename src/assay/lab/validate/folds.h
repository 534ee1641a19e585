// Fits without one fold and without two: both a row's estimate and its interval exclude its fold.
#pragma once
#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <utility>

#include "assay/base/parallel.h"
#include "assay/lab/validate/validation.h"

namespace assay::validate {

/// What is left out of a fit as a whole.
enum class LeftOut : std::uint8_t { source, hardware };

/// Numbers fitted without each pair of folds; `held_out` stands for no fold. Kernels are fitted without the first fold
/// of the pair.
template <class Numbers>
class FoldFits {
 public:
  /// `catalogues` by the fold left out of their kernels' fit, the last one with all folds. `fit` gets a FitInput
  /// and may run on any thread.
  template <class Fit>
  static Result<FoldFits> make(std::span<const hardware::Catalogue> catalogues, const std::optional<std::string>& data,
                               Fit fit) {
    std::array<std::optional<Result<Numbers>>, pairs> fitted;
    parallel_for(pairs, 1, [&](std::size_t i) {
      const auto [first, second] = pair_at(i);
      fitted[i] = fit(FitInput{catalogues[first], data, first, second});
    });
    FoldFits out;
    for (std::size_t i = 0; i < pairs; ++i) {
      ASSAY_TRY(numbers, std::move(*fitted[i]));
      out.numbers_[i] = std::move(numbers);
    }
    return out;
  }

  const Numbers& without(std::size_t a, std::size_t b = held_out) const { return numbers_[index(a, b)]; }
  /// The fold left out of their kernels' fit.
  static std::size_t kernels(std::size_t a, std::size_t b) { return std::min(a, b); }

 private:
  // (0, 0) equals (0, held_out), so only pairs of different folds, and the pair without any, are fitted.
  static constexpr std::size_t pairs = folds * (folds + 1) / 2 + 1;
  static std::pair<std::size_t, std::size_t> pair_at(std::size_t i) {
    for (std::size_t first = 0; first < folds; ++first)
      for (std::size_t second = first + 1; second <= held_out; ++second)
        if (i-- == 0) return {first, second};
    return {held_out, held_out};
  }
  static std::size_t index(std::size_t a, std::size_t b) {
    for (std::size_t i = 0; i + 1 < pairs; ++i)
      if (pair_at(i) == std::pair(std::min(a, b), std::max(a, b))) return i;
    return pairs - 1;
  }

  std::array<Numbers, pairs> numbers_{};
};

}  // namespace assay::validate

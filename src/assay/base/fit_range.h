// The range of a fitted number, as data files state it.
#pragma once

namespace assay {

/// Where a fit of one number starts, and the bounds that it stays within.
template <class Q>
struct FitRange {
  Q start{}, low{}, high{};
  double pull = 0;  ///< error charged for a factor of 1.5 away from the start; 0: the fit's default

  /// Whether the number is fitted; else it stays where it starts.
  bool is_fitted() const { return low < high; }
};

}  // namespace assay

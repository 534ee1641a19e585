// Fits bounded numbers: a few to any objective without derivatives, or many at once to the rows that they move.
#pragma once
#include <functional>
#include <vector>

#include "assay/base/units.h"

namespace assay::validate {

/// A number to be fitted: its start, its bounds, and how to set it. `low` is above 0.
struct FitParameter {
  double start = 1.0, low = 1e-3, high = 1.0;
  std::function<void(double)> set;
  double pull = 0, from = 1;  ///< what `minimise` adds for a factor of 1.5 from here: keeps what rows do not tell
};
inline FitParameter fit(double& number, double low, double high) {
  return {number, low, high, [&number](double x) { number = x; }};
}
template <Dim D>
FitParameter fit(Quantity<D>& quantity, Quantity<D> low, Quantity<D> high) {
  return {quantity.value(), low.value(), high.value(), [&quantity](double x) { quantity = Quantity<D>(x); }};
}

/// Moves the parameters to a local minimum of the objective and their pulls, and returns it. Nelder-Mead simplex on
/// logarithms, restarted from where it ends; deterministic.
double minimise(const std::vector<FitParameter>& parameters, const std::function<double()>& objective,
                int evaluations = 400);

/// One of many numbers that are fitted at once.
struct TunedNumber {
  FitParameter parameter;
  std::function<double()> value;
  double stiffness = 0;                ///< error cost of a factor of 1.5 from its start, for what rows do not determine
  std::vector<std::size_t> rows = {};  ///< that it moves

  /// From its start, in factors of 1.5, and what that costs.
  double off() const;
  double strangeness() const;
};

/// The rows of such a fit.
struct FittedRows {
  std::vector<double> weights;                  ///< of all rows together 1
  std::function<double(std::size_t)> residual;  ///< log(predicted / measured) of a row; not a number where it has none
  std::function<void()> settle;                 ///< decides before each round what hardly depends on the numbers
  double most_misfit = 0;                       ///< rows that are further off are wrong for some other reason
};

/// Finds the rows that move if a number goes to one of its bounds.
void find_rows(const FittedRows& rows, std::vector<TunedNumber>& numbers);

/// Moves all numbers at once to a local minimum of the weighted absolute residuals. Each starts at the best of a few
/// values over its range; then the residuals as linear functions of the numbers' logarithms, near where they are, are
/// minimised within a distance, and again from there. Numbers in turn would end where errors of several kinds cancel.
void fit_at_once(std::vector<TunedNumber>& numbers, const FittedRows& rows, int rounds);

}  // namespace assay::validate

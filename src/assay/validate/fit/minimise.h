// Fits a few bounded numbers to an objective without derivatives.
#pragma once
#include <functional>
#include <vector>

#include "assay/base/units.h"

namespace assay::validate {

/// A number to be fitted: its start, its bounds, and how to set it. `low` is above 0.
struct FitParameter {
  double start = 1.0, low = 1e-3, high = 1.0;
  std::function<void(double)> set;
};
inline FitParameter fit(double& number, double low, double high) {
  return {number, low, high, [&number](double x) { number = x; }};
}
template <Dim D>
FitParameter fit(Quantity<D>& quantity, Quantity<D> low, Quantity<D> high) {
  return {quantity.value(), low.value(), high.value(), [&quantity](double x) { quantity = Quantity<D>(x); }};
}

/// Moves the parameters to a local minimum of the objective and returns it. Nelder-Mead simplex on logarithms,
/// restarted from where it ends; deterministic.
double minimise(const std::vector<FitParameter>& parameters, const std::function<double()>& objective,
                int evaluations = 400);

}  // namespace assay::validate

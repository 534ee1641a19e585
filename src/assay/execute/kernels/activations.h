// Activation functions used by several kernels, with their derivatives.
#pragma once
#include <cmath>

namespace assay::execute {

inline double sigmoid(double x) { return 1.0 / (1.0 + std::exp(-x)); }
inline double softplus(double x) { return std::log1p(std::exp(x)); }
inline double silu(double x) { return x * sigmoid(x); }
inline double silu_slope(double x) { return sigmoid(x) * (1.0 + x * (1.0 - sigmoid(x))); }

}  // namespace assay::execute

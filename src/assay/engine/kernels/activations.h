// Activation functions used by several kernels, with their derivatives.
#pragma once
#include <cmath>

namespace assay::engine {

inline double sigmoid(double x) { return 1.0 / (1.0 + std::exp(-x)); }
inline double softplus(double x) { return std::log1p(std::exp(x)); }
inline double silu(double x) { return x * sigmoid(x); }
inline double silu_slope(double x) { return sigmoid(x) * (1.0 + x * (1.0 - sigmoid(x))); }
inline double gelu(double x) { return 0.5 * x * (1.0 + std::erf(x / std::sqrt(2.0))); }
inline double gelu_slope(double x) {
  const double density = std::exp(-0.5 * x * x) / std::sqrt(8.0 * std::atan(1.0));
  return 0.5 * (1.0 + std::erf(x / std::sqrt(2.0))) + x * density;
}

}  // namespace assay::engine

// Activation functions used by several kernels, with their derivatives.
#pragma once
#include <cmath>

#include "assay/model/definition.h"

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

inline double nonlinear(double x, model::Nonlinearity function) {
  const double slope = std::sqrt(8.0 / (4.0 * std::atan(1.0))), cubic = 0.044715;  // sqrt(8 / pi), Hendrycks 2016
  switch (function) {
    case model::Nonlinearity::gelu:
      return gelu(x);
    case model::Nonlinearity::gelu_tanh:
      return x * sigmoid(slope * (x + cubic * x * x * x));
    case model::Nonlinearity::relu:
      return x > 0 ? x : 0.0;
    case model::Nonlinearity::relu2:
      return x > 0 ? x * x : 0.0;
    case model::Nonlinearity::quick_gelu:
      return x * sigmoid(1.702 * x);
    case model::Nonlinearity::usual:
    case model::Nonlinearity::silu:
      break;
  }
  return silu(x);
}

}  // namespace assay::engine

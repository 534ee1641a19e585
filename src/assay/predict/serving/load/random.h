// Random numbers of simulations: the same for a seed on every platform.
#pragma once
#include <cmath>
#include <cstdint>
#include <random>

#include "assay/predict/serving/request_lengths.h"

namespace assay::serving {

/// Gives equal numbers on every platform: the standard fixes the engine, not its distributions.
class Random {
 public:
  explicit Random(std::uint64_t seed) : engine_(seed) {}
  /// Uniform, from 0 up to but not 1.
  double share() { return static_cast<double>(engine_() >> 11) * 0x1.0p-53; }
  double exponential(double mean) { return -mean * std::log1p(-share()); }
  std::size_t below(std::size_t count) { return static_cast<std::size_t>(share() * static_cast<double>(count)); }
  std::int64_t draw(const Lengths& lengths) { return lengths.table()[below(lengths.table().size())]; }
  /// A number from the gamma distribution with this shape (Marsaglia and Tsang, "A simple method for generating gamma
  /// variables", 2000); shape 1 is exponential.
  double gamma(double shape, double mean) {
    if (shape == 1.0) return exponential(mean);
    if (shape < 1.0) return gamma(shape + 1.0, mean / shape * (shape + 1.0)) * std::pow(1.0 - share(), 1.0 / shape);
    const double d = shape - 1.0 / 3.0, c = 1.0 / std::sqrt(9.0 * d);
    while (true) {
      const double x = std::sqrt(-2.0 * std::log1p(-share())) * std::cos(6.283185307179586 * share());
      const double v = std::pow(1.0 + c * x, 3.0);
      if (v > 0.0 && std::log1p(-share()) < 0.5 * x * x + d - d * v + d * std::log(v)) return d * v * mean / shape;
    }
  }

 private:
  std::mt19937_64 engine_;
};

}  // namespace assay::serving

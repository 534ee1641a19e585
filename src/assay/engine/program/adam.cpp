#include "assay/engine/program/adam.h"

#include <cmath>

namespace assay::engine {

void adam_step(const AdamW& adam, std::int64_t number, bool decays, const Array& gradient, Array& weight, Array& first,
               Array& second) {
  const auto steps = static_cast<double>(number);
  const double first_whole = 1.0 - std::pow(adam.first_decay, steps);
  const double second_whole = 1.0 - std::pow(adam.second_decay, steps);
  const double kept = decays ? 1.0 - adam.rate * adam.weight_decay : 1.0;
  for (std::size_t i = 0; i < weight.values.size(); ++i) {
    const double g = gradient.values[i];
    double &m = first.values[i], &v = second.values[i];
    m += (1.0 - adam.first_decay) * (g - m);
    v += (1.0 - adam.second_decay) * (g * g - v);
    weight.values[i] =
        kept * weight.values[i] - adam.rate * (m / first_whole) / (std::sqrt(v / second_whole) + adam.epsilon);
  }
}

}  // namespace assay::engine

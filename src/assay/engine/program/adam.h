// AdamW (Loshchilov and Hutter 2019) on a device's part of a weight.
#pragma once
#include <cstdint>

#include "assay/engine/layout.h"

namespace assay::engine {

struct AdamW {
  double rate = 3e-3;
  double first_decay = 0.9, second_decay = 0.95;
  double epsilon = 1e-8;
  double weight_decay = 0.1;  ///< of matrices; scales of norms and biases do not decay
};

/// Running means of a weight's gradients and of their squares.
struct Moments {
  Shards first, second;
};

/// The `number`-th step, counted from 1, of a weight that decays or does not.
void adam_step(const AdamW& adam, std::int64_t number, bool decays, const Array& gradient, Array& weight, Array& first,
               Array& second);

}  // namespace assay::engine

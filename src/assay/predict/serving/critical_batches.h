// The matrix products of a decode step: how far each is from the batch at which it becomes compute-bound.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "assay/predict/serving/profile.h"

namespace assay::serving {

struct StepBalance {
  std::string block, what;  ///< "layer kind 1"; the weight, or "attention"
  double layers = 1;
  Flops flops;                      ///< on one chip, of one layer at the given batch
  Bytes bytes;                      ///< on one chip, of one layer at the given batch
  Seconds compute, memory;          ///< at ideal rates
  double experts = 0, touched = 0;  ///< mixtures only: experts over all chips, and how many get a token on average
  /// Sequences over all replicas at which arithmetic and memory take the same time; nothing for attention, where each
  /// sequence brings bytes of its own.
  std::optional<double> critical;
};

/// Products and attention of a decode step of `batch` sequences that see `keys` tokens (`source` of them from an
/// encoder), in the order of the program.
std::vector<StepBalance> step_balance(const ServingSetup& setup, const ServingStrategy& strategy, std::int64_t keys,
                                      double batch, std::int64_t source = 0);

}  // namespace assay::serving

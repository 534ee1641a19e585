// Sensitivity of a training step: how its time depends on each hardware rate, the batch and the sequence, and where the
// limiter or the best strategy changes.
#pragma once
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "assay/predict/search/training/search.h"

namespace assay::search {

/// A step and its best strategy.
struct SensitivityQuestion {
  const training::TrainingQuestion& question;
  std::int64_t sequence = 0;
  const hardware::Cluster& cluster;
  const TrainingChoices& choices;
  const Candidate& best;
  Dtype compute = Dtype::bf16;
  Bytes budget;  ///< memory of a chip that strategies may use
  /// The question on a cluster whose chips have other rates.
  std::function<Result<training::TrainingQuestion>(const hardware::Cluster&)> on_cluster;
  TrainingProfiles* profiles = nullptr;  ///< shared by searches of the question that change no kernel
};

/// The step with one rate changed. The strategy is fixed unless noted.
struct Sensitivity {
  struct BreakEven {
    AnyQuantity value;
    double factor = 1;
    std::string_view limiter;  ///< the limiter at that value
  };
  struct Takeover {
    AnyQuantity value;
    double factor = 1;
    std::optional<training::Strategy> strategy;  ///< the strategy that is faster at that value
  };
  std::string rate;
  AnyQuantity value;
  double elasticity = 0, lower_elasticity = 0;  ///< d ln(time) / d ln(rate) of the estimate and of the lower bound
  Seconds if_doubled;
  std::optional<Seconds> if_halved;        ///< hardware rates only
  std::optional<Seconds> best_if_doubled;  ///< time of the best strategy then; nothing where none fits
  std::optional<bool> fits_if_doubled;     ///< batch and sequence only
  std::optional<BreakEven> break_even;     ///< the nearest value with another limiter
  std::optional<Takeover> takeover;        ///< the nearest value with a faster strategy
};

/// Sensitivities to each hardware rate, then to the batch and the sequence length, each from the whole model with that
/// one changed. When it is asked to stop (base/progress.h), the rest is left out.
Result<std::vector<Sensitivity>> training_sensitivities(const SensitivityQuestion& in);

/// Chip memory: how little this strategy and any strategy needs, and what unlimited memory would gain.
struct MemorySensitivity {
  Bytes capacity, needed;
  std::optional<Candidate> smallest;   ///< the strategy that needs the least
  std::optional<Candidate> unlimited;  ///< the fastest strategy, whatever it needs
};
Result<MemorySensitivity> memory_sensitivity(const SensitivityQuestion& in);

}  // namespace assay::search

// What would make a strategy fit that needs more memory than there is.
#pragma once
#include <optional>

#include "assay/predict/search/training/plan_rules.h"

namespace assay::search {

struct NearestFit {
  /// A strategy that differs in one thing, and the memory of a chip and of its host that it needs.
  struct Change {
    training::Strategy strategy;
    Bytes on_chip, on_host;
    Bytes host_shortfall;  ///< beyond the chip's share of host memory; 0 if that is enough
    bool fits = false;
  };
  /// Among changes that fit, the one that leaves the most room; if none fits, the one that lacks the least. Nothing
  /// where no change can be priced, or none fits and the chips are too few for any strategy.
  std::optional<Change> change;
  Bytes states;    ///< weights, gradients and optimizer states of the whole model, which every strategy has to hold
  double chips{};  ///< number of chips that have room for the states
};

/// How many chips have room for weights, gradients and optimizer states, each held once.
double chips_for_states(const training::TrainingSetup& setup, Bytes capacity);

/// Tries full recomputation, ZeRO 3, offloading and a microbatch of one sequence, one at a time, as far as the software
/// can express them.
NearestFit nearest_fit(const training::TrainingQuestion& question, std::int64_t sequence,
                       const hardware::Cluster& cluster, const training::Strategy& strategy,
                       const PlanRules& rules = {});

}  // namespace assay::search

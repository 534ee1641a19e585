// Where no training strategy fits: the one that lacks the least memory.
#pragma once
#include <cmath>

#include "assay/predict/search/training/memory_fit.h"
#include "assay/predict/search/training/search.h"

namespace assay::search {

/// All that a search for training strategies knows already.
struct ClosestInput {
  const training::TrainingQuestion& question;
  const TrainingChoices& choices;
  const TrainingSpace& space;
  const std::vector<lower::Recompute>& policies;
  const std::vector<std::size_t>& numbers;  ///< numbers of the policies in the profiles
  TrainingProfiles& profiles;
  LayersOfOrders& layers;
  training::StageLinker& linker;
  TrainingFit& fit;
};

class ClosestSearch {
 public:
  explicit ClosestSearch(ClosestInput input) : in_(input) {}

  /// Adds the closest strategy on these meshes, and what was priced to find it.
  void run(const std::vector<lower::Parallelism>& meshes, TrainingSearch& found);
  /// Whether any strategy on these meshes fits.
  bool any_fits(const std::vector<lower::Parallelism>& meshes);

 private:
  struct Start {
    TrainingFit::Least least;
    training::Strategy strategy;
  };
  /// Meshes with all ways to hold their states, least bytes of states first.
  std::vector<Start> by_state_bytes(const std::vector<lower::Parallelism>& meshes);
  void price(training::Strategy strategy, std::size_t policy, const training::StageLinks& links, TrainingSearch& found);

  ClosestInput in_;
  Bytes least_{HUGE_VAL};  ///< least excess memory, that of the closest so far; 0 ends the search
  bool any_ = false;       ///< policies that recompute more come first
  training::MicrobatchCost steady_;
  training::StepEvents events_;
};

}  // namespace assay::search

// The search for the best way to train: every combination of what the user left open, priced exactly, cut by bounds
// that never discard the best.
#pragma once
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "assay/schedule/training.h"

namespace assay {

/// What the user fixed; the rest is searched.
struct TrainingChoices {
  std::optional<std::int64_t> data, fsdp, tensor, pipeline, context, expert, micro_batch, interleave;
  std::optional<int> zero;
  std::optional<PipelineSchedule> schedule;
  std::optional<RecomputePolicy> recompute;
  std::optional<ResidualScheme> residual;
  std::optional<ContextScheme> context_scheme;
};

struct Candidate {
  Strategy strategy;
  TrainingCost cost;
};

struct SearchCount {
  std::int64_t considered = 0;  ///< strategies of the space
  std::int64_t evaluated = 0;   ///< whose time and memory were computed
  std::int64_t feasible = 0;    ///< of these, that fit into memory
};

struct TrainingSearch {
  std::vector<Candidate> best;       ///< that fit, fastest first
  std::optional<Candidate> closest;  ///< where none fits: the one that needs the least memory
  SearchCount count;
};

/// Finds the `top` fastest strategies that fit into `capacity` bytes a chip. Every strategy of the space is considered;
/// those whose arithmetic alone takes longer than the best found are not priced when `prune` is set.
Result<TrainingSearch> search_training(const TrainingQuestion& question, std::int64_t sequence, const Cluster& cluster,
                                       const TrainingChoices& choices, double capacity, std::size_t top,
                                       bool prune = true);

}  // namespace assay

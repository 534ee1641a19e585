// The search for the best way to train: every combination of what the user left open, priced exactly, cut by bounds
// that never discard the best.
#pragma once
#include <cmath>
#include <cstdint>
#include <optional>
#include <vector>

#include "assay/predict/search/training/space.h"

namespace assay::search {

struct Candidate {
  training::Strategy strategy;
  training::TrainingCost cost;
};

struct SearchCount {
  std::int64_t considered = 0;  ///< strategies of the space
  std::int64_t evaluated = 0;   ///< strategies whose time and memory were computed
  std::int64_t feasible = 0;    ///< evaluated strategies that fit into memory
};

struct TrainingSearch {
  std::vector<Candidate> best;       ///< strategies that fit, fastest first
  std::optional<Candidate> closest;  ///< where none fits: the one that lacks the least memory
  SearchCount count;
};

class TrainingProfiles;

/// What a search looks for.
struct SearchLimits {
  Bytes capacity;       ///< memory of a chip
  std::size_t top = 1;  ///< number of strategies to find
  bool prune = true;    ///< does not price what a bound on its time or memory rules out; the answer is the same without
  Seconds slowest{HUGE_VAL};  ///< steps that take as long as this are too slow
  /// Memory of a chip to keep to. Where nothing does and no time is too long, `capacity` is the limit.
  Bytes budget{HUGE_VAL};
  bool any_will_do = false;              ///< ends at the first strategy within the limits, fastest or not
  TrainingProfiles* profiles = nullptr;  ///< for the same setup, sequence and choices: kept for further searches
  /// Lower bounds on the steps of all work in the order in which it is listed: of a search of the same space that no
  /// step is shorter in, or none. Filled with those of this search.
  std::vector<Seconds>* floors = nullptr;
};

/// Finds the fastest strategies, each with its best placement, that fit into the memory of a chip and its part of the
/// host and keep to the budget if any does, and are faster than `slowest`. Nothing is recomputed or moved to the host
/// that fits when it is kept on the chip: more of either does not count where less fits, because it cannot be faster;
/// only work that saves copies can. When it is asked to stop (base/progress.h), it returns the best so far, or fails
/// where there is none.
Result<TrainingSearch> search_training(const training::TrainingQuestion& question, std::int64_t sequence,
                                       const hardware::Cluster& cluster, const TrainingChoices& choices,
                                       const SearchLimits& limits);
/// Searches as above, sharing caches with other searches of the question.
struct TrainingCaches;
Result<TrainingSearch> search_training(TrainingCaches& caches, const TrainingChoices& choices,
                                       const SearchLimits& limits);
/// Whether any strategy fits into this memory of a chip and its part of the host, fast or not.
bool any_fits(TrainingCaches& caches, const TrainingChoices& choices, Bytes capacity);

}  // namespace assay::search

// The best training strategies that a search has found so far.
#pragma once
#include <algorithm>
#include <cmath>
#include <vector>

#include "assay/predict/search/training/search.h"

namespace assay::search {

class BestStrategies {
 public:
  explicit BestStrategies(const SearchLimits& limits)
      : top_(limits.top), too_slow_(limits.slowest), any_will_do_(limits.any_will_do) {}

  bool empty() const { return best_.empty(); }
  /// A step that is too long: the limit of the search, or, once there are enough strategies, the time of the slowest.
  const Seconds& too_slow() const { return too_slow_; }

  void take(const Candidate& candidate) {
    // A strategy on other links counts as the same strategy.
    const auto same = std::find_if(best_.begin(), best_.end(), [&](const Candidate& other) {
      training::Strategy moved = other.strategy;
      moved.layout = candidate.strategy.layout;
      return moved == candidate.strategy;
    });
    if (same == best_.end())
      best_.push_back(candidate);
    else if (faster(candidate, *same))
      *same = candidate;
    if (best_.size() > top_) best_.erase(std::max_element(best_.begin(), best_.end(), faster));
    if (best_.size() == top_) too_slow_ = std::max_element(best_.begin(), best_.end(), faster)->cost.estimate;
    if (any_will_do_) too_slow_ = -Seconds(HUGE_VAL);
  }

  /// Fastest first.
  std::vector<Candidate> sorted() && {
    std::stable_sort(best_.begin(), best_.end(), faster);
    return std::move(best_);
  }

 private:
  static bool faster(const Candidate& a, const Candidate& b) { return a.cost.estimate < b.cost.estimate; }

  std::size_t top_;
  Seconds too_slow_;
  bool any_will_do_;
  std::vector<Candidate> best_;
};

}  // namespace assay::search

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
    const auto alike = std::find_if(best_.begin(), best_.end(),
                                    [&](const Candidate& other) { return differ_in_chunks(other, candidate); });
    if (alike == best_.end()) {
      best_.push_back(candidate);
    } else {
      Candidate slower = candidate;
      if (faster(candidate, *alike)) std::swap(slower, *alike);
      spare(slower, *alike);
    }
    if (best_.size() > top_) best_.erase(std::max_element(best_.begin(), best_.end(), faster));
    if (best_.size() == top_) too_slow_ = std::max_element(best_.begin(), best_.end(), faster)->cost.estimate;
    if (any_will_do_) too_slow_ = -Seconds(HUGE_VAL);
  }

  /// Fastest first. Where there are too few, also those that differ in the sizes of microbatches and chunks alone.
  std::vector<Candidate> sorted() && {
    std::stable_sort(spares_.begin(), spares_.end(), faster);
    spares_.resize(std::min(spares_.size(), top_ - best_.size()));
    best_.insert(best_.end(), spares_.begin(), spares_.end());
    std::stable_sort(best_.begin(), best_.end(), faster);
    return std::move(best_);
  }

 private:
  static bool faster(const Candidate& a, const Candidate& b) { return a.cost.estimate < b.cost.estimate; }

  /// The same strategy on other links.
  static bool differ_in_links(training::Strategy a, const training::Strategy& b) {
    a.layout = b.layout;
    return a == b;
  }
  static bool differ_in_chunks(const Candidate& a, const Candidate& b) {
    training::Strategy moved = a.strategy;
    moved.micro_batch = b.strategy.micro_batch;
    moved.interleave = b.strategy.interleave;
    return differ_in_links(moved, b.strategy);
  }

  void spare(const Candidate& slower, const Candidate& best) {
    if (differ_in_links(slower.strategy, best.strategy)) return;
    const auto known = std::find_if(spares_.begin(), spares_.end(), [&](const Candidate& other) {
      return differ_in_links(other.strategy, slower.strategy);
    });
    if (known == spares_.end())
      spares_.push_back(slower);
    else if (faster(slower, *known))
      *known = slower;
    if (spares_.size() > top_) spares_.erase(std::max_element(spares_.begin(), spares_.end(), faster));
  }

  std::size_t top_;
  Seconds too_slow_;
  bool any_will_do_;
  std::vector<Candidate> best_;    ///< none differs from another in the sizes of microbatches and chunks alone
  std::vector<Candidate> spares_;  ///< that do
};

}  // namespace assay::search

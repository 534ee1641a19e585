// How far percentiles of a replay may be off: the requests of spans of time are drawn again, span by span (the block
// bootstrap of Kunsch, "The jackknife and the bootstrap for general stationary observations", 1989), because those that
// wait in one queue are late together.
#pragma once
#include <cstdint>
#include <vector>

#include "assay/predict/serving/load/load_record.h"

namespace assay::serving {

/// Counts of several values in bins of half a percent, for each of at most 64 equal spans of time: where there would be
/// more, two become one.
class BlockedCounts {
 public:
  explicit BlockedCounts(std::size_t values) : values_(values) {}

  /// `bin`: as Quantiles::add() returned it.
  void add(std::size_t value, double when, std::int64_t bin);

  struct Interval {
    double low = 0, high = 0;
  };
  /// Where each percentile lies in 95 of 100 draws of as many spans as there are, within a bin; nothing where there are
  /// fewer than eight spans or a hundred requests.
  std::vector<Interval> intervals(std::size_t value, const std::vector<double>& shares, std::uint64_t seed) const;

 private:
  /// Counts from the bin `least` on.
  struct Counts {
    std::int64_t least = 0;
    std::vector<std::int32_t> bins{};
    std::int32_t& at(std::int64_t bin);
  };
  void halve();

  std::size_t values_;
  double width_ = 1.0 / 16.0;
  std::vector<Counts> counts_;  ///< of each span, its values
};

}  // namespace assay::serving

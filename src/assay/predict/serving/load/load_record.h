// What a replay keeps of a load: percentiles and series in memory that does not grow with the number of requests.
#pragma once
#include <cstdint>
#include <vector>

#include "assay/predict/serving/load/queueing.h"

namespace assay::serving {

/// Quantiles of positive numbers within a thousandth of their value: counts in bins that grow by a constant factor
/// (Masson, Rim and Lee, "DDSketch", 2019).
class Quantiles {
 public:
  /// Returns the bin.
  std::int64_t add(double value);
  /// Where a bin begins.
  static double edge(std::int64_t bin);
  /// The value that this share of all is at or below.
  double at(double share) const;
  /// The most that so many of the largest values add up to.
  double most_of(std::int64_t largest) const;
  double sum() const { return sum_; }
  double mean() const { return count_ == 0 ? 0.0 : sum_ / static_cast<double>(count_); }
  std::int64_t count() const { return count_; }
  Spread spread() const { return {Seconds(mean()), Seconds(at(0.5)), Seconds(at(0.9)), Seconds(at(0.99))}; }

 private:
  std::vector<std::int64_t> bins_;
  std::int64_t least_ = 0;  ///< number of the first bin
  std::int64_t count_ = 0, none_ = 0;
  double sum_ = 0;
};

/// Means over time in equal spans, at most 2 x `spans` of them: where there would be more, two become one.
class TimeSeries {
 public:
  explicit TimeSeries(std::size_t values, std::size_t spans = 128) : values_(values), most_(2 * spans) {}
  /// A value held from one moment to another.
  void add(std::size_t value, double from, double to, double amount);
  /// Something happened once: its mean over a span is a rate.
  void count(std::size_t value, double when);
  /// The mean of a value over a span, and how long spans are.
  double mean(std::size_t value, std::size_t span) const { return sums_[span * values_ + value] / width_; }
  std::size_t spans() const { return sums_.size() / values_; }
  double width() const { return width_; }

 private:
  void reach(double until);
  std::size_t values_, most_;
  double width_ = 1.0 / 16.0;
  std::vector<double> sums_;
};

}  // namespace assay::serving

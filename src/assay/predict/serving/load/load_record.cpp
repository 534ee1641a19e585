#include "assay/predict/serving/load/load_record.h"

#include <algorithm>
#include <cmath>

#include "assay/base/index.h"

namespace assay::serving {
namespace {

constexpr double bin_factor = 1.001;
const double log_of_factor = std::log(bin_factor);

}  // namespace

double Quantiles::edge(std::int64_t bin) { return std::exp(static_cast<double>(bin) * log_of_factor); }

std::int64_t Quantiles::add(double value) {
  ++count_;
  sum_ += value;
  constexpr double least = 1e-9;  // a nanosecond: nothing of a request is quicker
  if (!(value > least)) {
    ++none_;
    return static_cast<std::int64_t>(std::floor(std::log(least) / log_of_factor));
  }
  const auto bin = static_cast<std::int64_t>(std::floor(std::log(value) / log_of_factor));
  if (bins_.empty()) least_ = bin;
  if (bin < least_) {
    bins_.insert(bins_.begin(), static_cast<std::size_t>(least_ - bin), 0);
    least_ = bin;
  }
  const std::size_t place = assay::at(bin - least_);
  if (place >= bins_.size()) bins_.resize(place + 1, 0);
  ++bins_[place];
  return bin;
}

double Quantiles::at(double share) const {
  auto left = static_cast<std::int64_t>(share * static_cast<double>(count_ - 1)) - none_;
  if (count_ == 0 || left < 0) return 0.0;
  for (std::size_t i = 0; i < bins_.size(); ++i) {
    left -= bins_[i];
    if (left < 0) return std::exp((static_cast<double>(least_ + static_cast<std::int64_t>(i)) + 0.5) * log_of_factor);
  }
  return 0.0;
}

double Quantiles::most_of(std::int64_t largest) const {
  double sum = 0.0;
  for (std::size_t i = bins_.size(); i > 0 && largest > 0; --i) {
    const std::int64_t some = std::min(bins_[i - 1], largest);
    sum += static_cast<double>(some) *
           std::exp(static_cast<double>(least_ + static_cast<std::int64_t>(i)) * log_of_factor);
    largest -= some;
  }
  return std::min(sum, sum_);
}

void TimeSeries::reach(double until) {
  while (until >= width_ * static_cast<double>(most_)) {
    const std::size_t half = (spans() + 1) / 2;
    sums_.resize(2 * half * values_, 0.0);
    for (std::size_t i = 0; i < half; ++i)
      for (std::size_t v = 0; v < values_; ++v)
        sums_[i * values_ + v] = sums_[2 * i * values_ + v] + sums_[(2 * i + 1) * values_ + v];
    sums_.resize(half * values_);
    width_ *= 2.0;
  }
  const auto needed = std::min(most_, static_cast<std::size_t>(until / width_) + 1);
  if (spans() < needed) sums_.resize(needed * values_, 0.0);
}

void TimeSeries::count(std::size_t value, double when) {
  reach(when);
  sums_[static_cast<std::size_t>(when / width_) * values_ + value] += 1.0;
}

void TimeSeries::add(std::size_t value, double from, double to, double amount) {
  if (!(to > from)) return;
  reach(to);
  auto span = static_cast<std::size_t>(from / width_);
  while (from < to && span < spans()) {
    const double end = std::min(to, width_ * static_cast<double>(span + 1));
    sums_[span * values_ + value] += amount * (end - from);
    from = end;
    ++span;
  }
}

}  // namespace assay::serving

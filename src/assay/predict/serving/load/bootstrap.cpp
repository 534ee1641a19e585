#include "assay/predict/serving/load/bootstrap.h"

#include <algorithm>
#include <functional>
#include <limits>
#include <numeric>

#include "assay/base/index.h"
#include "assay/predict/serving/load/random.h"

namespace assay::serving {
namespace {

constexpr std::size_t most_spans = 64, least_spans = 8, draws = 400;
/// Bins of Quantiles in one of these.
constexpr std::int64_t joined_bins = 5;

std::int64_t coarse(std::int64_t bin) { return bin >= 0 ? bin / joined_bins : -((-bin - 1) / joined_bins) - 1; }

}  // namespace

std::int32_t& BlockedCounts::Counts::at(std::int64_t bin) {
  if (bins.empty()) least = bin;
  if (bin < least) {
    bins.insert(bins.begin(), static_cast<std::size_t>(least - bin), 0);
    least = bin;
  }
  const auto place = static_cast<std::size_t>(bin - least);
  if (place >= bins.size()) bins.resize(place + 1, 0);
  return bins[place];
}

void BlockedCounts::halve() {
  const std::size_t spans = counts_.size() / values_;
  for (std::size_t span = 0; span < spans; ++span)
    for (std::size_t v = 0; v < values_; ++v) {
      if (span == 0) continue;
      Counts& from = counts_[span * values_ + v];
      Counts& to = counts_[span / 2 * values_ + v];
      if (span % 2 == 0) {
        to = std::move(from);
        from = {};
      } else {
        for (std::size_t i = 0; i < from.bins.size(); ++i)
          if (from.bins[i] > 0) to.at(from.least + static_cast<std::int64_t>(i)) += from.bins[i];
      }
    }
  counts_.resize((spans + 1) / 2 * values_);
  width_ *= 2.0;
}

void BlockedCounts::add(std::size_t value, double when, std::int64_t bin) {
  while (when >= width_ * static_cast<double>(most_spans)) halve();
  const std::size_t place = static_cast<std::size_t>(when / width_) * values_ + value;
  if (place >= counts_.size()) counts_.resize((place / values_ + 1) * values_);
  ++counts_[place].at(coarse(bin));
}

std::vector<BlockedCounts::Interval> BlockedCounts::intervals(std::size_t value, const std::vector<double>& shares,
                                                              std::uint64_t seed) const {
  std::vector<const Counts*> spans;
  std::int64_t least = std::numeric_limits<std::int64_t>::max(), end = std::numeric_limits<std::int64_t>::min();
  std::int64_t requests = 0;
  for (std::size_t i = value; i < counts_.size(); i += values_) {
    const Counts& one = counts_[i];
    if (one.bins.empty()) continue;
    spans.push_back(&one);
    least = std::min(least, one.least), end = std::max(end, one.least + std::ssize(one.bins));
    for (const std::int32_t count : one.bins) requests += count;
  }
  if (spans.size() < least_spans || requests < 100) return {};
  Random random(seed);
  std::vector<std::int64_t> sum;
  std::vector<std::vector<std::int64_t>> found(shares.size());
  for (std::size_t draw = 0; draw < draws; ++draw) {
    sum.assign(static_cast<std::size_t>(end - least), 0);
    for (std::size_t i = 0; i < spans.size(); ++i) {
      const Counts& one = *spans[random.below(spans.size())];
      const auto from = sum.begin() + (one.least - least);
      std::transform(one.bins.begin(), one.bins.end(), from, from, std::plus<std::int64_t>());
    }
    std::partial_sum(sum.begin(), sum.end(), sum.begin());
    for (std::size_t i = 0; i < shares.size(); ++i) {
      const auto rank = static_cast<std::int64_t>(shares[i] * static_cast<double>(sum.back() - 1));
      found[i].push_back(least + (std::upper_bound(sum.begin(), sum.end(), rank) - sum.begin()));
    }
  }
  const auto edge = [](std::int64_t bin) { return Quantiles::edge(bin * joined_bins); };
  std::vector<Interval> out;
  for (std::vector<std::int64_t>& bins : found) {
    std::sort(bins.begin(), bins.end());
    out.push_back({edge(bins[draws / 40]), edge(bins[draws - 1 - draws / 40] + 1)});
  }
  return out;
}

}  // namespace assay::serving

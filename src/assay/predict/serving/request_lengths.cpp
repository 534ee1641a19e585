#include "assay/predict/serving/request_lengths.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "assay/base/text.h"
#include "assay/hardware/catalogue.h"

namespace assay::serving {
namespace {

/// Entries of a table: the last one stands for requests beyond the 99.8th percentile.
constexpr std::size_t shares = 512;

/// Means of `n` equal shares of a sorted table; an entry at a border belongs to both sides in part.
std::vector<std::int64_t> means_of_shares(std::span<const std::int64_t> sorted, std::size_t n) {
  if (sorted.size() <= n) return {sorted.begin(), sorted.end()};
  std::vector<std::int64_t> out;
  const double size = static_cast<double>(sorted.size()) / static_cast<double>(n);
  double filled = 0.0, sum = 0.0;
  for (std::int64_t entry : sorted) {
    const double take = std::min(1.0, size - filled);
    filled += take;
    sum += take * static_cast<double>(entry);
    if (filled < size * (1.0 - 1e-9) || out.size() == n) continue;
    out.push_back(std::max<std::int64_t>(1, std::llround(sum / size)));
    filled = 1.0 - take;
    sum = filled * static_cast<double>(entry);
  }
  return out;
}

/// Quantiles at the middles of equal shares, scaled to a mean (0: as they are).
template <class F>
Lengths tabulated(F quantile, double mean) {
  std::vector<double> values;
  for (std::size_t i = 0; i < shares; ++i)
    values.push_back(quantile((static_cast<double>(i) + 0.5) / static_cast<double>(shares)));
  double scale = 1.0;
  if (mean > 0.0) scale = mean * static_cast<double>(shares) / std::accumulate(values.begin(), values.end(), 0.0);
  // Rounding errors carry over to the next length, so that the sum is rounded, too.
  std::vector<std::int64_t> table;
  double left = 0.0;
  for (double value : values) {
    const double exact = scale * std::min(value, 1e12) + left;
    table.push_back(std::max<std::int64_t>(1, std::llround(exact)));
    left = exact - static_cast<double>(table.back());
  }
  return Lengths::sampled(std::move(table));
}

Result<Lengths> uniform(std::string_view range, std::string_view where) {
  const std::size_t dots = range.find("..");
  if (dots == std::string_view::npos)
    return fail(std::string(where), fmt::format("{} is not a range", in_quotes(range)), "e.g. uniform:100..2000");
  ASSAY_TRY(from, parse_count(range.substr(0, dots), where));
  ASSAY_TRY(to, parse_count(range.substr(dots + 2), where));
  if (from > to)
    return fail(std::string(where), fmt::format("{} is above {}", from, to), "put the smaller value first");
  const double low = static_cast<double>(from), span = static_cast<double>(to - from);
  return tabulated([&](double share) { return low + share * span; }, 0.0);
}

/// Logarithms of lengths are linear in normal quantiles between the given percentiles: two percentiles make a lognormal
/// distribution.
Result<Lengths> percentiles(std::string_view text, std::string_view where) {
  std::vector<std::pair<double, double>> points;
  for (const std::string& part : split(text, ',')) {
    const std::size_t equals = part.find('=');
    const auto percent = part.starts_with('p') && equals != std::string::npos
                             ? parse_number(std::string_view(part).substr(1, equals - 1))
                             : std::nullopt;
    if (!percent || !(*percent > 0.0 && *percent < 100.0))
      return fail(std::string(where), fmt::format("{} is not a percentile", in_quotes(part)), "e.g. p50=300,p99=4k");
    ASSAY_TRY(tokens, parse_count(std::string_view(part).substr(equals + 1), where));
    points.emplace_back(normal_quantile(*percent / 100.0), std::log(static_cast<double>(tokens)));
  }
  std::sort(points.begin(), points.end());
  for (std::size_t i = 1; i < points.size(); ++i)
    if (points[i].first == points[i - 1].first || points[i].second < points[i - 1].second)
      return fail(std::string(where), "give each percentile once, with lengths that do not fall",
                  "e.g. p50=300,p90=2k,p99=4k");
  if (points.size() < 2) return fail(std::string(where), "one percentile is not a distribution", "e.g. p50=300,p99=4k");
  return tabulated(
      [&](double share) {
        const double z = normal_quantile(share);
        std::size_t i = 1;
        while (i + 1 < points.size() && points[i].first < z) ++i;
        const auto& [x0, y0] = points[i - 1];
        const auto& [x1, y1] = points[i];
        return std::exp(y0 + (z - x0) * (y1 - y0) / (x1 - x0));
      },
      0.0);
}

Result<Lengths> from_file(std::string_view path, std::string_view where) {
  ASSAY_TRY(text, hardware::read_file(std::string(path), where));
  std::vector<std::int64_t> values;
  std::size_t line = 0;
  for (const std::string& part : split(text, '\n')) {
    ++line;
    if (trim(part).empty()) continue;
    ASSAY_TRY(tokens, parse_count(trim(part), fmt::format("{}:{}", path, line)));
    values.push_back(tokens);
  }
  if (values.empty()) return fail(std::string(where), fmt::format("{} has no lengths", path), "one length per line");
  return Lengths::sampled(std::move(values));
}

}  // namespace

Lengths::Lengths(std::vector<std::int64_t> table) : table_(std::move(table)) {
  mean_ = std::accumulate(table_.begin(), table_.end(), 0.0) / static_cast<double>(table_.size());
}

Lengths Lengths::fixed(std::int64_t tokens) { return Lengths({tokens}); }

Lengths Lengths::sampled(std::vector<std::int64_t> tokens) {
  std::sort(tokens.begin(), tokens.end());
  return Lengths(tokens.size() > shares ? means_of_shares(tokens, shares) : std::move(tokens));
}

Lengths Lengths::thinned(std::size_t entries) const { return Lengths(means_of_shares(table_, entries)); }

double Lengths::squared_variation() const {
  double sum = 0.0;
  for (std::int64_t n : table_) sum += (static_cast<double>(n) - mean_) * (static_cast<double>(n) - mean_);
  return sum / static_cast<double>(table_.size()) / (mean_ * mean_);
}

std::int64_t Lengths::quantile(double share) const {
  const double place = std::floor(share * static_cast<double>(table_.size()));
  return table_[static_cast<std::size_t>(std::clamp(place, 0.0, static_cast<double>(table_.size() - 1)))];
}

bool Lengths::cut(std::int64_t most) {
  if (table_.back() <= most) return false;
  for (std::int64_t& n : table_) n = std::min(n, std::max<std::int64_t>(1, most));
  *this = Lengths(std::move(table_));
  return true;
}

bool lengths_need_mean(std::string_view text) {
  return text.starts_with("lognormal") || text.starts_with("exponential");
}

Result<Lengths> parse_lengths(std::string_view text, std::int64_t mean, std::string_view where) {
  constexpr std::string_view lognormal = "lognormal:", range = "uniform:";
  if (text.starts_with('@')) return from_file(text.substr(1), where);
  if (text.starts_with(range)) return uniform(text.substr(range.size()), where);
  if (text.starts_with('p')) return percentiles(text, where);
  if (text == "exponential")
    return tabulated([](double share) { return -std::log1p(-share); }, static_cast<double>(mean));
  if (text.starts_with(lognormal)) {
    const auto sigma = parse_number(text.substr(lognormal.size()));
    if (!sigma || *sigma < 0.0 || *sigma > 5.0)
      return fail(std::string(where), fmt::format("{} is not a sigma from 0 to 5", in_quotes(text)),
                  "the standard deviation of the logarithm of lengths, e.g. lognormal:1");
    return tabulated([&](double share) { return std::exp(*sigma * normal_quantile(share)); },
                     static_cast<double>(mean));
  }
  return fail(std::string(where), fmt::format("{} is not a length distribution", in_quotes(text)),
              "lognormal:SIGMA, exponential, uniform:A..B, p50=N,p99=N or @FILE with a length per line");
}

RequestLengths request_lengths(Lengths prompt, Lengths output, std::int64_t page) {
  // Enough that bins of the contexts are smooth, few enough to be done in a millisecond.
  constexpr std::size_t fine = 64, places = 8, coarse = 16, bins = 64;
  struct Weighted {
    double tokens, weight;
  };
  std::vector<Weighted> all;
  double weights = 0.0, sum = 0.0, kept = 0.0;
  const Lengths prompts = prompt.thinned(fine), outputs = output.thinned(fine);
  for (const std::int64_t p : prompts.table())
    for (const std::int64_t n : outputs.table())
      for (std::size_t i = 0; i < places; ++i) {
        const double weight = static_cast<double>(n);
        const double place = (static_cast<double>(i) + 0.5) / static_cast<double>(places) * weight;
        all.push_back({static_cast<double>(p) + place, weight});
        weights += weight;
        sum += weight * all.back().tokens;
      }
  std::sort(all.begin(), all.end(), [](const Weighted& a, const Weighted& b) { return a.tokens < b.tokens; });
  // Means of shares of equal weight; an entry at a border belongs to both.
  const auto binned = [&](std::size_t n, std::int64_t unit) {
    std::vector<std::int64_t> out;
    double filled = 0.0, inside = 0.0;
    const double size = weights / static_cast<double>(n);
    for (const Weighted& w : all) {
      const double tokens =
          unit > 0 ? std::ceil(w.tokens / static_cast<double>(unit)) * static_cast<double>(unit) : w.tokens;
      double left = w.weight;
      while (left > 0.0 && out.size() < n) {
        const double take = std::min(left, size - filled);
        filled += take;
        inside += take * tokens;
        left -= take;
        if (filled < size * (1.0 - 1e-9)) break;
        out.push_back(std::max<std::int64_t>(1, std::llround(inside / filled)));
        filled = inside = 0.0;
      }
    }
    return out;
  };
  RequestLengths lengths{std::move(prompt), std::move(output), page, {}, {}, sum / weights, 0.0};
  lengths.seen = binned(coarse, 0);
  if (page > 0)
    lengths.reserved = binned(bins, page);
  else
    lengths.reserved = {lengths.prompt.largest() + lengths.output.largest()};
  for (std::int64_t n : lengths.reserved) kept += static_cast<double>(n) / static_cast<double>(lengths.reserved.size());
  lengths.waste = std::max(0.0, 1.0 - lengths.context / kept);
  return lengths;
}

double normal_share(double value) { return 0.5 * std::erfc(-value / std::sqrt(2.0)); }

double normal_quantile(double share) {
  if (share <= 0.0) return -HUGE_VAL;
  if (share >= 1.0) return HUGE_VAL;
  // The share grows with the value, so bisection finds it; this is not a hot path.
  double low = -40.0, high = 40.0;
  for (int i = 0; i < 200 && high - low > 1e-14 * std::max(1.0, std::abs(low)); ++i) {
    const double middle = 0.5 * (low + high);
    (normal_share(middle) < share ? low : high) = middle;
  }
  return 0.5 * (low + high);
}

}  // namespace assay::serving

#include "assay/engine/serving/sampling.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "assay/engine/array.h"

namespace assay::engine {

Distribution distribution(std::span<const double> logits, const Sampling& sampling) {
  Distribution out(logits.size(), 0.0);
  const auto best = std::max_element(logits.begin(), logits.end());
  if (!(sampling.temperature > 0.0)) {
    out[static_cast<std::size_t>(best - logits.begin())] = 1.0;
    return out;
  }
  for (std::size_t i = 0; i < out.size(); ++i) out[i] = std::exp((logits[i] - *best) / sampling.temperature);
  const auto normalise = [&] {
    const double sum = std::accumulate(out.begin(), out.end(), 0.0);
    for (double& p : out) p /= sum;
  };
  normalise();
  if (sampling.top_p >= 1.0) return out;
  std::vector<std::size_t> order(out.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return out[a] > out[b]; });
  double sum = 0;
  for (std::size_t i : order) {
    const double p = out[i];
    if (sum >= sampling.top_p) out[i] = 0;
    sum += p;
  }
  normalise();
  return out;
}

int drawn(const Distribution& from, double uniform) {
  double sum = 0;
  int last = 0;
  for (std::size_t i = 0; i < from.size(); ++i) {
    if (!(from[i] > 0.0)) continue;
    last = static_cast<int>(i);
    sum += from[i];
    if (uniform < sum) break;
  }
  return last;
}

Verdict verified(int token, const Distribution& draft, const Distribution& target, std::span<const double, 2> uniform) {
  const auto at = static_cast<std::size_t>(token);
  if (uniform[0] * draft[at] < target[at]) return {true, token};
  Distribution rest(target.size());
  double sum = 0;
  for (std::size_t i = 0; i < rest.size(); ++i) sum += rest[i] = std::max(0.0, target[i] - draft[i]);
  if (!(sum > 0.0)) return {true, token};  // both are the same, but for rounding
  for (double& p : rest) p /= sum;
  return {false, drawn(rest, uniform[1])};
}

double Draws::next() {
  constexpr double unit = 1.0 / 9007199254740992.0;  // 2^-53
  return static_cast<double>(mixed(seed_, count_++) >> 11) * unit;
}

}  // namespace assay::engine

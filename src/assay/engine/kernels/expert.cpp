#include "assay/engine/kernels/expert.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

#include "assay/base/index.h"

namespace assay::engine {
namespace {

/// The experts with the k largest scores.
std::vector<std::size_t> chosen(const double* scores, std::int64_t experts, std::int64_t k) {
  std::vector<std::size_t> order(at(experts));
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return scores[a] > scores[b]; });
  order.resize(at(k));
  return order;
}

/// Calls visit(token, expert, slot) for every token with a slot at some experts: `here` of them starting
/// at `first`, `slots` each.
template <class Visit>
void each_slot(const Array& gates, std::int64_t first, std::int64_t here, std::int64_t slots, Visit visit) {
  const std::size_t experts = at(gates.shape.back());
  std::vector<std::int64_t> next(at(here), 0);
  for (std::size_t token = 0; token < gates.values.size() / experts; ++token)
    for (std::size_t i = 0; i < at(here); ++i)
      if (const std::size_t e = at(first) + i; gates.values[token * experts + e] > 0 && next[i] < slots)
        visit(token, e, i * at(slots) + at(next[i]++));
}

Shape token_shape(const Array& gates, std::int64_t width) { return {gates.shape[0], gates.shape[1], width}; }

}  // namespace

Array route(const Array& scores, std::int64_t k, bool of_all) {
  const std::int64_t experts = scores.shape.back();
  Array gates = zeros(scores.shape);
  for (std::size_t row = 0; row < scores.values.size(); row += at(experts)) {
    const auto best = chosen(&scores.values[row], experts, k);
    const double most = scores.values[row + best.front()];
    double sum = 0;
    for (std::size_t e = 0; of_all && e < at(experts); ++e) sum += std::exp(scores.values[row + e] - most);
    for (std::size_t e : best) sum += of_all ? 0.0 : std::exp(scores.values[row + e] - most);
    for (std::size_t e : best) gates.values[row + e] = std::exp(scores.values[row + e] - most) / sum;
  }
  return gates;
}

Array route_grad(const Array& d_gates, const Array& scores, std::int64_t k) {
  const Array gates = route(scores, k);
  const std::size_t experts = at(scores.shape.back());
  Array out = zeros(scores.shape);
  for (std::size_t row = 0; row < scores.values.size(); row += experts) {
    double common = 0;
    for (std::size_t e = 0; e < experts; ++e) common += gates.values[row + e] * d_gates.values[row + e];
    for (std::size_t e = 0; e < experts; ++e)
      out.values[row + e] = gates.values[row + e] * (d_gates.values[row + e] - common);
  }
  return out;
}

Array dispatch(const Array& tokens, const Array& gates, std::int64_t first, std::int64_t here, std::int64_t slots) {
  const std::int64_t width = tokens.shape.back();
  Array out = zeros({here, slots, width});
  each_slot(gates, first, here, slots, [&](std::size_t token, std::size_t, std::size_t slot) {
    std::copy_n(&tokens.values[token * at(width)], width, &out.values[slot * at(width)]);
  });
  return out;
}

Array dispatch_grad(const Array& d_slots, const Array& gates, std::int64_t first) {
  const std::int64_t width = d_slots.shape.back();
  Array out = zeros(token_shape(gates, width));
  each_slot(gates, first, d_slots.shape[0], d_slots.shape[1], [&](std::size_t token, std::size_t, std::size_t slot) {
    for (std::size_t i = 0; i < at(width); ++i)
      out.values[token * at(width) + i] += d_slots.values[slot * at(width) + i];
  });
  return out;
}

Array combine(const Array& slots, const Array& gates, std::int64_t first) {
  const std::size_t width = at(slots.shape.back()), experts = at(gates.shape.back());
  Array out = zeros(token_shape(gates, slots.shape.back()));
  each_slot(gates, first, slots.shape[0], slots.shape[1], [&](std::size_t token, std::size_t e, std::size_t slot) {
    const double gate = gates.values[token * experts + e];
    for (std::size_t i = 0; i < width; ++i) out.values[token * width + i] += gate * slots.values[slot * width + i];
  });
  return out;
}

std::pair<Array, Array> combine_grad(const Array& dy, const Array& slots, const Array& gates, std::int64_t first) {
  const std::size_t width = at(slots.shape.back()), experts = at(gates.shape.back());
  Array d_slots = zeros(slots.shape), d_gates = zeros(gates.shape);
  each_slot(gates, first, slots.shape[0], slots.shape[1], [&](std::size_t token, std::size_t e, std::size_t slot) {
    const double gate = gates.values[token * experts + e];
    for (std::size_t i = 0; i < width; ++i) {
      const double d = dy.values[token * width + i];
      d_slots.values[slot * width + i] = gate * d;
      d_gates.values[token * experts + e] += d * slots.values[slot * width + i];
    }
  });
  return {std::move(d_slots), std::move(d_gates)};
}

}  // namespace assay::engine

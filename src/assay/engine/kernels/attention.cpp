#include "assay/engine/kernels/attention.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "assay/base/index.h"

namespace assay::engine {
namespace {

/// The sizes of one attention, and row offsets in the arrays.
struct Sizes {
  std::int64_t batch, queries, heads, width, keys, kv_heads, value_row, value_dim;

  Sizes(const Array& q, const Array& k, const Array* v, const AttentionPlace& place)
      : batch(q.shape[0]),
        queries(q.shape[1]),
        heads(q.shape[2]),
        width(q.shape[3]),
        keys(k.shape[1]),
        kv_heads(k.shape.size() == 4 ? k.shape[2] : 1),
        value_row(v ? v->shape.back() : width),
        value_dim(place.value_dim) {}

  std::size_t query(std::int64_t b, std::int64_t s, std::int64_t n) const {
    return static_cast<std::size_t>((b * queries + s) * heads + n);
  }
  std::size_t key(std::int64_t b, std::int64_t t, std::int64_t n, const AttentionPlace& place) const {
    const std::int64_t head =
        place.heads_per_kv_head == 0 ? 0 : (place.first_head + n) / place.heads_per_kv_head - place.first_kv_head;
    return static_cast<std::size_t>((b * keys + t) * kv_heads + head);
  }
};

/// Less than any score.
constexpr double lowest = -std::numeric_limits<double>::infinity();

/// Whether the local query at `row` of all sequences, at position `query`, sees a key.
bool sees(std::int64_t row, std::int64_t query, std::int64_t key, const AttentionPlace& place) {
  if (place.picks) {
    const std::int64_t picks = place.picks->shape[2];
    const double* first = &place.picks->values[static_cast<std::size_t>(row * picks)];
    if (std::find(first, first + picks, static_cast<double>(key)) == first + picks) return false;
  }
  if (place.causal && key > query) return false;
  if (place.window > 0 && place.causal && key <= query - place.window) return false;
  if (place.window > 0 && !place.causal && std::abs(key - query) > (place.window - 1) / 2) return false;
  return place.chunk == 0 || key / place.chunk == query / place.chunk;
}

double dot(const double* a, const double* b, std::int64_t n) {
  double sum = 0;
  for (std::int64_t i = 0; i < n; ++i) sum += a[i] * b[i];
  return sum;
}

void add_scaled(double* to, double factor, const double* from, std::int64_t n) {
  for (std::int64_t i = 0; i < n; ++i) to[i] += factor * from[i];
}

/// The index of a score's bias among the terms.
std::size_t term_of(std::int64_t query, std::int64_t key, std::int64_t head, std::int64_t heads,
                    const AttentionPlace& place) {
  return at(relative_bucket(query, key, place.buckets, place.causal) * heads + head);
}

}  // namespace

std::int64_t relative_bucket(std::int64_t query, std::int64_t key, std::int64_t buckets, bool causal) {
  constexpr double farthest = 128.0;
  std::int64_t first = 0, distance = query - key;
  if (!causal) {
    buckets /= 2;
    if (distance < 0) first = buckets;
    distance = std::abs(distance);
  }
  distance = std::max<std::int64_t>(distance, 0);
  const std::int64_t near = buckets / 2;
  if (distance < near) return first + distance;
  const double share = std::log(static_cast<double>(distance) / static_cast<double>(near)) /
                       std::log(farthest / static_cast<double>(near));
  return first + std::min(buckets - 1, near + static_cast<std::int64_t>(share * static_cast<double>(buckets - near)));
}

std::pair<Array, Array> attention(const Array& q, const Array& k, const Array* v, const Array* terms,
                                  const AttentionPlace& place) {
  const Sizes sizes(q, k, v, place);
  const Array& values = v ? *v : k;
  const std::size_t width = at(sizes.width), row = at(sizes.value_row), out_row = at(sizes.value_dim);
  Array out = zeros({sizes.batch, sizes.queries, sizes.heads, sizes.value_dim});
  Array rest = place.flash ? zeros({sizes.batch, sizes.queries, sizes.heads})
                           : zeros({sizes.batch, sizes.queries, sizes.heads, sizes.keys});
  std::vector<double> weights(at(sizes.keys));
  for (std::int64_t b = 0; b < sizes.batch; ++b)
    for (std::int64_t s = 0; s < sizes.queries; ++s)
      for (std::int64_t n = 0; n < sizes.heads; ++n) {
        const std::size_t query = sizes.query(b, s, n);
        // Sums over parts of the keys are added over devices later, so nothing is subtracted from their scores.
        const bool sinks = terms && place.buckets == 0;
        double most = sinks && !place.partial ? terms->values[at(n)] : place.partial ? 0.0 : lowest;
        for (std::int64_t t = 0; t < sizes.keys; ++t) {
          const bool visible =
              t < place.key_count && sees(b * sizes.queries + s, place.first_query + s, place.first_key + t, place);
          double score =
              place.scale * dot(&q.values[query * width], &k.values[sizes.key(b, t, n, place) * width], sizes.width);
          if (place.buckets > 0)
            score += terms->values[term_of(place.first_query + s, place.first_key + t, n, sizes.heads, place)];
          if (place.cap > 0) score = place.cap * std::tanh(score / place.cap);
          weights[at(t)] = visible ? score : lowest;
          if (visible && !place.partial) most = std::max(most, score);
        }
        double sum = sinks ? std::exp(terms->values[at(n)] - most) : 0.0;
        for (double& weight : weights) sum += weight = weight == lowest ? 0.0 : std::exp(weight - most);
        const double divisor = place.partial ? 1.0 : sum;
        for (std::int64_t t = 0; t < sizes.keys; ++t) {
          const double share = weights[at(t)] / divisor;
          add_scaled(&out.values[query * out_row], share, &values.values[sizes.key(b, t, n, place) * row],
                     sizes.value_dim);
          if (!place.flash) rest.values[query * at(sizes.keys) + at(t)] = share;
        }
        if (place.flash) rest.values[query] = place.partial ? sum : std::log(sum) + most;
      }
  return {std::move(out), std::move(rest)};
}

Array picked_keys(const Array& q, const Array& k, const Array& w, std::int64_t picks, std::int64_t first_query) {
  const std::int64_t queries = q.shape[1], heads = q.shape[2], width = q.shape[3], keys = k.shape[1];
  Array out = zeros({q.shape[0], queries, picks});
  for (std::int64_t row = 0; row < q.shape[0] * queries; ++row) {
    const std::int64_t seen = std::min(keys, first_query + row % queries + 1);
    std::vector<std::pair<double, std::int64_t>> scores;  // negative, so that the highest comes first
    for (std::int64_t t = 0; t < seen; ++t) {
      double score = 0;
      for (std::int64_t j = 0; j < heads; ++j)
        score += w.values[at(row * heads + j)] *
                 std::max(0.0, dot(&q.values[at((row * heads + j) * width)],
                                   &k.values[at((row / queries * keys + t) * width)], width));
      scores.emplace_back(-score, t);
    }
    std::sort(scores.begin(), scores.end());
    for (std::int64_t i = 0; i < picks; ++i)
      out.values[at(row * picks + i)] = i < seen ? static_cast<double>(scores[at(i)].second) : -1.0;
  }
  return out;
}

Array attention_quotient(const Array& sums, const Array& weights, const Array* sinks) {
  Array out = sums;
  const std::size_t width = at(sums.shape.back()), heads = at(sums.shape[2]);
  for (std::size_t i = 0; i < out.values.size(); ++i)
    out.values[i] /= weights.values[i / width] + (sinks ? std::exp(sinks->values[i / width % heads]) : 0.0);
  return out;
}

AttentionGradients attention_grad(const Array& d_out, const AttentionPass& forward, const AttentionPlace& place) {
  const auto& [q, k, v, out, rest, terms] = forward;
  const Sizes sizes(q, k, &v, place);
  const std::size_t width = at(sizes.width), value_dim = at(sizes.value_dim);
  AttentionGradients grads{zeros(q.shape), zeros(k.shape), zeros(v.shape), {}};
  if (terms) grads.d_terms = zeros(terms->shape);
  for (std::int64_t b = 0; b < sizes.batch; ++b)
    for (std::int64_t s = 0; s < sizes.queries; ++s)
      for (std::int64_t n = 0; n < sizes.heads; ++n) {
        const std::size_t query = sizes.query(b, s, n);
        const double* d_row = &d_out.values[query * value_dim];
        // The sum over keys of p x dp is the dot product of the result and its gradient.
        const double common = dot(d_row, &out.values[query * value_dim], sizes.value_dim);
        double unseen = 1.0;  // the weight of the sink
        for (std::int64_t t = 0; t < sizes.keys; ++t) {
          const std::int64_t row = b * sizes.queries + s;
          if (t >= place.key_count || !sees(row, place.first_query + s, place.first_key + t, place)) continue;
          const std::size_t key = sizes.key(b, t, n, place);
          const double* q_row = &q.values[query * width];
          const double* k_row = &k.values[key * width];
          const std::size_t term =
              place.buckets > 0 ? term_of(place.first_query + s, place.first_key + t, n, sizes.heads, place) : 0;
          const double shift = place.buckets > 0 ? terms->values[term] : 0.0;
          const double p = place.flash
                               ? std::exp(place.scale * dot(q_row, k_row, sizes.width) + shift - rest.values[query])
                               : rest.values[query * at(sizes.keys) + at(t)];
          const double dp = dot(d_row, &v.values[key * value_dim], sizes.value_dim);
          const double ds = place.scale * p * (dp - common);
          unseen -= p;
          if (place.buckets > 0) grads.d_terms.values[term] += p * (dp - common);
          add_scaled(&grads.dq.values[query * width], ds, k_row, sizes.width);
          add_scaled(&grads.dk.values[key * width], ds, q_row, sizes.width);
          add_scaled(&grads.dv.values[key * value_dim], p, d_row, sizes.value_dim);
        }
        if (terms && place.buckets == 0) grads.d_terms.values[at(n)] -= unseen * common;
      }
  return grads;
}

}  // namespace assay::engine

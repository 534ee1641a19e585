// Attention on one device, by definition: a device may hold a part of the queries, heads or keys.
#pragma once
#include <cstdint>
#include <utility>

#include "assay/engine/kernels/layer.h"

namespace assay::engine {

/// Positions of the local queries, keys and heads in the whole, and the mask.
struct AttentionPlace {
  std::int64_t first_query = 0, first_key = 0;  ///< positions in the sequence
  std::int64_t first_head = 0, first_kv_head = 0;
  std::int64_t key_count = 0;          ///< of the local keys; the rest is padding
  std::int64_t heads_per_kv_head = 1;  ///< 0: all heads share keys [b, t, h]
  std::int64_t value_dim = 1;
  double scale = 1, cap = 0;  ///< cap: as in model::Definition
  bool causal = true;
  std::int64_t window = 0, chunk = 0;  ///< 0: none
  bool flash = true;                   ///< also returns one number per query and head, else all probabilities
  bool partial = false;                ///< keys are a part: plain sums, to be added and divided later
  std::int64_t buckets = 0;            ///< of relative positions; 0: terms of scores are sinks
  const Array* picks = nullptr;        ///< [b, s, p]: positions of the keys that a query sees; nullptr: all
};

/// The positions [b, s, picks] of the keys with the highest scores, below 0 if there are fewer: sums over heads of
/// w [b, s, j] x max(0, q [b, s, j, h] · k [b, t, h]). Queries start at position `first_query`, keys at 0.
Array picked_keys(const Array& q, const Array& k, const Array& w, std::int64_t picks, std::int64_t first_query);

/// The bucket of the distance between two positions: near distances have their own, far ones share, as in T5.
std::int64_t relative_bucket(std::int64_t query, std::int64_t key, std::int64_t buckets, bool causal);

/// q [b, s, n, h], k [b, t, k, h], v [b, t, k, v] (nullptr: the leading part of k): the result [b, s, n, v] and the
/// logarithms of the sums of exponentials [b, s, n] (the sums themselves when partial), or probabilities [b, s, n, t].
/// `terms`, if any: a sink for each head [n], which takes weight but adds no value, or score biases [buckets, n].
std::pair<Array, Array> attention(const Array& q, const Array& k, const Array* v, const Array* terms,
                                  const AttentionPlace& place);

/// Sums of weighted values divided by the sums of weights, including sinks (nullptr: none).
Array attention_quotient(const Array& sums, const Array& weights, const Array* sinks);

/// Inputs of the gradient of attention.
struct AttentionPass {
  const Array &q, &k, &v;
  const Array &out, &rest;       ///< the results of attention()
  const Array* terms = nullptr;  ///< as in attention()
};
struct AttentionGradients {
  Array dq, dk, dv, d_terms;
};
AttentionGradients attention_grad(const Array& d_out, const AttentionPass& forward, const AttentionPlace& place);

}  // namespace assay::engine

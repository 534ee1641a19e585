// State spaces and linear attention on one device, step by step by definition, and their gradients.
// The state S of a head has a row for each key dimension and a column for each value:
//   S <- decay x S - removal (S' removed) + weight x key value;  result = S' query + skip x value.
// The delta rule removes the value that the state holds for the key. RWKV 4 to 6 read the state before adding the
// token, which has its own bonus. A normaliser is a value that is always 1; its result divides the others.
#pragma once
#include <cstdint>
#include <vector>

#include "assay/engine/kernels/layer.h"
#include "assay/model/transformer.h"

namespace assay::engine {

/// The local heads: the first head and the first key head, the total number of heads, and how many share keys.
struct RecurrencePlace {
  model::StateSpace::Kind kind = model::StateSpace::Kind::mamba2;
  std::int64_t first_head = 0, first_key_head = 0, heads = 1, key_heads = 1, key_dim = 1;
  std::int64_t value_dim = 1;  ///< of one head
};

/// Inputs in the order of the program's step. Mamba: x, B, C, dt, A, dt's bias, skip. Gated delta rule: v, q, k, beta,
/// alpha, A, bias. Lightning attention: v, q, k. Gated linear recurrence: x, input gate, decay gate, A. RWKV 4: v, k,
/// A, bonus; 5 and 6: v, r, k, decay, bonus; 7: v, r, k, decay, rate, scales of keys. mLSTM: v, q, k, input gate,
/// forget gate. RWKV 7 returns the skipped part as a second result. `state` holds the states of all local sequences
/// and heads: empty before the first token, new states afterwards.
std::vector<Array> recurrence(const std::vector<const Array*>& in, const RecurrencePlace& place,
                              Array* state = nullptr);
/// Gradients of all inputs, in input order, from the gradients of the results.
std::vector<Array> recurrence_grad(const std::vector<const Array*>& dy, const std::vector<const Array*>& in,
                                   const RecurrencePlace& place);

}  // namespace assay::engine

// State spaces and linear attention on one device, step by step as their definition says, and their gradients.
// The state S of a head has a row for each key dimension and a column for each value:
//   S <- decay x S;  S <- S + weight x key (value - S' key, or value);  result = S' query + skip x value.
#pragma once
#include <cstdint>
#include <vector>

#include "assay/execute/layer_kernels.h"
#include "assay/model/transformer.h"

namespace assay {

/// Which heads are here: the first of them and of those of keys, how many there are in all, and how many share keys.
struct RecurrencePlace {
  StateSpace::Kind kind = StateSpace::Kind::mamba2;
  std::int64_t first_head = 0, first_key_head = 0, heads = 1, key_heads = 1, key_dim = 1;
  std::int64_t value_dim = 1;  ///< of one head
};

/// Inputs in the order of the program's step. Mamba: x, B, C, dt, A, dt's bias, skip. Gated delta rule: v, q, k, beta,
/// alpha, A, bias. Lightning attention: v, q, k. Gated linear recurrence: x, input gate, decay gate, A.
/// `state` holds those of all sequences and heads that are here: empty before the first token, new ones afterwards.
Numbers recurrence(const std::vector<const Numbers*>& in, const RecurrencePlace& place, Numbers* state = nullptr);
/// Gradients of all inputs, in their order.
std::vector<Numbers> recurrence_grad(const Numbers& dy, const std::vector<const Numbers*>& in,
                                     const RecurrencePlace& place);

/// silu of a sum over the last `width` tokens of x [b, s, c], each channel by itself: weights [c, width], maybe a bias.
/// `before` holds the tokens of x before these that a sum reaches back to, likewise.
Numbers convolve(const Numbers& x, const Numbers& weights, const Numbers* bias, Numbers* before = nullptr);
std::vector<Numbers> convolve_grad(const Numbers& dy, const Numbers& x, const Numbers& weights, const Numbers* bias);

}  // namespace assay

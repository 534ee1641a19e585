// Mixtures of experts on one device: which tokens go to which experts, there and back.
#pragma once
#include <cstdint>
#include <utility>

#include "assay/engine/kernels/layer.h"

namespace assay::engine {

/// Gates [b, s, e]: a softmax over the k largest scores of each token, zero elsewhere.
Array route(const Array& scores, std::int64_t k, bool of_all = false);
Array route_grad(const Array& d_gates, const Array& scores, std::int64_t k);

/// Tokens [b, s, d] in the slots [e, c, d] of the experts that their gates select, in token order. Tokens without a
/// slot are dropped. Only for the `here` experts starting at `first`.
Array dispatch(const Array& tokens, const Array& gates, std::int64_t first, std::int64_t here, std::int64_t slots);
Array dispatch_grad(const Array& d_slots, const Array& gates, std::int64_t first);

/// Results from the slots of experts starting at `first`, weighted by the gates, back at their tokens.
Array combine(const Array& slots, const Array& gates, std::int64_t first);
/// Gradients of slots and gates.
std::pair<Array, Array> combine_grad(const Array& dy, const Array& slots, const Array& gates, std::int64_t first);

}  // namespace assay::engine

// Mixtures of experts on one device: which tokens go to which experts, there and back.
#pragma once
#include <cstdint>
#include <utility>

#include "assay/engine/kernels/layer.h"

namespace assay::engine {

/// Gates [b, s, e]: a softmax over the k largest scores of each token, zero elsewhere.
Numbers route(const Numbers& scores, std::int64_t k);
Numbers route_grad(const Numbers& d_gates, const Numbers& scores, std::int64_t k);

/// Tokens [b, s, d] in the slots [e, c, d] of the experts that their gates select, in token order. Tokens without a
/// slot are dropped. Only for the `here` experts starting at `first`.
Numbers dispatch(const Numbers& tokens, const Numbers& gates, std::int64_t first, std::int64_t here,
                 std::int64_t slots);
Numbers dispatch_grad(const Numbers& d_slots, const Numbers& gates, std::int64_t first);

/// Results from the slots of experts starting at `first`, weighted by the gates, back at their tokens.
Numbers combine(const Numbers& slots, const Numbers& gates, std::int64_t first);
/// Gradients of slots and gates.
std::pair<Numbers, Numbers> combine_grad(const Numbers& dy, const Numbers& slots, const Numbers& gates,
                                         std::int64_t first);

}  // namespace assay::engine

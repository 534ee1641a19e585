// Kernels that look back a few tokens of a sequence on one device: short convolutions, shifts by one token, mixtures
// with shifted tokens, and their gradients.
#pragma once
#include <cstdint>
#include <vector>

#include "assay/engine/kernels/layer.h"

namespace assay::engine {

/// The token before each token of x [b, s, c]. Before the first comes the last token of part `part` - 1 in `edges`
/// [b, parts, c], or the one stored in `last`, or nothing.
Numbers shifted(const Numbers& x, const Numbers* edges, std::int64_t part, Numbers* last = nullptr);
/// Gradients of x, and of the edges if there are `parts` of them.
std::vector<Numbers> shifted_grad(const Numbers& dy, std::int64_t part, std::int64_t parts);
/// The last token, and the gradient of x [b, s, c] from its gradient.
Numbers edge(const Numbers& x);
Numbers edge_grad(const Numbers& dy, const Shape& shape);

/// x + w (y - x), `count` times: w [count, c], or [b, s, count, c].
std::vector<Numbers> mixes(const Numbers& x, const Numbers& y, const Numbers& weights, std::int64_t count);
/// Gradients of x, y and the weights.
std::vector<Numbers> mixes_grad(const std::vector<const Numbers*>& dy, const Numbers& x, const Numbers& y,
                                const Numbers& weights);

/// silu of a sum over the last `width` tokens of x [b, s, c], per channel: weights [c, width], optionally a bias.
/// `before` holds the earlier tokens of x that a sum reaches back to, in the same layout.
Numbers convolve(const Numbers& x, const Numbers& weights, const Numbers* bias, Numbers* before = nullptr);
std::vector<Numbers> convolve_grad(const Numbers& dy, const Numbers& x, const Numbers& weights, const Numbers* bias);

}  // namespace assay::engine

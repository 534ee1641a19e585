// Kernels that look back a few tokens of a sequence on one device: short convolutions, shifts by one token, mixtures
// with shifted tokens, and their gradients.
#pragma once
#include <cstdint>
#include <vector>

#include "assay/engine/kernels/layer.h"

namespace assay::engine {

/// The token before each token of x [b, s, c]. Before the first comes the last token of part `part` - 1 in `edges`
/// [b, parts, c], or the one stored in `last`, or nothing.
Array shifted(const Array& x, const Array* edges, std::int64_t part, Array* last = nullptr);
/// Gradients of x, and of the edges if there are `parts` of them.
std::vector<Array> shifted_grad(const Array& dy, std::int64_t part, std::int64_t parts);
/// The last token, and the gradient of x [b, s, c] from its gradient.
Array edge(const Array& x);
Array edge_grad(const Array& dy, const Shape& shape);

/// x + w (y - x), `count` times: w [count, c], or [b, s, count, c].
std::vector<Array> mixes(const Array& x, const Array& y, const Array& weights, std::int64_t count);
/// Gradients of x, y and the weights.
std::vector<Array> mixes_grad(const std::vector<const Array*>& dy, const Array& x, const Array& y,
                              const Array& weights);

/// silu of a sum over the last `width` tokens of x [b, s, c], per channel: weights [c, width], optionally a bias.
/// `before` holds the earlier tokens of x that a sum reaches back to, in the same layout.
Array convolve(const Array& x, const Array& weights, const Array* bias, Array* before = nullptr);
std::vector<Array> convolve_grad(const Array& dy, const Array& x, const Array& weights, const Array* bias);

}  // namespace assay::engine

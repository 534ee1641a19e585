// What one device computes in the steps of a transformer other than products and attention, and their gradients.
// Arrays are local; where a value depends on the place in the whole tensor, the place is an argument.
#pragma once
#include <array>
#include <cstdint>
#include <utility>
#include <vector>

#include "assay/execute/array.h"
#include "assay/execute/layout.h"

namespace assay::execute {

using Numbers = Array<double>;

/// Rows of a table for tokens [b, s]; `rows` is the part of the vocabulary that the table holds, others give zeros.
Numbers embed(const Numbers& tokens, const Numbers& table, const Extent& rows);
Numbers embed_grad(const Numbers& d_rows, const Numbers& tokens, const Extent& rows);

/// RMS norm, or layer norm where the mean is subtracted. Rows are the innermost `local` values of x, which are a part
/// of `whole` values if devices share a row.
struct NormShape {
  std::int64_t local = 1, whole = 1;
  bool mean = false;
  std::int64_t rows_per_scale = 1;  ///< so many rows after one another have scales of their own
};
/// Sums of squares and of values of each row: [..., 2].
Numbers norm_sums(const Numbers& x, const NormShape& shape);
/// No scale or no bias: nullptr.
Numbers norm(const Numbers& x, const Numbers* scale, const Numbers* bias, const Numbers& sums, const NormShape& shape);
/// The two dot products of each row that its gradient needs: [..., 2].
Numbers norm_grad_sums(const Numbers& dy, const Numbers& x, const Numbers* scale, const Numbers& sums,
                       const NormShape& shape);
/// Gradients of x, of the scale and of a bias.
std::array<Numbers, 3> norm_grad(const Numbers& dy, const Numbers& x, const Numbers* scale, const Numbers& sums,
                                 const Numbers& grad_sums, const NormShape& shape);

/// Rotary positions of [b, s, ..., h]: turns the last `rotated` values of each row by angles that grow with the
/// position, the first of which is `start`. Backwards for a gradient.
Numbers rotate(const Numbers& x, std::int64_t start, std::int64_t rotated, bool backwards);

/// up x silu(gate), or gelu(up) without a gate (nullptr).
Numbers activate(const Numbers& up, const Numbers* gate);
std::pair<Numbers, Numbers> activate_grad(const Numbers& dy, const Numbers& up, const Numbers* gate);

/// x times the sigmoid of one number per row.
Numbers gated(const Numbers& x, const Numbers& gate);
std::pair<Numbers, Numbers> gated_grad(const Numbers& dy, const Numbers& x, const Numbers& gate);

/// Adds to tokens [b, s, d] the rows of a table from the position of the first token on.
Numbers placed(const Numbers& x, const Numbers& table, std::int64_t start);
Numbers placed_grad(const Numbers& dy, std::int64_t rows, std::int64_t start);

/// For every element of an array of that shape, the element of a smaller array that has only some of its dimensions:
/// `strides` are the smaller array's along the larger one's dimensions, 0 where it lacks them.
void add_spread(Numbers& x, const Numbers& bias, const Shape& strides);
Numbers summed_up(const Numbers& x, std::int64_t elements, const Shape& strides);

/// Cuts rows in two, joins two, or makes keys and values: (both [b, s, n, p + v], place [b, s, r]) gives
/// k [b, s, n, p + r] and v [b, s, n, v]. `widths` are those of the results.
std::vector<Numbers> split(const std::vector<const Numbers*>& in, const std::vector<std::int64_t>& widths);
/// From the gradients of the results to those of the inputs, of which `widths` speaks.
std::vector<Numbers> split_grad(const std::vector<const Numbers*>& in, const std::vector<std::int64_t>& widths);

/// Sum of exponentials and the target's logit of each token: [b, s, 2], partial if the vocabulary is.
Numbers loss_sums(const Numbers& logits, const Numbers& targets, const Extent& vocabulary);
/// Cross entropy of each token.
Numbers loss(const Numbers& sums);
Numbers loss_grad(const Numbers& logits, const Numbers& targets, const Numbers& sums, const Extent& vocabulary,
                  double tokens);

/// The largest logit of each row and its number in the vocabulary: [b, s, 2].
Numbers best_of_part(const Numbers& logits, const Extent& vocabulary);
/// The number of the best of all parts [b, s, 2 n].
Numbers best_of_all(const Numbers& parts);

}  // namespace assay::execute

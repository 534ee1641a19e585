// Per-device kernels of a transformer's steps other than products and attention, and their gradients.
// Arrays are local; if a value depends on its position in the whole tensor, the position is an argument.
#pragma once
#include <array>
#include <cstdint>
#include <utility>
#include <vector>

#include "assay/engine/array.h"
#include "assay/engine/layout.h"

namespace assay::engine {

using Numbers = Array<double>;

inline constexpr double norm_epsilon = 1e-5;  ///< as in the llama family
inline constexpr double rotary_base = 1e4;

/// Rows of a table for tokens, as [tokens, width]; the table holds the part `rows` of the vocabulary, other tokens give
/// zeros.
Numbers embed(const Numbers& tokens, const Numbers& table, const Extent& rows);
Numbers embed_grad(const Numbers& d_rows, const Numbers& tokens, const Extent& rows);

/// RMS norm, or layer norm if the mean is subtracted. Rows are the innermost `local` values of x, which are part
/// of `whole` values if devices share a row.
struct NormShape {
  std::int64_t local = 1, whole = 1;
  bool mean = false;
  std::int64_t rows_per_scale = 1;  ///< number of consecutive rows that each have their own scales
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
/// position, which starts at `start`. Backwards for a gradient.
Numbers rotate(const Numbers& x, std::int64_t start, std::int64_t rotated, bool backwards);

/// up x silu(gate), or gelu(up) without a gate (nullptr).
Numbers activate(const Numbers& up, const Numbers* gate);
std::pair<Numbers, Numbers> activate_grad(const Numbers& dy, const Numbers& up, const Numbers* gate);

/// x times the sigmoid of one number per row.
Numbers gated(const Numbers& x, const Numbers& gate);
std::pair<Numbers, Numbers> gated_grad(const Numbers& dy, const Numbers& x, const Numbers& gate);

/// Adds the rows of a table to tokens [b, s, d], starting at the position of the first token.
Numbers placed(const Numbers& x, const Numbers& table, std::int64_t start);
Numbers placed_grad(const Numbers& dy, std::int64_t rows, std::int64_t start);

/// For every element of an array of that shape, the element of a smaller array that has only some of its dimensions:
/// `strides` are the smaller array's along the larger one's dimensions, 0 where it lacks them.
void add_spread(Numbers& x, const Numbers& bias, const Shape& strides);
Numbers summed_up(const Numbers& x, std::int64_t elements, const Shape& strides);

/// Cuts rows in two, joins two, or makes keys and values: (both [b, s, n, p + v], place [b, s, r]) gives
/// k [b, s, n, p + r] and v [b, s, n, v]. `widths` are the widths of the results.
std::vector<Numbers> split(const std::vector<const Numbers*>& in, const std::vector<std::int64_t>& widths);
/// Gradients of the inputs, whose widths are `widths`, from the gradients of the results.
std::vector<Numbers> split_grad(const std::vector<const Numbers*>& in, const std::vector<std::int64_t>& widths);

/// Sum of exponentials and the target's logit of each token: [b, s, 2], partial if the vocabulary is split.
Numbers loss_sums(const Numbers& logits, const Numbers& targets, const Extent& vocabulary);
/// Cross entropy of each token.
Numbers loss(const Numbers& sums);
Numbers loss_grad(const Numbers& logits, const Numbers& targets, const Numbers& sums, const Extent& vocabulary,
                  double tokens);

/// The largest logit of each row and its index in the vocabulary: [b, s, 2].
Numbers best_of_part(const Numbers& logits, const Extent& vocabulary);
/// The index of the best of all parts [b, s, 2 n].
Numbers best_of_all(const Numbers& parts);

}  // namespace assay::engine

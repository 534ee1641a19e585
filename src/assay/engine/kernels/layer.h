// Per-device kernels of a transformer's steps other than products and attention, and their gradients.
// Arrays are local; if a value depends on its position in the whole tensor, the position is an argument.
#pragma once
#include <array>
#include <cstdint>
#include <utility>
#include <vector>

#include "assay/engine/array.h"
#include "assay/engine/layout.h"
#include "assay/model/definition.h"

namespace assay::engine {

inline constexpr double norm_epsilon = 1e-5;  ///< unless a definition says otherwise
inline constexpr double rotary_base = 1e4;

/// Rows of a table for tokens, as [tokens, width]; the table holds the part `rows` of the vocabulary, other tokens give
/// zeros.
Array embed(const Array& tokens, const Array& table, const Extent& rows);
Array embed_grad(const Array& d_rows, const Array& tokens, const Extent& rows);

/// RMS norm, or layer norm if the mean is subtracted. Rows are the innermost `local` values of x, which are part
/// of `whole` values if devices share a row.
struct NormShape {
  std::int64_t local = 1, whole = 1;
  bool mean = false;
  std::int64_t rows_per_scale = 1;  ///< number of consecutive rows that each have their own scales
  double epsilon = norm_epsilon;
};
/// Sums of squares and of values of each row: [..., 2].
Array norm_sums(const Array& x, const NormShape& shape);
/// No scale or no bias: nullptr.
Array norm(const Array& x, const Array* scale, const Array* bias, const Array& sums, const NormShape& shape);
/// The two dot products of each row that its gradient needs: [..., 2].
Array norm_grad_sums(const Array& dy, const Array& x, const Array* scale, const Array& sums, const NormShape& shape);
/// Gradients of x, of the scale and of a bias.
std::array<Array, 3> norm_grad(const Array& dy, const Array& x, const Array* scale, const Array& sums,
                               const Array& grad_sums, const NormShape& shape);

/// Rotary positions of [b, s, ..., h]: turns the last `rotated` values of each row by angles that grow with the
/// position, which starts at `start`. Backwards for a gradient.
Array rotate(const Array& x, std::int64_t start, std::int64_t rotated, bool backwards,
             const model::Rotary& rotary = {});

/// up x f(gate), or f(up) without a gate (nullptr).
Array activate(const Array& up, const Array* gate, model::Nonlinearity function = model::Nonlinearity::usual);
std::pair<Array, Array> activate_grad(const Array& dy, const Array& up, const Array* gate);

/// x times the sigmoid of one number per row.
Array gated(const Array& x, const Array& gate);
std::pair<Array, Array> gated_grad(const Array& dy, const Array& x, const Array& gate);

/// Adds the rows of a table to tokens [b, s, d], starting at the position of the first token.
Array placed(const Array& x, const Array& table, std::int64_t start);
Array placed_grad(const Array& dy, std::int64_t rows, std::int64_t start);

/// Cuts rows in two, joins two, or makes keys and values: (both [b, s, n, p + v], place [b, s, r]) gives
/// k [b, s, n, p + r] and v [b, s, n, v]. `widths` are the widths of the results.
std::vector<Array> split(const std::vector<const Array*>& in, const std::vector<std::int64_t>& widths);
/// Gradients of the inputs, whose widths are `widths`, from the gradients of the results.
std::vector<Array> split_grad(const std::vector<const Array*>& in, const std::vector<std::int64_t>& widths);

/// Sum of exponentials and the target's logit of each token: [b, s, 2], partial if the vocabulary is split.
Array loss_sums(const Array& logits, const Array& targets, const Extent& vocabulary);
/// Cross entropy of each token.
Array loss(const Array& sums);
Array loss_grad(const Array& logits, const Array& targets, const Array& sums, const Extent& vocabulary, double tokens);

/// The largest logit of each row and its index in the vocabulary: [b, s, 2].
Array best_of_part(const Array& logits, const Extent& vocabulary);
/// The index of the best of all parts [b, s, 2 n].
Array best_of_all(const Array& parts);

}  // namespace assay::engine

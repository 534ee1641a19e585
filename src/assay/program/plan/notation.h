// The notation: "A[I_X, J_YZ] {U_W}", "A[I_X, J] * B[J, K_Y] -> C[I_X, K_Y]".
// A subscript lists mesh axes, major first; {U_X} marks partial sums over X. Dimension names are letters and digits,
// or plain numbers; errors point at the character.
#pragma once
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "assay/base/result.h"
#include "assay/program/form/sharding.h"

namespace assay::plan {

/// A parsed expression: one tensor, a resharding (one tensor and its target), or a product, with its result or without.
struct ShardingExpression {
  program::Tensor left;
  std::optional<program::Tensor> right;
  std::optional<program::Tensor> result;
};

/// Sizes of dimensions by name.
using DimensionSizes = std::map<std::string, std::int64_t, std::less<>>;

/// "I=4096,J=8192"
Result<DimensionSizes> parse_dimension_sizes(std::string_view text, std::string_view where);

/// Parses and checks an expression; a dimension that is neither a number nor in `sizes` has the size `otherwise`, or is
/// an error.
Result<ShardingExpression> parse_sharding(std::string_view text, const program::Mesh& mesh, const DimensionSizes& sizes,
                                          Dtype dtype, std::optional<std::int64_t> otherwise = std::nullopt);

/// The expression in the notation, normalised.
std::string expression_text(const program::Mesh& mesh, const ShardingExpression& expression);

}  // namespace assay::plan

// The dimensions of an operation, and which mesh axes may split them.
#pragma once
#include <array>
#include <vector>

#include "assay/program/language/graph.h"

namespace assay::language {

inline constexpr std::size_t most_operands = 3;

/// One dimension of an operation: its position in each operand and in the result, -1 where they lack it.
struct Row {
  std::int64_t size = 1;
  std::array<int, most_operands> operand{-1, -1, -1};
  int result = -1;
  bool splits = true;  ///< devices may hold parts; else each needs the whole dimension
};
std::vector<Row> rows_of(const Graph& graph, const Value& value);

/// Whether the operation of partial sums gives partial sums, if operand k is the one that is partial.
bool is_linear_in(const Value& value, std::size_t operand);

/// The axes that split what a maximum or a softmax runs over: it ends maxima and sums over them by itself.
program::AxisSet axes_within(const Value& value, const Dims& operand, const program::Sharding& sharding);

/// How mesh axes split the rows of an operation. Each axis is on one row, or marks partial sums of one operand (of all
/// operands of a sum), or none.
struct Split {
  std::vector<program::AxisList> rows;
  std::array<program::AxisSet, most_operands> partial{};
};
program::Sharding operand_sharding(const std::vector<Row>& rows, const Split& split, std::size_t operand);
/// Partial sums over the axes of rows that the result lacks.
program::Sharding result_sharding(const std::vector<Row>& rows, const Split& split);

/// FLOP of a product on one device.
Flops local_flops(const Graph& graph, const std::vector<Row>& rows, const Split& split);

}  // namespace assay::language

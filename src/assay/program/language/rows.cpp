#include "assay/program/language/rows.h"

#include <algorithm>

namespace assay::language {

namespace {

/// Dimensions that are merged or split: the outermost of both sides are one index, as far as it goes.
std::vector<Row> rows_of_view(const Dims& from, const Dims& to) {
  std::vector<Row> rows;
  std::size_t next = 0;
  for (std::size_t d = 0; d < from.size();) {
    std::size_t last = d, end = next;
    std::int64_t old = from[d].size, made = end < to.size() ? to[end].size : 1;
    for (++last, ++end; old != made;) {
      if (old < made && last < from.size())
        old *= from[last++].size;
      else if (end < to.size())
        made *= to[end++].size;
      else
        break;
    }
    for (std::size_t i = d; i < last; ++i) {
      Row& row = rows.emplace_back();
      row.operand[0] = static_cast<int>(i);
      row.size = from[i].size;
      row.splits = i == d && next < to.size();
      if (!row.splits) continue;
      row.result = static_cast<int>(next);
      row.size = std::min(from[i].size, to[next].size);
    }
    d = last;
    next = end;
  }
  return rows;
}

}  // namespace

std::vector<Row> rows_of(const Graph& graph, const Value& value) {
  std::vector<Row> rows;
  if (value.op == program::Op::view && !value.ends && value.given == Value::Given::no &&
      graph.value(value.in[0]).dims.size() != value.dims.size())
    return rows_of_view(graph.value(value.in[0]).dims, value.dims);
  std::vector<int> ids;
  const bool by_position = value.op == program::Op::view && !value.ends;
  for (std::size_t k = 0; k < value.in.size(); ++k) {
    const Dims& dims = graph.value(value.in[k]).dims;
    for (std::size_t d = 0; d < dims.size(); ++d) {
      auto found = by_position ? ids.end() : std::find(ids.begin(), ids.end(), dims[d].id);
      if (found == ids.end()) {
        ids.push_back(dims[d].id);
        Row& row = rows.emplace_back();
        row.size = dims[d].size;
        row.result = by_position ? static_cast<int>(d) : find_dim(value.dims, dims[d].id);
        found = ids.end() - 1;
      }
      rows[static_cast<std::size_t>(found - ids.begin())].operand[k] = static_cast<int>(d);
    }
  }
  if (value.ends) return rows;
  using program::Op;
  for (Row& row : rows) {
    const bool is_own = row.operand[0] >= 0 && row.operand[0] == value.detail;
    if ((value.op == Op::chunk || value.op == Op::put) && is_own) row.splits = false;
  }
  return rows;
}

bool is_linear_in(const Value& value, std::size_t operand) {
  using program::Function;
  using program::Op;
  if (value.ends) return false;
  if (value.op == Op::add || value.op == Op::sum || value.op == Op::view) return true;
  if (value.op == Op::chunk || value.op == Op::put) return operand == 0;
  if (value.op != Op::map) return false;
  const auto function = static_cast<Function>(value.detail);
  if (function == Function::multiply) return true;
  return operand == 0 && (function == Function::copy || function == Function::negate || function == Function::divide);
}

program::AxisSet axes_within(const Value& value, const Dims& operand, const program::Sharding& sharding) {
  program::AxisSet axes = 0;
  if (value.ends || (value.op != program::Op::largest && value.op != program::Op::softmax)) return axes;
  for (std::size_t d = 0; d < operand.size(); ++d)
    if (value.op == program::Op::softmax ? static_cast<int>(d) == value.detail
                                         : find_dim(value.dims, operand[d].id) < 0)
      axes |= sharding.dims[d].set();
  return axes;
}

program::Sharding operand_sharding(const std::vector<Row>& rows, const Split& split, std::size_t operand) {
  program::Sharding out;
  for (std::size_t r = 0; r < rows.size(); ++r)
    if (rows[r].operand[operand] >= 0) out.dims[static_cast<std::size_t>(rows[r].operand[operand])] = split.rows[r];
  out.unreduced = split.partial[operand];
  return out;
}

program::Sharding result_sharding(const std::vector<Row>& rows, const Split& split) {
  program::Sharding out;
  for (std::size_t r = 0; r < rows.size(); ++r) {
    if (rows[r].result >= 0)
      out.dims[static_cast<std::size_t>(rows[r].result)] = split.rows[r];
    else
      out.unreduced |= split.rows[r].set();
  }
  for (const program::AxisSet partial : split.partial) out.unreduced |= partial;
  return out;
}

Flops local_flops(const Graph& graph, const std::vector<Row>& rows, const Split& split) {
  Flops flops = 2_FLOP;
  for (std::size_t r = 0; r < rows.size(); ++r)
    flops *= static_cast<double>(program::local_size(graph.mesh, rows[r].size, split.rows[r]));
  return flops;
}

}  // namespace assay::language

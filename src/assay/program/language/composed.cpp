// Functions that are written with others: other dimensions for the same elements, running sums, largest elements with
// their places, orders, and the largest over devices.
#include <fmt/format.h>

#include <algorithm>

#include "assay/base/assign.h"
#include "assay/base/index.h"
#include "assay/base/text.h"
#include "assay/program/language/typing.h"

namespace assay::language {
namespace {

using program::Function;
constexpr double below_all = -1e30;

}  // namespace

int Typing::beside(const Dim& dim) {
  const std::string name = dim_name(dim.id) + "'";
  const auto found = std::find(graph_.dim_names.begin(), graph_.dim_names.end(), name);
  if (found != graph_.dim_names.end()) return static_cast<int>(found - graph_.dim_names.begin());
  graph_.dim_names.push_back(name);
  sizes_.push_back(dim.size);
  return static_cast<int>(graph_.dim_names.size()) - 1;
}

Result<int> Typing::numbered(std::size_t at, const Dim& dim) {
  Value value;
  value.at = at;
  value.name = fmt::format("iota{}", dim_name(dim.id));
  value.given = Value::Given::iota;
  value.fill.kind = Fill::Kind::iota;
  value.has_whole_numbers = true;
  value.dims = {dim};
  value.pinned.emplace();
  return add(std::move(value));
}

Result<int> Typing::over(const Expression& call, program::Op op, int x, int dim) {
  Value value = made_by(call, op, {x});
  std::erase_if(value.dims, [&](const Dim& each) { return each.id == dim; });
  return add(std::move(value));
}

Result<int> Typing::viewed(const Expression& call, int x, Dims dims) {
  Value value = made_by(call, program::Op::view, {x});
  value.dims = std::move(dims);
  return add(std::move(value));
}

/// Names of dimensions on one side of an arrow, which stands in the last or the first of the operands after x.
Result<int> Typing::reshape_call(const Expression& call, const Wanted&) {
  const bool merges = call.text == "merge";
  ASSAY_TRY(x, value_of(call.operands[0], {}));
  const Expression& arrow = merges ? call.operands.back() : call.operands[1];
  if (arrow.kind != Expression::Kind::arrow)
    return source_.error(arrow.at, "expected an arrow", "write merge(x, A, B -> C) or split(x, C -> A, B)");
  std::vector<const Expression*> many;
  for (std::size_t i = 1; i < call.operands.size(); ++i)
    if (&call.operands[i] != &arrow) many.push_back(&call.operands[i]);
  many.insert(merges ? many.end() : many.begin(), &arrow.operands[merges ? 0 : 1]);
  const Expression& one = arrow.operands[merges ? 1 : 0];
  const auto id_of = [&](const Expression& name) -> Result<int> {
    if (name.kind != Expression::Kind::name)
      return source_.error(name.at, "expected the name of a dimension", "write merge(x, A, B -> C)");
    return dim_named({name.text, name.at});
  };
  Dims dims = graph_.value(x).dims, parts;
  ASSAY_TRY(whole, id_of(one));
  for (const Expression* name : many) {
    ASSAY_TRY(id, id_of(*name));
    parts.push_back({id, sizes_[at(id)]});
  }
  ASSAY_TRY(place, operand_dim(merges ? *many[0] : one, x));
  const auto from = dims.begin() + place;
  if (merges) {
    std::int64_t size = 1;
    for (std::size_t i = 0; i < parts.size(); ++i) {
      if (at(place) + i >= dims.size() || dims[at(place) + i].id != parts[i].id)
        return source_.error(
            many[i]->at, fmt::format("the dimensions do not lie one after the other: the operand is {}", shape_text(x)),
            "give the dimensions an order on a line of their own: y[A, B, C] = x");
      size *= dims[at(place) + i].size;
    }
    *from = {whole, size};
    dims.erase(from + 1, from + std::ssize(parts));
  } else {
    std::int64_t rest = 1;
    for (std::size_t i = 1; i < parts.size(); ++i) rest *= parts[i].size;
    if (from->size % rest != 0)
      return source_.error(one.at, fmt::format("{} = {} does not divide by {}", one.text, from->size, rest), "");
    parts[0].size = from->size / rest;
    const auto next = dims.erase(from);
    dims.insert(next, parts.begin(), parts.end());
  }
  for (std::size_t i = 0; i < dims.size(); ++i) {
    if (!is_manual() && dims[i].size != sizes_[at(dims[i].id)] && (dims[i].id == whole || dims[i].id == parts[0].id))
      return source_.error(call.at,
                           fmt::format("{} is {}, but would have {} elements", dim_name(dims[i].id),
                                       sizes_[at(dims[i].id)], dims[i].size),
                           "sizes of merged dimensions multiply");
    for (std::size_t k = 0; k < i; ++k)
      if (dims[k].id == dims[i].id)
        return source_.error(call.at, fmt::format("dimension {} would appear twice", dim_name(dims[i].id)),
                             "use another name");
  }
  return viewed(call, x, std::move(dims));
}

Result<int> Typing::cumsum_call(const Expression& call, const Wanted& wanted) {
  ASSAY_TRY(x, value_of(call.operands[0], wanted));
  ASSAY_TRY(place, operand_dim(call.operands[1], x));
  const Dims dims = graph_.value(x).dims;
  Dims before = dims;
  before[at(place)].id = beside(dims[at(place)]);
  std::vector<int> kept;
  for (const Dim& dim : dims) kept.push_back(dim.id);
  ASSAY_TRY(terms, viewed(call, x, before));
  ASSAY_TRY(here, numbered(call.at, dims[at(place)]));
  ASSAY_TRY(there, numbered(call.at, before[at(place)]));
  ASSAY_TRY(mask, mapped(call.at, Function::at_most, {there, here}, {}));
  return product_of(call.at, terms, mask, kept);
}

Result<int> Typing::place_of_largest(const Expression& call, int x, const Dim& dim) {
  ASSAY_TRY(most, over(call, program::Op::largest, x, dim.id));
  ASSAY_TRY(is_most, mapped(call.at, Function::equal, {x, most}, {}));
  ASSAY_TRY(numbers, numbered(call.at, dim));
  ASSAY_TRY(backwards, mapped(call.at, Function::negate, {numbers}, {}));
  ASSAY_TRY(candidates, mapped(call.at, Function::select, {is_most, backwards, number(below_all, call.at)}, {}));
  ASSAY_TRY(first, over(call, program::Op::largest, candidates, dim.id));
  ASSAY_TRY(out, mapped(call.at, Function::negate, {first}, {}));
  graph_.values[at(out)].has_whole_numbers = true;
  return out;
}

Result<int> Typing::argmax_call(const Expression& call, const Wanted&) {
  ASSAY_TRY(x, value_of(call.operands[0], {}));
  ASSAY_TRY(place, operand_dim(call.operands[1], x));
  return place_of_largest(call, x, Dim(graph_.value(x).dims[at(place)]));
}

Result<int> Typing::top_call(const Expression& call, const Wanted&) {
  ASSAY_TRY(x, value_of(call.operands[0], {}));
  const Expression& arrow = call.operands[1];
  constexpr std::int64_t most = 32;
  if (arrow.kind != Expression::Kind::arrow || arrow.operands[1].kind != Expression::Kind::name)
    return source_.error(arrow.at, "expected D -> K", "write top_k(x, D -> K): the K largest along D");
  ASSAY_TRY(place, operand_dim(arrow.operands[0], x));
  ASSAY_TRY(to, dim_named({arrow.operands[1].text, arrow.operands[1].at}));
  const Dim along = graph_.value(x).dims[at(place)], rows{to, sizes_[at(to)]};
  if (rows.size > std::min(most, along.size) || find_dim(graph_.value(x).dims, to) >= 0)
    return source_.error(arrow.at,
                         fmt::format("{} = {} must be another dimension of at most {}", dim_name(to), rows.size,
                                     std::min(most, along.size)),
                         "declare one: dims K=2");
  ASSAY_TRY(numbers, numbered(call.at, along));
  ASSAY_TRY(places, numbered(call.at, rows));
  int left = x, sum = -1;
  for (std::int64_t k = 0; k < rows.size; ++k) {
    ASSAY_TRY(first, place_of_largest(call, left, along));
    int made = first;
    if (call.text == "top_k") ASSAY_SET(made, over(call, program::Op::largest, left, along.id));
    ASSAY_TRY(row, mapped(call.at, Function::equal, {places, number(static_cast<double>(k), call.at)}, {}));
    ASSAY_TRY(spread, mapped(call.at, Function::multiply, {made, row}, {}));
    if (sum < 0)
      sum = spread;
    else
      ASSAY_SET(sum, mapped(call.at, Function::add, {sum, spread}, {}));
    ASSAY_TRY(taken, mapped(call.at, Function::equal, {numbers, first}, {}));
    ASSAY_SET(left, mapped(call.at, Function::select, {taken, number(below_all, call.at), left}, {}));
  }
  return sum;
}

Result<int> Typing::sort_call(const Expression& call, const Wanted&) {
  ASSAY_TRY(x, value_of(call.operands[0], {}));
  ASSAY_TRY(place, operand_dim(call.operands[1], x));
  const Dims dims = graph_.value(x).dims;
  Dims others = dims;
  const Dim along = dims[at(place)];
  Dim& other = others[at(place)];
  other.id = beside(along);
  ASSAY_TRY(y, viewed(call, x, others));
  ASSAY_TRY(here, numbered(call.at, along));
  ASSAY_TRY(there, numbered(call.at, other));
  // How many come before: smaller ones, and equal ones that stand before.
  ASSAY_TRY(smaller, mapped(call.at, Function::less, {y, x}, {}));
  ASSAY_TRY(equal, mapped(call.at, Function::equal, {y, x}, {}));
  ASSAY_TRY(earlier, mapped(call.at, Function::less, {there, here}, {}));
  ASSAY_TRY(ties, mapped(call.at, Function::multiply, {equal, earlier}, {}));
  ASSAY_TRY(all, mapped(call.at, Function::add, {smaller, ties}, {}));
  ASSAY_TRY(rank, over(call, program::Op::sum, all, other.id));
  ASSAY_TRY(chosen, mapped(call.at, Function::equal, {rank, there}, {}));
  ASSAY_TRY(parts, mapped(call.at, Function::multiply, {x, chosen}, {}));
  ASSAY_TRY(sorted, over(call, program::Op::sum, parts, along.id));
  Dims named = graph_.value(sorted).dims;
  for (Dim& dim : named)
    if (dim.id == other.id) dim.id = along.id;
  ASSAY_TRY(out, viewed(call, sorted, std::move(named)));
  graph_.values[at(out)].has_whole_numbers = graph_.value(x).has_whole_numbers;
  return out;
}

Result<int> Typing::pmax_call(const Expression& call, const Wanted& wanted) {
  const bool least = call.text == "pmin";
  ASSAY_TRY(x, value_of(call.operands[0], wanted));
  ASSAY_TRY(axes, operand_axes(call.operands[1]));
  if (least) ASSAY_SET(x, mapped(call.at, Function::negate, {x}, {}));
  const auto ways = static_cast<std::int64_t>(program::shard_count(graph_.mesh, axes.set()));
  Dims dims = graph_.value(x).dims;
  graph_.dim_names.push_back(fmt::format("devices{}", graph_.dim_names.size()));
  sizes_.push_back(ways);
  const int devices = static_cast<int>(graph_.dim_names.size()) - 1;
  dims.insert(dims.begin(), Dim{devices, 1});
  ASSAY_TRY(row, viewed(call, x, dims));
  dims[0].size = ways;
  ASSAY_TRY(all, called(call, row, {program::Collective::all_gather, axes, -1, 0}, dims));
  ASSAY_TRY(out, over(call, program::Op::largest, all, devices));
  if (!least) return out;
  return mapped(call.at, Function::negate, {out}, {});
}

}  // namespace assay::language

// Functions of programs.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "assay/base/assign.h"
#include "assay/base/text.h"
#include "assay/program/language/typing.h"

namespace assay::language {

/// Functions beyond those of elements: how many operands they take, and how they are written.
struct Typing::Functions {
  struct Row {
    std::string_view name;
    Handler handler;
    bool is_manual;
    std::size_t least, most;
    std::string_view form;
  };
  static constexpr std::size_t most_dims = program::max_tensor_rank;
  static constexpr Row rows[] = {
      {"sum", &Typing::reduce_call, false, 2, most_dims, "sum(x, D)"},
      {"max", &Typing::reduce_call, false, 2, most_dims, "max(x, D)"},
      {"mean", &Typing::mean_call, false, 2, most_dims, "mean(x, D)"},
      {"softmax", &Typing::softmax_call, false, 2, 2, "softmax(x, T)"},
      {"gather", &Typing::gather_call, false, 2, 2, "gather(table, tokens)"},
      {"rename", &Typing::rename_call, false, 2, 6, "rename(x, S -> T)"},
      {"iota", &Typing::iota_call, false, 1, 1, "iota(D)"},
      {"chunk", &Typing::part_call, false, 4, 4, "chunk(x, D, i, 4)"},  // part i of 4
      {"put", &Typing::part_call, false, 4, 4, "put(x, D, i, 4)"},      // zeros, with x as part i of 4
      {"merge", &Typing::reshape_call, false, 3, 6, "merge(x, A, B -> C)"},
      {"split", &Typing::reshape_call, false, 3, 6, "split(x, C -> A, B)"},
      {"cumsum", &Typing::cumsum_call, false, 2, 2, "cumsum(x, D)"},
      {"argmax", &Typing::argmax_call, false, 2, 2, "argmax(x, D)"},
      {"top_k", &Typing::top_call, false, 2, 2, "top_k(x, D -> K)"},
      {"top_k_index", &Typing::top_call, false, 2, 2, "top_k_index(x, D -> K)"},
      {"sort", &Typing::sort_call, false, 2, 2, "sort(x, D)"},
      {"axis_index", &Typing::axis_index_call, true, 1, 1, "axis_index(X)"},
      {"axis_size", &Typing::axis_size_call, true, 1, 1, "axis_size(X)"},
      {"psum", &Typing::psum_call, true, 2, 2, "psum(x, X)"},
      {"pmean", &Typing::pmean_call, true, 2, 2, "pmean(x, X)"},
      {"pmax", &Typing::pmax_call, true, 2, 2, "pmax(x, X)"},
      {"pmin", &Typing::pmax_call, true, 2, 2, "pmin(x, X)"},
      {"all_gather", &Typing::resized_call, true, 3, 3, "all_gather(x, X, D)"},
      {"psum_scatter", &Typing::resized_call, true, 3, 3, "psum_scatter(x, X, D)"},
      {"all_to_all", &Typing::resized_call, true, 4, 4, "all_to_all(x, X, D, E)"},                // splits D, joins E
      {"ragged_all_to_all", &Typing::ragged_call, true, 4, 4, "ragged_all_to_all(x, X, S, to)"},  // row i goes to to[i]
      {"ragged_return", &Typing::ragged_call, true, 4, 4, "ragged_return(x, X, S, to)"},          // such rows go back
      {"ppermute", &Typing::ppermute_call, true, 3, 64, "ppermute(x, X, 1) or ppermute(x, X, 0 -> 1)"},
  };
};

Result<int> Typing::call(const Expression& call, const Wanted& wanted) {
  for (const Functions::Row& row : Functions::rows) {
    if (row.name != call.text) continue;
    if (row.is_manual && !is_manual())
      return source_.error(call.at, fmt::format("{} is a function of manual programs", row.name),
                           "write mode manual; elsewhere collectives follow from shardings");
    ASSAY_CHECK(takes(call, row.least, row.most, row.form));
    return (this->*row.handler)(call, wanted);
  }
  for (const program::FunctionFacts& each : program::functions::table)
    if (each.name == call.text) return map_call(call, wanted, each.function);
  std::vector<std::string> known;
  for (std::size_t i = 0; i < functions_.size(); ++i) {
    if (functions_[i]->target.name.text == call.text) return call_own(call, i, wanted);
    known.push_back(functions_[i]->target.name.text);
  }
  for (const Functions::Row& row : Functions::rows) known.emplace_back(row.name);
  for (const program::FunctionFacts& each : program::functions::table) known.emplace_back(each.name);
  return source_.error(call.at, fmt::format("unknown function {}", in_quotes(call.text)), suggestion(call.text, known));
}

bool Typing::is_function(std::string_view name) const {
  const auto is_named = [&](const auto& one) { return one.name == name; };
  return std::any_of(std::begin(Functions::rows), std::end(Functions::rows), is_named) ||
         std::any_of(program::functions::table.begin(), program::functions::table.end(), is_named) ||
         std::any_of(functions_.begin(), functions_.end(),
                     [&](const Statement* one) { return one->target.name.text == name; });
}

Result<void> Typing::takes(const Expression& call, std::size_t least, std::size_t most, std::string_view form) const {
  if (call.operands.size() >= least && call.operands.size() <= most) return {};
  const std::string count = least == most ? fmt::format("{}", least) : fmt::format("{} or more", least);
  return source_.error(call.at,
                       fmt::format("{} takes {} operand{}, got {}", call.text, count,
                                   least == 1 && most == 1 ? "" : "s", call.operands.size()),
                       fmt::format("write {}", form));
}

/// What an operation makes of its operands, with the dimensions of the first one.
Value Typing::made_by(const Expression& call, program::Op op, std::vector<int> in) const {
  Value value;
  value.at = call.at;
  value.op = op;
  value.dims = graph_.value(in[0]).dims;
  value.has_whole_numbers = graph_.value(in[0]).has_whole_numbers;
  value.in = std::move(in);
  return value;
}

Result<int> Typing::map_call(const Expression& call, const Wanted& wanted, program::Function function) {
  const auto count = static_cast<std::size_t>(program::facts(function).operands);
  ASSAY_CHECK(takes(call, count, count,
                    fmt::format("{}({})", call.text,
                                count == 1   ? "x"
                                : count == 2 ? "x, y"
                                             : "x, y, z")));
  std::vector<int> in;
  for (const Expression& operand : call.operands) {
    ASSAY_TRY(id, value_of(operand, wanted));
    in.push_back(id);
  }
  return mapped(call.at, function, std::move(in), wanted);
}

Result<int> Typing::operand_dim(const Expression& name, int value) const {
  if (name.kind != Expression::Kind::name)
    return source_.error(name.at, "expected the name of a dimension", "e.g. sum(x, D)");
  ASSAY_TRY(id, dim_named({name.text, name.at}));
  const int place = find_dim(graph_.value(value).dims, id);
  if (place < 0)
    return source_.error(name.at,
                         fmt::format("the operand has no dimension {}: it is {}", name.text, shape_text(value)),
                         "name one of its dimensions");
  return place;
}

Result<program::AxisList> Typing::operand_axes(const Expression& name) const {
  if (name.kind != Expression::Kind::name)
    return source_.error(name.at, "expected an axis of the mesh",
                         fmt::format("the mesh is {}", program::mesh_text(graph_.mesh)));
  program::AxisSet used = 0;
  return axes_of({name.text, name.at}, used);
}

Result<std::int64_t> Typing::whole_operand(const Expression& operand, std::int64_t least, std::int64_t most) const {
  if (operand.kind != Expression::Kind::number || operand.number != std::floor(operand.number) ||
      operand.number < static_cast<double>(least) || operand.number > static_cast<double>(most))
    return source_.error(operand.at, fmt::format("expected a whole number from {} to {}", least, most), "");
  return static_cast<std::int64_t>(operand.number);
}

Result<int> Typing::reduce_call(const Expression& call, const Wanted& wanted) {
  Wanted inner = wanted;  // the operand has the reduced dimensions, too
  for (std::size_t i = 1; i < call.operands.size(); ++i) {
    if (call.operands[i].kind != Expression::Kind::name)
      return source_.error(call.operands[i].at, "expected the name of a dimension",
                           fmt::format("write {}(x, D)", call.text));
    ASSAY_TRY(id, dim_named({call.operands[i].text, call.operands[i].at}));
    if (inner && std::find(inner->begin(), inner->end(), id) == inner->end()) inner->push_back(id);
  }
  ASSAY_TRY(x, value_of(call.operands[0], inner));
  Value value = made_by(call, call.text == "max" ? program::Op::largest : program::Op::sum, {x});
  for (std::size_t i = 1; i < call.operands.size(); ++i) {
    ASSAY_TRY(place, operand_dim(call.operands[i], x));
    const int id = graph_.value(x).dims[static_cast<std::size_t>(place)].id;
    std::erase_if(value.dims, [&](const Dim& dim) { return dim.id == id; });
  }
  return add(std::move(value));
}

Result<int> Typing::mean_call(const Expression& call, const Wanted& wanted) {
  ASSAY_TRY(sum, reduce_call(call, wanted));
  const double count =
      element_count(graph_.value(graph_.value(sum).in[0]).dims) / element_count(graph_.value(sum).dims);
  graph_.values[static_cast<std::size_t>(sum)].has_whole_numbers = false;
  return mapped(call.at, program::Function::divide, {sum, number(count, call.at)}, {});
}

Result<int> Typing::softmax_call(const Expression& call, const Wanted& wanted) {
  ASSAY_TRY(x, value_of(call.operands[0], wanted));
  ASSAY_TRY(place, operand_dim(call.operands[1], x));
  Value value = made_by(call, program::Op::softmax, {x});
  value.detail = place;
  value.has_whole_numbers = false;
  return add(std::move(value));
}

Result<int> Typing::gather_call(const Expression& call, const Wanted&) {
  ASSAY_TRY(table, value_of(call.operands[0], {}));
  ASSAY_TRY(tokens, value_of(call.operands[1], {}));
  if (graph_.value(table).dims.empty())
    return source_.error(call.operands[0].at, "the table has no dimension to gather from",
                         "its first dimension has the rows");
  Value value = made_by(call, program::Op::embed, {tokens, table});
  value.detail = 0;
  value.has_whole_numbers = false;
  const Dims rows = graph_.value(table).dims;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    if (find_dim(value.dims, rows[i].id) >= 0)
      return source_.error(call.at, fmt::format("dimension {} is in the table and in the tokens", dim_name(rows[i].id)),
                           "rename one");
    if (i > 0) value.dims.push_back(rows[i]);
  }
  return add(std::move(value));
}

Result<int> Typing::rename_call(const Expression& call, const Wanted&) {
  ASSAY_TRY(x, value_of(call.operands[0], {}));
  Value value = made_by(call, program::Op::view, {x});
  for (std::size_t i = 1; i < call.operands.size(); ++i) {
    const Expression& pair = call.operands[i];
    if (pair.kind != Expression::Kind::arrow || pair.operands[1].kind != Expression::Kind::name)
      return source_.error(pair.at, "expected OLD -> NEW", "write rename(x, S -> T)");
    ASSAY_TRY(place, operand_dim(pair.operands[0], x));
    ASSAY_TRY(to, dim_named({pair.operands[1].text, pair.operands[1].at}));
    Dim& dim = value.dims[static_cast<std::size_t>(place)];
    const auto old = sizes_[static_cast<std::size_t>(dim.id)], fresh = sizes_[static_cast<std::size_t>(to)];
    if (old != fresh && !is_manual())  // of a device, sizes are its own
      return source_.error(pair.at, fmt::format("{} is {}, but {} is {}", dim_name(dim.id), old, dim_name(to), fresh),
                           "a renamed dimension keeps its size");
    if (find_dim(value.dims, to) >= 0 && dim.id != to)
      return source_.error(pair.operands[1].at, fmt::format("the tensor already has a dimension {}", dim_name(to)),
                           "use another name");
    dim.id = to;
  }
  return add(std::move(value));
}

Result<int> Typing::iota_call(const Expression& call, const Wanted&) {
  if (call.operands[0].kind != Expression::Kind::name)
    return source_.error(call.operands[0].at, "expected the name of a dimension", "write iota(D)");
  ASSAY_TRY(id, dim_named({call.operands[0].text, call.operands[0].at}));
  Value value;
  value.at = call.at;
  value.name = fmt::format("iota{}", dim_name(id));
  value.given = Value::Given::iota;
  value.fill.kind = Fill::Kind::iota;
  value.has_whole_numbers = true;
  value.dims = {{id, sizes_[static_cast<std::size_t>(id)]}};
  value.pinned.emplace();
  return add(std::move(value));
}

Result<int> Typing::part_call(const Expression& call, const Wanted&) {
  ASSAY_TRY(x, value_of(call.operands[0], {}));
  ASSAY_TRY(place, operand_dim(call.operands[1], x));
  ASSAY_TRY(index, value_of(call.operands[2], {}));
  ASSAY_TRY(parts, whole_operand(call.operands[3], 1, 4096));
  if (!graph_.value(index).dims.empty())
    return source_.error(call.operands[2].at,
                         fmt::format("the number of the part is one number, not {}", shape_text(index)),
                         "e.g. the counter of a loop, or axis_index(X)");
  if (!graph_.value(index).has_whole_numbers)
    return source_.error(call.operands[2].at, "the number of the part is no whole number", "use floor(...)");
  const bool takes_part = call.text == "chunk";
  Value value = made_by(call, takes_part ? program::Op::chunk : program::Op::put, {x, index});
  value.detail = place;
  Dim& dim = value.dims[static_cast<std::size_t>(place)];
  if (takes_part && dim.size % parts != 0)
    return source_.error(call.operands[3].at,
                         fmt::format("{} = {} does not divide by {}", dim_name(dim.id), dim.size, parts),
                         "parts are equal");
  dim.size = takes_part ? dim.size / parts : dim.size * parts;
  return add(std::move(value));
}

Result<int> Typing::axis_index_call(const Expression& call, const Wanted&) {
  ASSAY_TRY(axes, operand_axes(call.operands[0]));
  Value value;
  value.at = call.at;
  value.name = "index" + call.operands[0].text;
  value.given = Value::Given::axis_index;
  value.axes = axes;
  value.has_whole_numbers = true;
  return add(std::move(value));
}

Result<int> Typing::axis_size_call(const Expression& call, const Wanted&) {
  ASSAY_TRY(axes, operand_axes(call.operands[0]));
  return number(program::shard_count(graph_.mesh, axes.set()), call.at);
}

Result<int> Typing::called(const Expression& call, int operand, Call how, Dims dims) {
  Value value = made_by(call, program::Op::map, {operand});
  value.call = how;
  value.dims = std::move(dims);
  return add(std::move(value));
}

Result<int> Typing::psum_call(const Expression& call, const Wanted& wanted) {
  ASSAY_TRY(x, value_of(call.operands[0], wanted));
  ASSAY_TRY(axes, operand_axes(call.operands[1]));
  return called(call, x, {program::Collective::all_reduce, axes}, graph_.value(x).dims);
}

Result<int> Typing::pmean_call(const Expression& call, const Wanted& wanted) {
  ASSAY_TRY(sum, psum_call(call, wanted));
  ASSAY_TRY(axes, operand_axes(call.operands[1]));
  graph_.values[static_cast<std::size_t>(sum)].has_whole_numbers = false;
  return mapped(call.at, program::Function::divide,
                {sum, number(program::shard_count(graph_.mesh, axes.set()), call.at)}, {});
}

Result<int> Typing::resized_call(const Expression& call, const Wanted& wanted) {
  const bool splits = call.text != "all_gather", joins = call.text != "psum_scatter";
  ASSAY_TRY(x, value_of(call.operands[0], joins ? Wanted() : wanted));
  Call how;
  how.kind = !joins    ? program::Collective::reduce_scatter
             : !splits ? program::Collective::all_gather
                       : program::Collective::all_to_all;
  ASSAY_SET(how.axes, operand_axes(call.operands[1]));
  if (splits) ASSAY_SET(how.split, operand_dim(call.operands[2], x));
  if (joins) ASSAY_SET(how.join, operand_dim(call.operands.back(), x));
  if (how.split == how.join)
    return source_.error(call.operands[3].at, "the dimension that is split is not the one that is joined",
                         "name two dimensions");
  Dims dims = graph_.value(x).dims;
  const auto ways = static_cast<std::int64_t>(program::shard_count(graph_.mesh, how.axes.set()));
  if (splits) {
    Dim& smaller = dims[static_cast<std::size_t>(how.split)];
    if (smaller.size % ways != 0)
      return source_.error(
          call.operands[2].at,
          fmt::format("{} = {} is not divisible by {} devices", dim_name(smaller.id), smaller.size, ways), "");
    smaller.size /= ways;
  }
  if (joins) dims[static_cast<std::size_t>(how.join)].size *= ways;
  return called(call, x, how, std::move(dims));
}

Result<int> Typing::ragged_call(const Expression& call, const Wanted&) {
  const bool returns = call.text == "ragged_return";
  ASSAY_TRY(x, value_of(call.operands[0], {}));
  ASSAY_TRY(axes, operand_axes(call.operands[1]));
  ASSAY_TRY(place, operand_dim(call.operands[2], x));
  ASSAY_TRY(to, value_of(call.operands[3], {}));
  Dims dims = graph_.value(x).dims;
  const Dims routed = graph_.value(to).dims;
  if (place != 0)
    return source_.error(call.operands[2].at, "rows are those of the first dimension",
                         "put it first: NAME[S, D] = ...");
  if (routed.size() != 1 || routed[0].id != dims[0].id || !graph_.value(to).has_whole_numbers)
    return source_.error(
        call.operands[3].at,
        fmt::format("the devices of the rows are whole numbers over {}, not {}", dim_name(dims[0].id), shape_text(to)),
        "give one device for each row");
  const auto ways = static_cast<std::int64_t>(program::shard_count(graph_.mesh, axes.set()));
  if (dims[0].size != (returns ? ways : 1) * routed[0].size)
    return source_.error(call.operands[0].at,
                         fmt::format("{} has {} rows, and {} are routed", shape_text(x), dims[0].size, routed[0].size),
                         returns ? "give what ragged_all_to_all made" : "give one device for each row");
  dims[0].size = returns ? routed[0].size : ways * routed[0].size;  // a device may get all rows
  Call how{program::Collective::ragged_all_to_all, axes};
  how.returns = returns;
  ASSAY_TRY(id, called(call, x, how, std::move(dims)));
  graph_.values[static_cast<std::size_t>(id)].in.push_back(to);
  return id;
}

Result<int> Typing::ppermute_call(const Expression& call, const Wanted& wanted) {
  ASSAY_TRY(x, value_of(call.operands[0], wanted));
  ASSAY_TRY(axes, operand_axes(call.operands[1]));
  if (axes.axes().size() != 1) return source_.error(call.operands[1].at, "ppermute takes one axis", "");
  const std::int64_t n = graph_.mesh.size(axes.last());
  program::Permutation forward, inverse;
  if (call.operands.size() == 3 && call.operands[2].kind == Expression::Kind::number) {
    ASSAY_TRY(shift, whole_operand(call.operands[2], -n, n));
    for (std::int64_t i = 0; i < n; ++i) forward.pairs.emplace_back(i, ((i + shift) % n + n) % n);
  } else {
    for (std::size_t i = 2; i < call.operands.size(); ++i) {
      const Expression& pair = call.operands[i];
      if (pair.kind != Expression::Kind::arrow) return source_.error(pair.at, "expected FROM -> TO", "e.g. 0 -> 1");
      ASSAY_TRY(from, whole_operand(pair.operands[0], 0, n - 1));
      ASSAY_TRY(to, whole_operand(pair.operands[1], 0, n - 1));
      for (const auto& [other_from, other_to] : forward.pairs)
        if (other_from == from || other_to == to)
          return source_.error(pair.at, "a device sends once and receives once", "remove one of the pairs");
      forward.pairs.emplace_back(from, to);
    }
  }
  for (const auto& [from, to] : forward.pairs) inverse.pairs.emplace_back(to, from);
  Call how{program::Collective::permute, axes};
  how.permutation = static_cast<int>(graph_.permutations.size());
  graph_.permutations.push_back(std::move(forward));
  graph_.permutations.push_back(std::move(inverse));
  return called(call, x, how, graph_.value(x).dims);
}

}  // namespace assay::language

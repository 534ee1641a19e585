#include "assay/program/language/typing.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "assay/base/assign.h"
#include "assay/base/text.h"
#include "assay/program/plan/planner.h"

namespace assay::language {
namespace {

constexpr std::int64_t most_devices = 1 << 20;
constexpr std::int64_t most_rounds = 4096;  // of all loops together

std::vector<std::string> keys_of(const std::map<std::string, int, std::less<>>& names) {
  std::vector<std::string> out;
  for (const auto& [name, id] : names) out.push_back(name);
  return out;
}

bool mentions(const Expression& expression, const std::string& name) {
  return (expression.kind == Expression::Kind::name && expression.text == name) ||
         std::any_of(expression.operands.begin(), expression.operands.end(),
                     [&](const Expression& operand) { return mentions(operand, name); });
}

/// Whether what a line expects is a result, or part of what another line expects.
bool is_used(const Syntax& syntax, const Statement& expects) {
  const std::string& name = expects.target.name.text;
  return std::any_of(syntax.statements.begin(), syntax.statements.end(), [&](const Statement& other) {
    return (other.kind == Statement::Kind::result && other.target.name.text == name) ||
           (other.kind == Statement::Kind::expect && &other != &expects && mentions(*other.value, name));
  });
}

}  // namespace

Typing::Typing(const Source& source, const Syntax& syntax, Reading reading)
    : source_(source), syntax_(syntax), reading_(reading) {}

Result<Graph> Typing::run() {
  ASSAY_CHECK(declare());
  ASSAY_CHECK(run_statements(syntax_.statements));
  ASSAY_CHECK(finish());
  drop_unused();
  return std::move(graph_);
}

void Typing::drop_unused() {
  std::vector<Value>& values = graph_.values;
  std::vector<int> number(values.size(), -1);  // in the end; until then, 0 for what is used
  const auto use = [&](int id) { number[static_cast<std::size_t>(id)] = 0; };
  for (int id : graph_.results) use(id);
  if (graph_.loss >= 0) use(graph_.loss);
  for (std::size_t v = values.size(); v-- > 0;) {
    if (values[v].given == Value::Given::input) number[v] = 0;
    if (number[v] == 0)
      for (int id : values[v].in) use(id);
  }
  int next = 0;
  for (int& one : number)
    if (one == 0) one = next++;
  const auto renumber = [&](int& id) { id = number[static_cast<std::size_t>(id)]; };
  for (std::size_t v = 0; v < values.size(); ++v) {
    if (number[v] < 0) continue;
    for (int& id : values[v].in) renumber(id);
    if (values[v].given == Value::Given::gradient) renumber(values[v].detail);
    if (number[v] < static_cast<int>(v)) values[static_cast<std::size_t>(number[v])] = std::move(values[v]);
  }
  values.resize(static_cast<std::size_t>(next));
  for (int& id : graph_.results) renumber(id);
  if (graph_.loss >= 0) renumber(graph_.loss);
}

Result<void> Typing::declare() {
  graph_.mode = reading_ == Reading::sharded ? syntax_.mode : Mode::automatic;
  std::int64_t devices = 1;
  if (syntax_.mesh.size() > static_cast<std::size_t>(program::max_mesh_axes))
    return source_.error(syntax_.mesh.back().name.at, fmt::format("a mesh has at most {} axes", program::max_mesh_axes),
                         "");
  for (const SizedName& axis : syntax_.mesh) {
    if (axis.name.text.find_first_of("0123456789") != std::string::npos)
      return source_.error(axis.name.at, "the name of an axis has letters only", "e.g. X");
    devices *= axis.size;
    if (devices > most_devices)
      return source_.error(axis.name.at, fmt::format("the mesh has more than {} devices", most_devices),
                           "use a smaller mesh of the same form");
    if (reading_ == Reading::sharded) graph_.mesh.axes.push_back({axis.name.text, axis.size});
  }
  for (const SizedName& dim : syntax_.dims) {
    graph_.dim_names.push_back(dim.name.text);
    sizes_.push_back(dim.size);
  }
  if (!syntax_.dtype.text.empty()) {
    auto dtype = parse_dtype(syntax_.dtype.text, "");
    if (!dtype) return source_.error(syntax_.dtype.at, dtype.error().what, dtype.error().hint);
    if (facts(*dtype).bits < 16)
      return source_.error(syntax_.dtype.at, "programs are written in formats of 16 bits or more", "e.g. bf16 or fp32");
    graph_.dtype = *dtype;
  }
  return {};
}

Result<void> Typing::run_statements(const std::vector<Statement>& statements) {
  for (const Statement& statement : statements) ASSAY_CHECK(run_statement(statement));
  return {};
}

Result<void> Typing::run_statement(const Statement& statement) {
  // A manual program has no unsharded form but for what it expects.
  const bool by_device = reading_ == Reading::unsharded && syntax_.mode == Mode::manual;
  const auto is = [&](Statement::Kind kind) { return statement.kind == kind; };
  using Kind = Statement::Kind;
  if (by_device && !is(Kind::input) && !is(Kind::expect) && !is(Kind::function)) return {};
  switch (statement.kind) {
    case Statement::Kind::input:
      return add_input(statement);
    case Statement::Kind::assign:
      return assign(statement);
    case Statement::Kind::loop:
      return run_loop(statement);
    case Statement::Kind::function:
      return define(statement);
    case Statement::Kind::gradients:
      return take_gradients(statement);
    case Statement::Kind::result:
      return {};  // when all is computed
    case Statement::Kind::expect:
      return expect(statement);
  }
  return {};
}

Result<int> Typing::dim_named(const Word& word) const {
  const auto found = std::find(graph_.dim_names.begin(), graph_.dim_names.end(), word.text);
  if (found == graph_.dim_names.end())
    return source_.error(word.at, fmt::format("unknown dimension {}", in_quotes(word.text)),
                         graph_.dim_names.empty() ? fmt::format("declare it: dims {}=8", word.text)
                                                  : suggestion(word.text, graph_.dim_names));
  return static_cast<int>(found - graph_.dim_names.begin());
}

Result<Dims> Typing::dims_of(const WrittenTensor& tensor) const {
  Dims dims;
  for (const WrittenDim& written : tensor.dims) {
    ASSAY_TRY(id, dim_named(written.name));
    if (find_dim(dims, id) >= 0)
      return source_.error(written.name.at, fmt::format("dimension {} appears twice in one tensor", written.name.text),
                           "declare a second name of that size, and rename one");
    dims.push_back({id, sizes_[static_cast<std::size_t>(id)]});
  }
  return dims;
}

Result<program::AxisList> Typing::axes_of(const Word& word, program::AxisSet& used) const {
  program::AxisList list;
  for (std::size_t at = 0; at < word.text.size();) {
    const SizedName* found = nullptr;
    int index = -1;
    for (std::size_t i = 0; i < syntax_.mesh.size(); ++i)
      if (const SizedName& axis = syntax_.mesh[i]; word.text.compare(at, axis.name.text.size(), axis.name.text) == 0 &&
                                                   (!found || axis.name.text.size() > found->name.text.size())) {
        found = &axis;
        index = static_cast<int>(i);
      }
    if (!found)
      return source_.error(word.at + at, fmt::format("{} is not an axis of the mesh", in_quotes(word.text.substr(at))),
                           syntax_.mesh.empty() ? "declare it: mesh X=2"
                                                : fmt::format("the mesh is {}", program::mesh_text(graph_.mesh)));
    if (used & program::axis_bit(index))
      return source_.error(word.at + at, fmt::format("axis {} is used twice in one tensor", found->name.text),
                           "an axis splits one dimension, or marks one partial sum");
    used |= program::axis_bit(index);
    list = list.pushed(index);
    at += found->name.text.size();
    if (word.text.compare(at, 1, "+") == 0) ++at;
  }
  return list;
}

Result<program::Sharding> Typing::sharding_of(const WrittenTensor& tensor, const Dims& dims,
                                              bool dims_are_local) const {
  program::Sharding sharding;
  program::AxisSet used = 0;
  if (tensor.dims.size() > sharding.dims.size())
    return source_.error(tensor.name.at,
                         fmt::format("{} has {} dimensions, and at most {} are possible", tensor.name.text,
                                     tensor.dims.size(), sharding.dims.size()),
                         "join some of them");
  for (std::size_t i = 0; i < tensor.dims.size(); ++i) {
    const WrittenDim& written = tensor.dims[i];
    if (written.axes.text.empty()) continue;
    ASSAY_TRY(list, axes_of(written.axes, used));
    sharding.dims[i] = list;
    const auto ways = static_cast<std::int64_t>(program::shard_count(graph_.mesh, list.set()));
    if (!dims_are_local && dims[i].size % ways != 0)
      return source_.error(written.axes.at,
                           fmt::format("{} = {} is not divisible by {} devices", written.name.text, dims[i].size, ways),
                           "executed programs have no padding: use a size that divides");
  }
  if (!tensor.partial.text.empty()) {
    ASSAY_TRY(list, axes_of(tensor.partial, used));
    sharding.unreduced = list.set();
  }
  return plan::without_unit_axes(graph_.mesh, sharding);
}

Result<void> Typing::check_fill(Fill& fill, const Dims& dims, const WrittenTensor& target) const {
  if (!fill.below_dim.text.empty()) {
    ASSAY_TRY(dim, dim_named(fill.below_dim));
    fill.below = sizes_[static_cast<std::size_t>(dim)];
  }
  if (fill.kind == Fill::Kind::literal && static_cast<double>(fill.literal.size()) != element_count(dims))
    return source_.error(fill.at,
                         fmt::format("{} has {:.0f} elements, but {} are given", target.name.text, element_count(dims),
                                     fill.literal.size()),
                         "give one number for each element, in order");
  return {};
}

Result<void> Typing::add_input(const Statement& statement) {
  const WrittenTensor& target = statement.target;
  if (names_.count(target.name.text))
    return source_.error(target.name.at, fmt::format("{} is declared twice", in_quotes(target.name.text)),
                         "inputs have different names");
  if (!target.partial.text.empty())
    return source_.error(target.partial.at, "an input is whole: it is no partial sum", "leave {U_...} out");
  ASSAY_TRY(dims, dims_of(target));
  Value value;
  value.name = target.name.text;
  value.at = target.name.at;
  value.given = Value::Given::input;
  value.fill = statement.fill;
  ASSAY_CHECK(check_fill(value.fill, dims, target));
  const std::vector<double>& given = value.fill.literal;
  value.has_whole_numbers = value.fill.below > 0 || value.fill.kind == Fill::Kind::iota ||
                            (!given.empty() && std::all_of(given.begin(), given.end(),
                                                           [](double number) { return number == std::floor(number); }));
  value.dims = dims;
  if (reading_ == Reading::sharded) {
    ASSAY_TRY(sharding, sharding_of(target, dims, false));
    value.pinned = sharding;
    if (is_manual())
      for (std::size_t i = 0; i < dims.size(); ++i)
        value.dims[i].size = program::local_size(graph_.mesh, dims[i].size, sharding.dims[i]);
  }
  ASSAY_TRY(id, add(std::move(value)));
  names_[target.name.text] = id;
  inputs_[target.name.text] = id;
  return {};
}

Result<void> Typing::assign(const Statement& statement) {
  const WrittenTensor& target = statement.target;
  target_ = target.name.text;
  Wanted wanted;
  Dims dims;
  if (target.has_dims) {
    ASSAY_SET(dims, dims_of(target));
    wanted.emplace();
    for (const Dim& dim : dims) wanted->push_back(dim.id);
  } else if (target.has_braces) {
    return source_.error(target.name.at, "a sharding needs the dimensions of the tensor", "write NAME[B, D] {}");
  }
  ASSAY_TRY(id, value_of(*statement.value, wanted));
  if (const Value& given = graph_.value(id);
      given.given == Value::Given::number && given.dims.empty() && wanted && !is_manual()) {
    Value filled = given;  // acc[B, D] = 0
    filled.dims = dims;
    ASSAY_SET(id, add(std::move(filled)));
  }
  int made = id;
  if (wanted) {
    const Dims& have = graph_.value(id).dims;
    for (std::size_t i = 0; i < dims.size(); ++i)
      if (find_dim(have, dims[i].id) < 0)
        return source_.error(
            target.dims[i].name.at,
            fmt::format("the value has no dimension {}: it is {}", dim_name(dims[i].id), shape_text(id)),
            "give the dimensions of the value, in any order");
    for (const Dim& dim : have)
      if (find_dim(dims, dim.id) < 0)
        return source_.error(target.name.at,
                             fmt::format("the value also has dimension {}: it is {}", dim_name(dim.id), shape_text(id)),
                             fmt::format("keep it, or reduce it: sum(..., {})", dim_name(dim.id)));
  }
  // A name of its own, another order of dimensions, or a sharding of its own is a copy.
  const bool is_other = graph_.value(made).name != target_ && graph_.value(made).given == Value::Given::no;
  const bool reorders = wanted && !std::equal(wanted->begin(), wanted->end(), graph_.value(made).dims.begin(),
                                              [](int dim, const Dim& have) { return have.id == dim; });
  const bool pins = target.is_pinned() && reading_ == Reading::sharded;
  if (reorders)
    ASSAY_SET(made, mapped(statement.value->at, program::Function::copy, {made}, wanted));
  else if (pins && (is_other || graph_.value(made).given != Value::Given::no))
    ASSAY_SET(made, viewed(*statement.value, made, Dims(graph_.value(made).dims)));
  if (pins) {
    if (is_manual())
      return source_.error(target.name.at, "in a manual program, tensors are those of one device",
                           "write shardings at inputs and results only");
    ASSAY_SET(graph_.values[static_cast<std::size_t>(made)].pinned,
              sharding_of(target, graph_.value(made).dims, false));
  }
  names_[target_] = made;
  return {};
}

Result<void> Typing::expect(const Statement& statement) {
  if (reading_ == Reading::sharded) return {};
  // Of a manual program only inputs have their whole arrays.
  std::map<std::string, int, std::less<>> all = names_;
  if (syntax_.mode == Mode::manual) names_ = inputs_;
  for (const auto& [name, id] : expected_) names_[name] = id;
  ASSAY_CHECK(assign(statement));
  expected_[statement.target.name.text] = names_[statement.target.name.text];
  names_ = std::move(all);
  return {};
}

Result<void> Typing::run_loop(const Statement& statement) {
  for (std::int64_t i = statement.first; i < statement.last; ++i) {
    if (++rounds_ > most_rounds)
      return source_.error(statement.at, fmt::format("loops make more than {} rounds", most_rounds), "repeat less");
    if (!statement.counter.text.empty()) names_[statement.counter.text] = number(static_cast<double>(i), statement.at);
    ASSAY_CHECK(run_statements(statement.body));
  }
  return {};
}

Result<void> Typing::define(const Statement& statement) {
  const Word& name = statement.target.name;
  if (is_function(name.text))
    return source_.error(name.at, fmt::format("{} is a function already", in_quotes(name.text)), "give another name");
  for (std::size_t i = 0; i < statement.parameters.size(); ++i)
    for (std::size_t k = 0; k < i; ++k)
      if (statement.parameters[k].text == statement.parameters[i].text)
        return source_.error(statement.parameters[i].at,
                             fmt::format("{} is given twice", in_quotes(statement.parameters[i].text)),
                             "each parameter has a name of its own");
  functions_.push_back(&statement);
  return {};
}

Result<int> Typing::call_own(const Expression& call, std::size_t number, const Wanted& wanted) {
  const Statement& function = *functions_[number];
  std::map<std::string, int, std::less<>> names;
  const std::size_t count = function.parameters.size();
  std::vector<std::string> parameters;
  for (const Word& parameter : function.parameters) parameters.push_back(parameter.text);
  ASSAY_CHECK(takes(call, count, count, fmt::format("{}({})", call.text, join(parameters, ", "))));
  for (std::size_t i = 0; i < count; ++i) ASSAY_SET(names[function.parameters[i].text], value_of(call.operands[i], {}));
  if (++rounds_ > most_rounds)
    return source_.error(call.at, fmt::format("functions are called more than {} times", most_rounds), "repeat less");
  // A function sees what it is given, and the functions above it.
  const std::vector<const Statement*> all = functions_;
  const std::string target = target_;
  functions_.resize(number);
  std::swap(names, names_);
  const Result<void> done = run_statements(function.body);
  target_ = target;
  Result<int> out = done ? value_of(*function.value, wanted) : tl::unexpected<Error>(done.error());
  std::swap(names, names_);
  functions_ = all;
  return out;
}

Result<void> Typing::take_gradients(const Statement& statement) {
  const auto later = [&](const Statement& other) {
    return &other > &statement && (other.kind == Statement::Kind::assign || other.kind == Statement::Kind::loop);
  };
  if (std::none_of(syntax_.statements.begin(), syntax_.statements.end(), later)) return {};  // when all is computed
  const Word& name = statement.target.name;
  if (takes_gradients_) return source_.error(name.at, "gradients are asked for twice", "give one tensor");
  if (is_manual())
    return source_.error(name.at, "gradients of a manual program stand at its end",
                         "its lines are those of one device, before gradients are summed");
  const auto found = names_.find(name.text);
  if (found == names_.end())
    return source_.error(name.at, fmt::format("unknown tensor {}", in_quotes(name.text)),
                         suggestion(name.text, keys_of(names_)));
  takes_gradients_ = true;
  graph_.loss = found->second;
  std::vector<bool> reached(graph_.values.size(), false);
  reached[static_cast<std::size_t>(graph_.loss)] = true;
  for (std::size_t v = graph_.values.size(); v-- > 0;)
    for (int id : graph_.values[v].in)
      if (reached[v]) reached[static_cast<std::size_t>(id)] = true;
  for (const auto& [input, id] : inputs_) {
    const Value& of = graph_.value(id);
    if (!reached[static_cast<std::size_t>(id)] || of.has_whole_numbers) continue;
    Value value;
    value.name = "d" + input;
    value.at = statement.at;
    value.given = Value::Given::gradient;
    value.detail = id;
    value.dims = of.dims;
    value.pinned = of.pinned;
    ASSAY_SET(names_[value.name], add(value));
  }
  return {};
}

Result<void> Typing::add_loss(const Statement& statement) {
  if (takes_gradients_) return {};
  const Word& name = statement.target.name;
  if (graph_.loss >= 0) return source_.error(name.at, "gradients are asked for twice", "give one tensor");
  for (int id : graph_.results)
    if (graph_.value(id).name == name.text) graph_.loss = id;
  if (graph_.loss >= 0 || (syntax_.mode == Mode::manual && reading_ == Reading::unsharded)) return {};
  const auto found = names_.find(name.text);
  if (found == names_.end())
    return source_.error(name.at, fmt::format("unknown tensor {}", in_quotes(name.text)),
                         suggestion(name.text, keys_of(names_)));
  if (is_manual())
    return source_.error(name.at, "gradients of a manual program are those of a result",
                         fmt::format("add result {}[...] with its sharding", name.text));
  graph_.loss = found->second;
  return {};
}

Result<void> Typing::add_result(const WrittenTensor& target) {
  const auto expected = expected_.find(target.name.text);
  const auto found = names_.find(target.name.text);
  if (syntax_.mode == Mode::manual && reading_ == Reading::unsharded && expected == expected_.end()) return {};
  if (found == names_.end() && !(expected != expected_.end() && expected->second >= 0))
    return source_.error(target.name.at, fmt::format("unknown tensor {}", in_quotes(target.name.text)),
                         suggestion(target.name.text, keys_of(names_)));
  Value value;
  value.ends = true;
  value.name = target.name.text;
  value.at = target.name.at;
  value.in = {expected != expected_.end() && expected->second >= 0 ? expected->second : found->second};
  value.dims = graph_.value(value.in[0]).dims;
  if (is_manual() && (!target.has_dims || target.dims.size() != value.dims.size()))
    return source_.error(
        target.name.at, "a manual program says how its shards join into a result",
        fmt::format("write result {}[B_X, D]; here a shard is {}", value.name, shape_text(value.in[0])));
  if (target.has_dims) {
    ASSAY_TRY(dims, dims_of(target));
    for (std::size_t i = 0; i < std::max(dims.size(), value.dims.size()); ++i)
      if (i >= dims.size() || i >= value.dims.size() || dims[i].id != value.dims[i].id)
        return source_.error(target.name.at,
                             fmt::format("the dimensions of {} are {}", value.name, shape_text(value.in[0])),
                             "write them in this order");
    if (reading_ == Reading::sharded && (target.is_pinned() || is_manual())) {
      ASSAY_TRY(sharding, sharding_of(target, value.dims, is_manual()));
      if (sharding.unreduced)
        return source_.error(target.partial.at, "a result is whole: it is no partial sum", "leave {U_...} out");
      value.pinned = sharding;
      if (is_manual())
        for (std::size_t i = 0; i < dims.size(); ++i)
          value.dims[i].size *= static_cast<std::int64_t>(program::shard_count(graph_.mesh, sharding.dims[i].set()));
    }
  }
  ASSAY_TRY(id, add(std::move(value)));
  graph_.results.push_back(id);
  return {};
}

Result<void> Typing::finish() {
  bool any = false;
  for (const Statement& statement : syntax_.statements) {
    if (statement.kind == Statement::Kind::expect && !is_used(syntax_, statement))
      return source_.error(
          statement.target.name.at,
          fmt::format("{} is expected, but neither a result nor used", in_quotes(statement.target.name.text)),
          fmt::format("add result {}", statement.target.name.text));
    if (statement.kind != Statement::Kind::result) continue;
    any = true;
    ASSAY_CHECK(add_result(statement.target));
  }
  for (const Statement& statement : syntax_.statements)
    if (statement.kind == Statement::Kind::gradients) ASSAY_CHECK(add_loss(statement));
  if (!any && graph_.loss < 0)
    return source_.error(source_.text.size(), "the program has no result", "add result NAME as its last line");
  return {};
}

Result<Graph> graph_of(const Source& source, const Syntax& syntax, Reading reading) {
  return Typing(source, syntax, reading).run();
}

}  // namespace assay::language

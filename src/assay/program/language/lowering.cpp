#include "assay/program/language/lowering.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "assay/base/assign.h"
#include "assay/base/text.h"
#include "assay/program/language/rows.h"
#include "assay/program/lower/builder.h"
#include "assay/program/plan/bounded.h"

namespace assay::language {
namespace {

constexpr double most_elements = 1 << 22;  // of one tensor
constexpr double most_held = 1 << 25;      // elements of all tensors on all devices
constexpr double most_flops = 1LL << 33;   // of all devices
constexpr std::size_t most_tensors = 30000;

using program::AxisList;
using program::AxisSet;
using program::Op;
using program::Sharding;

class Lowering {
 public:
  Lowering(const Source& source, Compiled& out, const plan::Prices& prices)
      : source_(source), out_(out), graph_(out.graph), program_(out.program), prices_(prices), planner_(graph_.mesh) {
    program_.set_mesh(graph_.mesh);
    program_.own_dims = graph_.dim_names;
    program_.permutations = graph_.permutations;
    program_.tensors.reserve(8 * graph_.values.size() + 64);
  }

  Result<void> run(const Choices& choices) {
    lower::ShardingRules rules;
    lower::Formats formats;
    formats.weights = formats.activations = formats.compute = formats.gradients = graph_.dtype;
    lower::Builder builder(program_, rules, formats, lower::Recompute::none());
    builder.begin_block("program", program::Phase::forward, -1, 1);
    for (std::size_t v = 0; v < graph_.values.size(); ++v) {
      line_ = source_.line_of(graph_.values[v].at);
      if (graph_.values[v].given == Value::Given::gradient && out_.gradients.empty()) {
        builder.end_block();
        add_backward(builder);
        builder.begin_block("program", program::Phase::forward, -1, 1);
      }
      tensors_.push_back(graph_.mode == Mode::manual ? local_value(graph_.values[v])
                                                     : sharded_value(graph_.values[v], choices.values[v]));
      ASSAY_CHECK(check_size(graph_.values[v].at));
    }
    builder.end_block();
    if (graph_.loss >= 0 && out_.gradients.empty()) add_backward(builder);
    return check_size(graph_.loss >= 0 ? graph_.value(graph_.loss).at : 0);
  }

 private:
  static std::size_t at(int id) { return static_cast<std::size_t>(id); }
  int tensor_of_value(int value) const { return tensors_[at(value)]; }

  /// Notes where a program begins to take too much memory or time to be executed; refuses what is too long to plan.
  Result<void> check_size(std::size_t place) {
    const auto devices = static_cast<double>(graph_.mesh.devices());
    double largest = 0.0;
    for (; counted_tensors_ < program_.tensors.size(); ++counted_tensors_) {
      const double elements = program_.tensors[counted_tensors_].elements;
      largest = std::max(largest, elements);
      held_ += devices * elements;
    }
    for (; counted_steps_ < program_.steps.size(); ++counted_steps_)
      flops_ += devices * program_.steps[counted_steps_].flops.value();
    if (program_.tensors.size() > most_tensors)
      return source_.error(place, fmt::format("the program has more than {} tensors", most_tensors), "repeat less");
    if (out_.too_large) return {};
    const std::string fault =
        largest > most_elements
            ? fmt::format("the tensor has {:.0f} elements, at most {:.0f} are executed", largest, most_elements)
        : held_ > most_held
            ? fmt::format("the program holds more than {:.0f} elements on all devices together", most_held)
        : flops_ > most_flops
            ? fmt::format("the program takes more than {:.0f} FLOP on all devices together", most_flops)
            : "";
    if (!fault.empty())
      out_.too_large =
          source_.error(place, fault, "use smaller sizes, or --on CLUSTER, which prices a program of any size").value();
    return {};
  }

  // --- tensors and steps
  int add_tensor(std::string_view name, const Dims& dims, const Sharding& sharding, bool whole_numbers) {
    program::ProgramTensor tensor;
    tensor.name = out_.names.emplace_back(name);
    tensor.store_as(graph_.dtype);
    tensor.rank = static_cast<std::uint8_t>(dims.size());
    for (std::size_t d = 0; d < dims.size(); ++d) tensor.dims.set(d, {program::own_dim(at(dims[d].id)), dims[d].size});
    tensor.sharding = sharding;
    tensor.is_frozen = whole_numbers;
    return program_.add(tensor);
  }

  int add_given(const Value& value, const Dims& dims, const Sharding& sharding) {
    const int id = add_tensor(value.name, dims, sharding, value.has_whole_numbers);
    program_.tensors[at(id)].is_given = true;
    program_.tensors[at(id)].tensor_class = program::TensorClass::residual;
    out_.given.push_back({id, value.given, value.fill, value.axes});
    return id;
  }

  void note(bool inserted) { out_.origins.push_back({line_, inserted}); }

  program::Step& emit(Op op, const std::vector<int>& in, int out, int detail = -1) {
    program_.tensors[at(out)].producer = static_cast<std::int16_t>(program_.steps.size());
    program::Step& step = program_.steps.emplace_back();
    step.op = op;
    step.detail = static_cast<std::int16_t>(detail);
    for (std::size_t i = 0; i < in.size(); ++i) step.in[i] = static_cast<std::int16_t>(in[i]);
    step.out[0] = static_cast<std::int16_t>(out);
    if (program::facts(op).cost != program::CostClass::free) {
      for (int id : in) step.bytes += program::local_bytes(program_, program_.tensor(id));
      step.bytes += program::local_bytes(program_, program_.tensor(out));
    }
    note(false);
    return step;
  }

  int copy_tensor(int id, const Sharding& sharding) {
    program::ProgramTensor copy = program_.tensor(id);
    copy.sharding = sharding;
    copy.is_given = copy.is_kept = copy.is_needed = false;
    copy.tensor_class = program::TensorClass::activation;
    return program_.add(copy);
  }

  int move(int from, std::optional<program::Collective> kind, AxisSet axes, const Sharding& to, bool inserted) {
    const int made = copy_tensor(from, to);
    program_.tensors[at(made)].producer = static_cast<std::int16_t>(program_.steps.size());
    program::Step step = program::movement(kind, axes, from, made);
    step.bytes =
        program::received_bytes(step, program_.ways(axes), program::local_bytes(program_, program_.tensor(from)));
    program_.steps.push_back(step);
    note(inserted);
    return made;
  }

  /// The tensor in another sharding; moved once, however many steps need it.
  int resharded(int id, const Sharding& to) {
    if (program_.tensor(id).sharding == to) return id;
    for (const auto& [sharding, tensor] : moved_[id])
      if (sharding == to) return tensor;
    const plan::Plan plan = planner_.reshard(program::to_tensor(program_, program_.tensor(id)), to, prices_);
    int now = id;
    for (const program::Step& step : plan.steps)
      now = move(now, step.op == Op::slice ? std::nullopt : std::optional(step.collective), step.axes,
                 plan.tensor(step.out[0]).sharding, true);
    moved_[id].emplace_back(to, now);
    return now;
  }

  // --- automatic and explicit programs
  int sharded_value(const Value& value, const Choice& choice) {
    if (value.given == Value::Given::gradient) {
      const auto made = std::find_if(out_.gradients.begin(), out_.gradients.end(),
                                     [&](const NamedTensor& one) { return one.name == value.name; });
      if (made == out_.gradients.end()) throw InternalError("an input that a loss depends on has no gradient");
      return resharded(made->tensor, choice.kept);
    }
    if (value.given != Value::Given::no) return add_given(value, value.dims, choice.kept);
    std::vector<int> in;
    for (std::size_t k = 0; k < value.in.size(); ++k)
      in.push_back(resharded(tensor_of_value(value.in[k]), choice.in[k]));
    if (value.ends) {
      const int end = resharded(in[0], choice.kept);
      out_.results.push_back({value.name, end});
      return end;
    }
    const bool ends_within = axes_within(value, graph_.value(value.in[0]).dims, choice.in[0]) != 0;
    const int made = !ends_within              ? operation(value, value.dims, in, choice.made)
                     : value.op == Op::softmax ? split_softmax(value, in[0], choice.made)
                                               : split_largest(value, in[0], choice.in[0], choice.made);
    return resharded(made, choice.kept);
  }

  /// The largest elements over dimensions of which devices hold parts: those of each device, then of all.
  int split_largest(const Value& value, int x, const Sharding& held, const Sharding& made) {
    Sharding partial = made;
    partial.unreduced = axes_within(value, graph_.value(value.in[0]).dims, held);
    const int own = operation(value, value.dims, {x}, partial);
    const int out = move(own, program::Collective::all_reduce, partial.unreduced, made, true);
    program_.steps.back().composed = 1;
    return out;
  }

  /// A softmax over a dimension of which devices hold parts: a maximum and a sum of all devices. The maximum only keeps
  /// numbers small, so that it has no gradient.
  int split_softmax(const Value& value, int x, const Sharding& made) {
    const auto along = at(value.detail);
    Value largest = value, sum = value;
    largest.op = Op::largest;
    sum.op = Op::sum;
    Sharding reduced = made;
    std::move(reduced.dims.begin() + value.detail + 1, reduced.dims.end(), reduced.dims.begin() + value.detail);
    reduced.dims.back() = {};
    for (Value* one : {&largest, &sum}) {
      one->detail = -1;
      one->dims.erase(one->dims.begin() + value.detail);
    }
    largest.has_whole_numbers = true;
    const auto mapped = [&](program::Function function, const std::vector<int>& in) {
      const int out = add_tensor(value.name, value.dims, made, value.has_whole_numbers);
      emit(Op::map, in, out, static_cast<int>(function));
      return out;
    };
    const int most = split_largest(largest, x, made, reduced);
    const int powers = mapped(program::Function::exp, {mapped(program::Function::subtract, {x, most})});
    Sharding partial = reduced;
    partial.unreduced = made.dims[along].set();
    const int all = resharded(operation(sum, sum.dims, {powers}, partial), reduced);
    return mapped(program::Function::divide, {powers, all});
  }

  int operation(const Value& value, const Dims& dims, const std::vector<int>& in, const Sharding& made) {
    const int out = add_tensor(value.name, dims, made, value.has_whole_numbers);
    // Devices are the first dimension of what a manual program computes.
    const bool counts_dims =
        value.op == Op::softmax || value.op == Op::chunk || value.op == Op::put || value.op == Op::embed;
    const int before = counts_dims ? static_cast<int>(dims.size() - value.dims.size()) : 0;
    program::Step& step = emit(value.op, in, out, value.detail < 0 ? -1 : value.detail + before);
    if (value.op != Op::product) return out;
    const program::ProgramTensor &a = program_.tensor(in[0]), &b = program_.tensor(in[1]);
    double extent = a.elements;
    for (int d = 0; d < b.rank; ++d)
      if (a.find(b.dims[at(d)].dim) < 0) extent *= program::local_extent(program_, b, d);
    step.flops = Flops(2.0 * extent);
    return out;
  }

  // --- manual programs: devices are a dimension, which all axes split
  /// The dimension of the devices along some axes.
  Dim device_dim(AxisSet axes) {
    const auto size = static_cast<std::int64_t>(program_.ways(axes));
    const std::string name = program::axes_text(graph_.mesh, axes);
    const auto known = device_dims_.find(axes);
    if (known != device_dims_.end()) return {known->second, size};
    program_.own_dims.push_back(name);
    const int id = static_cast<int>(program_.own_dims.size()) - 1;
    device_dims_.emplace(axes, id);
    return {id, size};
  }
  AxisSet all_axes() const {
    AxisSet all = 0;
    for (std::size_t i = 0; i < graph_.mesh.axes.size(); ++i)
      if (graph_.mesh.axes[i].size > 1) all |= program::axis_bit(static_cast<int>(i));
    return all;
  }
  static AxisList list_of(AxisSet axes) {
    AxisList list;
    for (int axis = 0; axis < program::max_mesh_axes; ++axis)
      if (axes & program::axis_bit(axis)) list = list.pushed(axis);
    return list;
  }

  struct Shape {
    Dims dims;
    Sharding sharding;
  };
  /// What the devices along `axes` hold, one each.
  Shape held_by(AxisSet axes, const Dims& local) {
    if (axes == 0) return {local, {}};
    Shape shape{{device_dim(axes)}, {}};
    shape.sharding.dims[0] = list_of(axes);
    shape.dims.insert(shape.dims.end(), local.begin(), local.end());
    return shape;
  }

  bool has_shape(int id, const Shape& shape) const {
    const program::ProgramTensor& tensor = program_.tensor(id);
    bool same = tensor.sharding == shape.sharding && at(tensor.rank) == shape.dims.size();
    for (std::size_t d = 0; same && d < shape.dims.size(); ++d)
      same = tensor.dims[d].dim == program::own_dim(at(shape.dims[d].id)) && tensor.dims[d].size == shape.dims[d].size;
    return same;
  }

  int view(int id, std::string_view name, const Shape& shape, bool whole_numbers) {
    if (has_shape(id, shape)) return id;
    const int made = add_tensor(name, shape.dims, shape.sharding, whole_numbers);
    emit(Op::view, {id}, made);
    out_.origins.back().inserted = true;
    return made;
  }

  int local_value(const Value& value) {
    const AxisSet all = all_axes();
    if (value.given == Value::Given::number || value.given == Value::Given::iota)
      return add_given(value, value.dims, {});
    if (value.given == Value::Given::axis_index) {
      const Shape shape = held_by(all, {});
      return add_given(value, shape.dims, shape.sharding);
    }
    if (value.given == Value::Given::input) {
      Dims dims = value.dims;
      for (std::size_t d = 0; d < dims.size(); ++d)
        dims[d].size *= static_cast<std::int64_t>(program_.ways(value.pinned->dims[d]));
      const int whole = add_given(value, dims, *value.pinned);
      return view(whole, value.name, held_by(all, value.dims), value.has_whole_numbers);
    }
    if (value.ends) return joined_result(value);
    if (value.call) return called(value);
    std::vector<int> in;
    bool varies = false;
    for (int id : value.in) {
      in.push_back(tensor_of_value(id));
      varies = varies || is_by_device(in.back());
    }
    if (value.op == Op::view) {  // renames dimensions
      const Shape shape = varies ? held_by(all, value.dims) : Shape{value.dims, {}};
      return operation(value, shape.dims, in, shape.sharding);
    }
    const Shape shape = varies ? held_by(all, value.dims) : Shape{value.dims, {}};
    if (value.op == Op::embed && varies)  // both have the dimension of the devices, so that each has its own rows
      for (std::size_t k = 0; k < in.size(); ++k)
        if (!is_by_device(in[k])) in[k] = spread(in[k], graph_.value(value.in[k]));
    return operation(value, shape.dims, in, shape.sharding);
  }

  bool is_by_device(int id) const { return program_.tensor(id).sharding.used_axes() != 0; }

  int joined_result(const Value& value) {
    int id = tensor_of_value(value.in[0]);
    id = view(id, value.name, {value.dims, *value.pinned}, value.has_whole_numbers);
    out_.results.push_back({value.name, id});
    return id;
  }

  int called(const Value& value) {
    const Call& call = *value.call;
    const Value& operand = graph_.value(value.in[0]);
    AxisList axes;
    for (int axis : call.axes.axes())
      if (graph_.mesh.size(axis) > 1) axes = axes.pushed(axis);
    const AxisSet all = all_axes(), others = all & ~axes.set();
    int id = tensor_of_value(value.in[0]);
    if (axes.empty() && call.kind != program::Collective::ragged_all_to_all) return id;
    if (!is_by_device(id)) id = spread(id, operand);
    if (call.kind == program::Collective::ragged_all_to_all) return exchanged(id, value, axes.set());
    if (call.permutation >= 0) return permuted(id, value, axes.set());
    const std::size_t shift = others == 0 ? 0 : 1;
    Shape before = held_by(others, operand.dims);
    Sharding after = before.sharding;
    if (call.join >= 0) {  // a dimension that grows is split over the axes before
      before.sharding.dims[at(call.join) + shift] = axes;
      before.dims[at(call.join) + shift].size = value.dims[at(call.join)].size;
    } else {
      before.sharding.unreduced = axes.set();
    }
    if (call.split >= 0) after.dims[at(call.split) + shift] = axes;
    id = view(id, operand.name, before, value.has_whole_numbers);
    id = move(id, call.kind, axes.set(), after, false);
    program_.tensors[at(id)].name = out_.names.emplace_back(value.name);
    return view(id, value.name, held_by(all, value.dims), value.has_whole_numbers);
  }

  int exchanged(int id, const Value& value, AxisSet axes) {
    int to = tensor_of_value(value.in[1]);
    if (!is_by_device(to)) to = spread(to, graph_.value(value.in[1]));
    const Shape shape = held_by(all_axes(), value.dims);
    const int made = add_tensor(value.name, shape.dims, shape.sharding, value.has_whole_numbers);
    program_.tensors[at(made)].producer = static_cast<std::int16_t>(program_.steps.size());
    program::Step step = program::movement(value.call->kind, axes, id, made);
    step.in[1] = static_cast<std::int16_t>(to);
    step.detail = value.call->returns ? 1 : 0;
    // Even routing: of the rows that devices own, not of the room for all of them.
    const int owned = value.call->returns ? made : id;
    step.bytes =
        program::received_bytes(step, program_.ways(axes), program::local_bytes(program_, program_.tensor(owned)));
    program_.steps.push_back(step);
    note(false);
    return made;
  }

  /// A number that is the same on all devices, as a tensor of each.
  int spread(int id, const Value& value) {
    Value ones;
    ones.name = value.name;
    ones.given = Value::Given::number;
    ones.has_whole_numbers = true;
    ones.fill.kind = Fill::Kind::constant;
    ones.fill.constant = 1.0;
    const Shape shape = held_by(all_axes(), value.dims);
    const int one = add_given(ones, shape.dims, shape.sharding);
    const int out = add_tensor(value.name, shape.dims, shape.sharding, value.has_whole_numbers);
    emit(Op::map, {id, one}, out, static_cast<int>(program::Function::multiply));
    return out;
  }

  int permuted(int id, const Value& value, AxisSet axes) {
    const Call& call = *value.call;
    const int made = move(id, program::Collective::permute, axes, program_.tensor(id).sharding, false);
    program_.tensors[at(made)].name = out_.names.emplace_back(value.name);
    program::Step& step = program_.steps.back();
    step.detail = static_cast<std::int16_t>(call.permutation);
    const auto& pairs = graph_.permutations[at(call.permutation)].pairs;
    const auto sent =
        std::count_if(pairs.begin(), pairs.end(), [](const auto& pair) { return pair.first != pair.second; });
    step.bytes = static_cast<double>(sent) / program_.ways(axes) * step.bytes;  // the mean over devices
    return made;
  }

  // --- gradients
  void add_backward(lower::Builder& builder) {
    const int loss = tensor_of_value(graph_.loss);
    line_ = 0;
    Value seed;
    seed.name = graph_.value(graph_.loss).name;
    seed.given = Value::Given::number;
    seed.fill.kind = Fill::Kind::constant;
    // Copies of a result that a manual program makes share its gradient.
    const bool copies = graph_.mode == Mode::manual;
    const AxisSet copied = all_axes() & ~program_.tensor(loss).sharding.split_axes();
    seed.fill.constant = copies ? 1.0 / program_.ways(copied) : 1.0;
    Sharding sharding = program_.tensor(loss).sharding;
    sharding.unreduced = 0;
    const int ones = copy_tensor(loss, sharding);
    program_.tensors[at(ones)].is_given = program_.tensors[at(ones)].is_gradient = true;
    out_.given.push_back({ones, seed.given, seed.fill, {}});
    builder.begin_block("program", program::Phase::backward, -1, 1);
    const lower::Builder::Seed seeds[] = {{loss, ones}};
    builder.backward(program_.blocks[0].first, program_.blocks[0].last, seeds);
    for (const GivenTensor& given : std::vector(out_.given)) {
      if (given.kind != Value::Given::input || builder.gradient(given.tensor) < 0) continue;
      builder.settle_gradient(given.tensor);
      out_.gradients.push_back({"d" + std::string(program_.tensor(given.tensor).name), builder.gradient(given.tensor)});
    }
    builder.end_block();
    while (out_.origins.size() < program_.steps.size())
      note(program::is_movement(program_.steps[out_.origins.size()].op));
  }

  const Source& source_;
  Compiled& out_;
  const Graph& graph_;
  program::Program& program_;
  const plan::Prices& prices_;
  plan::BoundedPlanner planner_;
  std::vector<int> tensors_;  ///< by value
  std::map<int, std::vector<std::pair<Sharding, int>>> moved_;
  std::map<AxisSet, int> device_dims_;
  int line_ = 0;
  double held_ = 0, flops_ = 0;
  std::size_t counted_tensors_ = 0, counted_steps_ = 0;
};

}  // namespace

program::Tensor listed_tensor(const Compiled& compiled, int id) {
  const program::ProgramTensor& tensor = compiled.program.tensor(id);
  program::Tensor out = program::to_tensor(compiled.program, tensor);
  const std::size_t first_device_dim = model::logical_dims + compiled.graph.dim_names.size();
  if (tensor.rank == 0 || static_cast<std::size_t>(tensor.dims[0].dim) < first_device_dim) return out;
  out.dims.erase(out.dims.begin());
  std::rotate(out.sharding.dims.begin(), out.sharding.dims.begin() + 1, out.sharding.dims.end());
  out.sharding.dims.back() = {};
  return out;
}

std::string listed_text(const Compiled& compiled, const program::Step& step) {
  std::string summed;
  const auto has = [](const program::Tensor& tensor, const program::Dimension& dim) {
    return std::any_of(tensor.dims.begin(), tensor.dims.end(),
                       [&](const program::Dimension& other) { return other.name == dim.name; });
  };
  const auto tensor = [&](int id) { return listed_tensor(compiled, id); };
  if (step.op == Op::product)
    for (const program::Dimension& dim : tensor(step.in[0]).dims)
      if (has(tensor(step.in[1]), dim) && !has(tensor(step.out[0]), dim)) summed += dim.name;
  return program::step_text(compiled.program.mesh, tensor, summed, step);
}

program::Mesh mesh_of(const Syntax& syntax) {
  program::Mesh mesh;
  for (const SizedName& axis : syntax.mesh) mesh.axes.push_back({axis.name.text, axis.size});
  return mesh;
}

Result<Compiled> compile(const Source& source, const Syntax& syntax, Reading reading, const plan::Prices& prices,
                         bool backward) {
  Compiled out;
  ASSAY_SET(out.graph, graph_of(source, syntax, reading));
  if (backward && out.graph.loss < 0 && !out.graph.results.empty()) out.graph.loss = out.graph.results.back();
  Choices choices;
  if (out.graph.mode != Mode::manual) ASSAY_SET(choices, choose_shardings(source, out.graph, prices));
  ASSAY_CHECK(Lowering(source, out, prices).run(choices));
  return out;
}

}  // namespace assay::language

#include "assay/profile/hlo/partition/graph.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <unordered_map>

#include "assay/base/assign.h"
#include "assay/profile/hlo/trips.h"

namespace assay::hlo {
namespace {

using Leaves = std::vector<int>;
constexpr std::size_t most_operations = 500'000;

/// Runs over calls as a machine would, and writes down each operation where it happens.
class GraphWriter {
 public:
  GraphWriter(const Module& module, const PartitionMesh& mesh) : module_(module), mesh_(mesh) {}

  Result<PartitionGraph> write() {
    const Computation& entry = *module_.entry_computation();
    graph_.regions.emplace_back();
    Scope scope{&entry, {}, {}, nullptr, 0};
    for (const Instruction& instruction : entry.instructions)
      if (instruction.opcode == "parameter") {
        const int number = static_cast<int>(number_list(instruction.argument).front());
        scope.arguments.resize(std::max(scope.arguments.size(), at(number) + 1));
        scope.arguments[at(number)] =
            add(0, PartitionOperation::Kind::parameter, instruction, {}, {instruction.shape}, 0);
        graph_.operations.back().number = number;
      }
    ASSAY_SET(graph_.regions[0].results, run(scope, 0));
    return std::move(graph_);
  }

 private:
  /// A computation that is being followed.
  struct Scope {
    const Computation* computation;
    std::vector<Leaves> arguments;  ///< by the number of the parameter
    std::vector<Leaves> leaves;     ///< by instruction
    const Scope* outer;             ///< whose values it may use
    program::AxisSet manual;
    mutable std::unordered_map<std::string_view, std::size_t> names = {};  ///< of instructions, made when a region asks
  };

  Leaves add(int region, PartitionOperation::Kind kind, const Instruction& instruction, Leaves in,
             const std::vector<Shape>& shapes, program::AxisSet manual) {
    PartitionOperation operation{kind, &instruction, std::move(in), {}, {}, -1, 1.0};
    const int number = static_cast<int>(graph_.operations.size());
    for (const Shape& shape : shapes) {
      operation.out.push_back(static_cast<int>(graph_.values.size()));
      graph_.values.push_back({shape, number, manual});
    }
    graph_.regions[at(region)].operations.push_back(number);
    graph_.operations.push_back(std::move(operation));
    return graph_.operations.back().out;
  }

  static void leaf_shapes(const Shape& shape, std::vector<Shape>& out) {
    if (!shape.is_tuple) return out.push_back(shape);
    for (const Shape& member : shape.members) leaf_shapes(member, out);
  }
  static std::vector<Shape> leaf_shapes(const Shape& shape) {
    std::vector<Shape> out;
    leaf_shapes(shape, out);
    return out;
  }

  /// A value of a region around this one.
  Result<Leaves> captured(const Scope& scope, const Instruction& instruction) {
    for (const Scope* outer = scope.outer; outer; outer = outer->outer) {
      const auto& instructions = outer->computation->instructions;
      if (outer->names.empty())
        for (std::size_t i = 0; i < instructions.size(); ++i) outer->names[instructions[i].name] = i;
      const auto known = outer->names.find(instruction.name);
      if (known != outer->names.end() && known->second < outer->leaves.size()) return outer->leaves[known->second];
    }
    return fail(module_.where(instruction), fmt::format("%{} is not known here", instruction.name),
                "a region uses values of the regions around it");
  }

  Result<Leaves> run(Scope& scope, int region) {
    const auto& instructions = scope.computation->instructions;
    scope.leaves.reserve(instructions.size());
    for (const Instruction& instruction : instructions) {
      if (graph_.operations.size() > most_operations)
        return fail(module_.where(instruction), "the program is too large once its calls are written out",
                    fmt::format("at most {} operations are planned", most_operations));
      ASSAY_TRY(leaves, follow(scope, instruction, region));
      scope.leaves.push_back(std::move(leaves));
    }
    return scope.leaves[scope.computation->root];
  }

  Result<Leaves> follow(Scope& scope, const Instruction& instruction, int region) {
    Leaves in;
    for (const std::uint32_t operand : instruction.operands)
      in.insert(in.end(), scope.leaves[operand].begin(), scope.leaves[operand].end());
    const std::string_view opcode = instruction.opcode;
    if (opcode == "parameter") {
      const auto number = number_list(instruction.argument);
      if (number.size() == 1 && number.front() >= 0 && at(static_cast<int>(number.front())) < scope.arguments.size())
        return scope.arguments[at(static_cast<int>(number.front()))];
      return fail(module_.where(instruction), "a parameter that nobody gives", "calls give all parameters");
    }
    if (opcode == "tuple") return in;
    if (opcode == "get-tuple-element") return member(scope, instruction);
    if (opcode == "captured") return captured(scope, instruction);
    program::AxisSet manual = scope.manual;
    for (const int value : in) manual |= graph_.values[at(value)].manual;
    using Kind = PartitionOperation::Kind;
    const bool cuts = instruction.calls(CallKind::to_shards) || instruction.calls(CallKind::to_whole);
    if (cuts && in.size() != 1)
      return fail(module_.where(instruction), "this call takes one array", "write the whole module");
    if (cuts) ASSAY_CHECK(keeps_rank(instruction, in.front(), instruction.shape));
    const auto all_axes = static_cast<program::AxisSet>((program::AxisSet{1} << mesh_.mesh.axes.size()) - 1);
    if (instruction.calls(CallKind::to_shards))
      return add(region, Kind::enter, instruction, in, {instruction.shape}, all_axes);
    if (instruction.calls(CallKind::to_whole)) return add(region, Kind::leave, instruction, in, {instruction.shape}, 0);
    if (instruction.calls(CallKind::sharding)) ASSAY_CHECK(keeps_shapes(instruction, in, {instruction.shape}));
    if (opcode == "optimization-barrier") ASSAY_CHECK(keeps_shapes(instruction, in, leaf_shapes(instruction.shape)));
    if (instruction.calls(CallKind::sharding))
      return add(region, Kind::constraint, instruction, in, {instruction.shape}, manual);
    if (opcode == "call" && instruction.callees.size() == 1) return call(scope, instruction, in, region, manual);
    if (opcode == "while" && instruction.callees.size() == 2) return loop(scope, instruction, in, region, manual);
    if (opcode == "conditional") return branch(scope, instruction, in, region, manual);
    return add(region, Kind::plain, instruction, std::move(in), leaf_shapes(instruction.shape), manual);
  }

  Result<Leaves> member(const Scope& scope, const Instruction& instruction) {
    const auto index = number_list(instruction.attribute("index"));
    const Shape& tuple = scope.computation->instructions[instruction.operands.front()].shape;
    const Leaves& all = scope.leaves[instruction.operands.front()];
    if (index.size() != 1 || index.front() < 0 || at(static_cast<int>(index.front())) >= tuple.members.size())
      return fail(module_.where(instruction), "a tuple has no such member", "members count from 0");
    std::size_t first = 0;
    const auto which = static_cast<std::size_t>(index.front());
    for (std::size_t i = 0; i < which; ++i) first += leaf_shapes(tuple.members[i]).size();
    const std::size_t count = leaf_shapes(tuple.members[which]).size();
    if (first + count > all.size())
      return fail(module_.where(instruction), "a tuple has fewer members than its type", "write the whole module");
    return Leaves(all.begin() + static_cast<std::ptrdiff_t>(first),
                  all.begin() + static_cast<std::ptrdiff_t>(first + count));
  }

  /// An error unless values have these shapes.
  Result<void> keeps_shapes(const Instruction& instruction, const Leaves& values,
                            const std::vector<Shape>& shapes) const {
    bool same = values.size() == shapes.size();
    for (std::size_t i = 0; same && i < values.size(); ++i)
      same = graph_.values[at(values[i])].shape.dims == shapes[i].dims;
    if (same) return {};
    return fail(module_.where(instruction), "values that pass through have another number or other sizes behind it",
                "what enters and what leaves have the same types");
  }
  /// An error unless both have the same number of dimensions.
  Result<void> keeps_rank(const Instruction& instruction, int value, const Shape& shape) const {
    if (graph_.values[at(value)].shape.dims.size() == shape.dims.size()) return {};
    return fail(module_.where(instruction),
                "a device's part of an array has another number of dimensions than the array",
                "a part has the dimensions of the whole, with smaller sizes");
  }

  Result<Leaves> call(Scope& scope, const Instruction& instruction, const Leaves& in, int region,
                      program::AxisSet manual) {
    const Computation& callee = module_.computations[instruction.callees.front()];
    const std::string_view names = instruction.attribute("manual_axes");
    Scope inner{&callee, {}, {}, &scope, manual};
    if (names.empty()) {
      std::size_t next = 0;
      for (const std::uint32_t operand : instruction.operands) {
        const std::size_t count = scope.leaves[operand].size();
        inner.arguments.emplace_back(in.begin() + static_cast<std::ptrdiff_t>(next),
                                     in.begin() + static_cast<std::ptrdiff_t>(next + count));
        next += count;
      }
      if (!callee.name.starts_with("region.")) inner.outer = nullptr;
      return run(inner, region);
    }
    using Kind = PartitionOperation::Kind;
    inner.manual |= mesh_.axes_of(names);
    for (const Instruction& parameter : callee.instructions)
      if (parameter.opcode == "parameter") {
        const std::size_t number = inner.arguments.size();
        if (number >= in.size())
          return fail(module_.where(instruction), "a manual computation has more parameters than operands",
                      "its region names one value for each operand");
        ASSAY_CHECK(keeps_rank(instruction, in[number], parameter.shape));
        inner.arguments.push_back(add(region, Kind::enter, instruction, {in[number]}, {parameter.shape}, inner.manual));
        graph_.operations.back().number = static_cast<int>(number);
      }
    ASSAY_TRY(results, run(inner, region));
    const std::vector<Shape> shapes = leaf_shapes(instruction.shape);
    if (shapes.size() != results.size())
      return fail(module_.where(instruction), "a manual computation returns another number of values than it has types",
                  "its region returns one value for each result");
    Leaves out;
    for (std::size_t i = 0; i < shapes.size(); ++i) {
      ASSAY_CHECK(keeps_rank(instruction, results[i], shapes[i]));
      out.push_back(add(region, Kind::leave, instruction, {results[i]}, {shapes[i]}, manual).front());
      graph_.operations.back().number = static_cast<int>(i);
    }
    return out;
  }

  /// A region of a loop or a branch, whose parameter is a tuple of values of its own.
  Result<int> region_of(const Scope& scope, std::uint32_t callee, const std::vector<Shape>& shapes,
                        const Instruction& instruction, program::AxisSet manual) {
    const int region = static_cast<int>(graph_.regions.size());
    graph_.regions.emplace_back();
    Scope inner{&module_.computations[callee], {}, {}, &scope, manual};
    if (!shapes.empty()) {
      inner.arguments.push_back(add(region, PartitionOperation::Kind::parameter, instruction, {}, shapes, manual));
      graph_.regions[at(region)].parameters = inner.arguments.front();
    }
    ASSAY_SET(graph_.regions[at(region)].results, run(inner, region));
    return region;
  }

  Result<Leaves> loop(Scope& scope, const Instruction& instruction, const Leaves& in, int region,
                      program::AxisSet manual) {
    std::vector<Shape> shapes;
    for (const int value : in) shapes.push_back(graph_.values[at(value)].shape);
    ASSAY_TRY(condition, region_of(scope, instruction.callee("condition"), shapes, instruction, manual));
    ASSAY_TRY(body, region_of(scope, instruction.callee("body"), shapes, instruction, manual));
    ASSAY_CHECK(keeps_shapes(instruction, graph_.regions[at(body)].results, shapes));
    if (graph_.regions[at(condition)].results.size() != 1)
      return fail(module_.where(instruction), "the condition of a loop returns several values",
                  "it returns one predicate");
    const Leaves out = add(region, PartitionOperation::Kind::loop, instruction, in, shapes, manual);
    graph_.operations.back().regions = {condition, body};
    graph_.operations.back().trips = trip_count(module_, *scope.computation, instruction).value_or(1.0);
    return out;
  }

  Result<Leaves> branch(Scope& scope, const Instruction& instruction, const Leaves& in, int region,
                        program::AxisSet manual) {
    const std::vector<Shape> shapes = leaf_shapes(instruction.shape);
    std::vector<int> regions;
    for (const std::uint32_t callee : instruction.callees) {
      ASSAY_TRY(inner, region_of(scope, callee, {}, instruction, manual));
      ASSAY_CHECK(keeps_shapes(instruction, graph_.regions[at(inner)].results, shapes));
      regions.push_back(inner);
    }
    if (in.empty() || regions.empty())
      return fail(module_.where(instruction), "a conditional has an index and branches", "write the whole module");
    const Leaves out = add(region, PartitionOperation::Kind::branch, instruction, in, shapes, manual);
    graph_.operations.back().regions = std::move(regions);
    return out;
  }

  const Module& module_;
  const PartitionMesh& mesh_;
  PartitionGraph graph_;
};

}  // namespace

Result<std::vector<Sharding>> sharding_list(const Module& module, const Instruction& instruction,
                                            std::string_view key) {
  std::vector<Sharding> out;
  const std::string_view text = instruction.attribute(key);
  for (std::size_t i = text.find("<@"); i != std::string_view::npos; i = text.find("<@", i + 1)) {
    auto read = parse_sdy_sharding(text.substr(i), module.mesh, "");
    if (!read) return fail(module.where(instruction), read.error().what, read.error().hint);
    out.push_back(std::move(*read));
  }
  return out;
}

program::AxisList without_axes(program::AxisList list, program::AxisSet gone) {
  program::AxisList out;
  for (const int axis : list.axes())
    if (!(gone & program::axis_bit(axis))) out = out.pushed(axis);
  return out;
}

program::AxisList PartitionMesh::covered(const StridedAxis& step) const {
  program::AxisList out;
  for (std::size_t i = 0; i < mesh.axes.size(); ++i)
    if (mesh.axes[i].size > 1 && strides[i] >= step.stride && strides[i] * mesh.axes[i].size <= step.stride * step.size)
      out = out.pushed(static_cast<int>(i));
  return out;
}

program::AxisSet PartitionMesh::axes_of(std::string_view names) const {
  program::AxisSet out = 0;
  for (std::size_t i = 0; i < named.size(); ++i)
    if (names.find(fmt::format("\"{}\"", named[i].first)) != std::string_view::npos) out |= parts[i];
  return out;
}

program::Sharding placed_sharding(const PartitionMesh& mesh, const Sharding& sharding, std::size_t rank) {
  program::Sharding out;
  for (std::size_t d = 0; d < std::min({sharding.tiles.size(), rank, program::max_tensor_rank}); ++d) {
    for (const StridedAxis& step : steps_of(sharding, d))
      for (const int axis : mesh.covered(step).axes()) out.dims[d] = out.dims[d].pushed(axis);
  }
  return out;
}

Result<PartitionMesh> partition_mesh(const Module& module) {
  std::set<std::int64_t> cuts;
  std::int64_t devices = 1;
  for (const NamedAxis& axis : module.mesh) devices *= axis.second;
  devices = std::max(devices, module.devices());
  for (std::int64_t stride = devices; const NamedAxis& axis : module.mesh) {
    cuts.insert(stride);
    stride /= axis.second;
    cuts.insert(stride);
  }
  for (const Computation& computation : module.computations)
    for (const Instruction& instruction : computation.instructions) {
      ASSAY_TRY(stated, stated_sharding(module, instruction.attribute("sharding"),
                                        instruction.attribute("frontend_attributes"), instruction));
      if (stated) add_cuts(*stated, cuts);
      for (const std::string_view key : {"in_shardings", "out_shardings"}) {
        ASSAY_TRY(list, sharding_list(module, instruction, key));
        for (const Sharding& one : list) add_cuts(one, cuts);
      }
    }
  PartitionMesh out;
  out.named = module.mesh;
  const std::vector<ProgramAxis> axes = axes_between(cuts, devices);
  if (axes.size() > static_cast<std::size_t>(program::max_mesh_axes))
    return fail(module.file, fmt::format("the shardings cut the mesh into {} axes", axes.size()),
                fmt::format("at most {} are planned", program::max_mesh_axes));
  for (const ProgramAxis& axis : axes) {
    out.mesh.axes.push_back({axis.name, axis.size});
    out.strides.push_back(axis.stride);
  }
  for (std::int64_t step = devices; const NamedAxis& axis : module.mesh) {
    step /= axis.second;
    const program::AxisList list = out.covered({axis.second, step});
    out.parts.push_back(list.set());
    std::size_t part = 0;
    for (const int i : list.axes())
      out.mesh.axes[at(i)].name = list.axes().size() == 1 ? axis.first : program::part_name(axis.first, ++part);
  }
  return out;
}

Result<PartitionGraph> partition_graph(const Module& module, const PartitionMesh& mesh) {
  if (module.entry == no_computation)
    return fail(module.file, "the text ends before the program does", "write the whole module");
  return GraphWriter(module, mesh).write();
}

}  // namespace assay::hlo

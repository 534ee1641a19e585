#include "assay/profile/hlo/partition/partition.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "assay/profile/hlo/partition/pricing.h"
#include "assay/profile/hlo/work.h"

namespace assay::hlo {
namespace {

using program::AxisList;
using program::AxisSet;
using Split = program::Sharding;  // of a value; of an operation see Division

class PartitionPlanner {
 public:
  PartitionPlanner(const Module& module, PartitionPricing& pricing, PartitionHints hints, const PartitionPin* pin)
      : module_(module),
        pricing_(pricing),
        graph_(pricing.graph()),
        mesh_(pricing.mesh()),
        rows_(pricing.rows()),
        choice_(pricing, std::move(hints)),
        pin_(pin) {}

  Result<PartitionedProgram> run() {
    out_.mesh = mesh_;
    out_.moved.assign(graph_.values.size(), 0.0);
    Module& made = out_.module;
    made.file = module_.file;
    made.text = module_.text;
    made.name = module_.name;
    made.is_stablehlo = true;
    made.partitions = mesh_.mesh.devices();
    made.aliases = module_.aliases;
    made.mesh = module_.mesh;
    open_.push_back({0, {}});
    plan_region(0);
    const PartitionRegion& program = graph_.regions.front();
    std::vector<std::uint32_t> results;
    for (std::size_t i = 0; i < program.results.size(); ++i) {
      const int value = program.results[i];
      Split wanted = hints_.results[i].value_or(hints_.shardings[at(value)]);
      wanted.unreduced = 0;
      results.push_back(needed(value, wanted));
      out_.results.push_back(divided(value, wanted));
    }
    out_.steps = std::move(open_.back().steps);
    Computation& entry = open_.back().computation;
    entry.name = "main";
    entry.root = results.size() == 1 ? results.front() : add_tuple(results);
    made.result = entry.instructions[entry.root].shape;
    made.entry = static_cast<std::uint32_t>(made.computations.size());
    made.computations.push_back(std::move(entry));
    out_.homes = hints_.shardings;
    return std::move(out_);
  }

 private:
  /// A computation that is being written, and the values that got a form in it.
  struct Open {
    int region;
    Computation computation;
    double times = 1.0;  ///< that it runs
    std::vector<int> values = {};
    std::vector<PartitionStep> steps = {};
  };
  PartitionStep& step(PartitionStep step) { return open_.back().steps.emplace_back(std::move(step)); }

  // --- writing instructions
  Computation& here() { return open_.back().computation; }
  std::string_view made(std::string text) { return out_.module.keep(std::move(text)); }

  std::uint32_t add(Instruction instruction) {
    here().instructions.push_back(std::move(instruction));
    return static_cast<std::uint32_t>(here().instructions.size() - 1);
  }
  std::uint32_t add_tuple(const std::vector<std::uint32_t>& members) {
    return add(tuple_of(here(), members, made(fmt::format("tuple.{}", ++count_))));
  }
  std::uint32_t add_member(std::uint32_t tuple, std::size_t index) {
    return add(member_of(here(), tuple, made(std::to_string(index)), made(fmt::format("member.{}", ++count_))));
  }

  /// Groups along axes, as HLO writes them with the names of the mesh.
  std::string_view groups(AxisSet axes) {
    const auto [known, is_new] = groups_.try_emplace(axes);
    if (!is_new) return known->second;
    std::string mesh, inside;
    for (std::size_t i = 0; i < mesh_.mesh.axes.size(); ++i) {
      mesh += fmt::format("{}'{}'={}", i > 0 ? "," : "", mesh_.mesh.axes[i].name, mesh_.mesh.axes[i].size);
      if (axes & program::axis_bit(static_cast<int>(i)))
        inside += fmt::format("{}'{}'", inside.empty() ? "" : ",", mesh_.mesh.axes[i].name);
    }
    known->second = made(fmt::format("mesh[{}] {{{}}}", mesh, inside));
    return known->second;
  }

  static std::string_view opcode_of(program::Collective kind) {
    return kind == program::Collective::permute ? "collective-permute" : program::name(kind);
  }

  /// Moves a value along a route; each step is an instruction.
  std::uint32_t travel(int value, const PartitionForm& from, const Split& to) {
    std::uint32_t now = from.instruction;
    if (from.sharding == to) return now;
    const Route& way = pricing_.route(value, from.sharding, to);
    out_.cost += open_.back().times * way.cost;
    out_.moved[at(value)] += open_.back().times * way.cost;
    for (std::size_t i = 0; i < way.steps.size(); ++i) {
      const program::Step& step = way.steps[i];
      Instruction move;
      const bool moves = program::is_collective(step.op);
      move.opcode = moves ? opcode_of(step.collective) : "dynamic-slice";
      move.name = made(fmt::format("{}.{}", move.opcode, ++count_));
      move.operands = {now};
      move.shape = pricing_.local_shape(graph_.shape(value), way.after[i]);
      move.offset = offset_;
      if (moves) move.attributes.emplace_back("replica_groups", groups(step.axes));
      move.attributes.emplace_back("value", graph_.operations[at(graph_.values[at(value)].operation)].at->name);
      now = add(std::move(move));
      keep(value, way.after[i], now);
      this->step({.kind = PartitionStep::Kind::move,
                  .value = value,
                  .from = i == 0 ? from.sharding : way.after[i - 1],
                  .to = way.after[i]});
    }
    return now;
  }

  /// A form in this computation; one of a computation around it is captured.
  PartitionForm brought(int value, const PartitionForm& form) {
    if (form.region == open_.back().region) return form;
    Instruction copy;
    copy.opcode = "captured";
    copy.name = made(fmt::format("captured.{}", ++count_));
    copy.shape = pricing_.local_shape(graph_.shape(value), form.sharding);
    return keep(value, form.sharding, add(std::move(copy)));
  }

  /// The instruction of a value in a sharding.
  std::uint32_t needed(int value, const Split& wanted) {
    constexpr double elsewhere = 1e-12;  // between equal costs, a form of this computation
    const std::vector<PartitionForm>& forms = forms_[at(value)];
    std::size_t best = forms.size();
    double least = impossible;
    for (std::size_t i = 0; i < forms.size(); ++i) {
      const double cost = pricing_.move_cost(value, forms[i].sharding, wanted) +
                          (forms[i].region == open_.back().region ? 0.0 : elsewhere);
      if (cost < least) {
        least = cost;
        best = i;
      }
    }
    if (choice_.is_cheap(value) &&
        !(best < forms.size() && forms[best].region == open_.back().region && forms[best].sharding == wanted)) {
      remake(graph_.values[at(value)].operation, wanted);
      return forms_[at(value)].back().instruction;
    }
    if (best == forms.size())
      throw InternalError(
          fmt::format("{}: a value has no form", graph_.operations[at(graph_.values[at(value)].operation)].at->name));
    const PartitionForm form = forms[best];
    return travel(value, brought(value, form), wanted);
  }

  /// Makes a cheap value in the sharding that somebody needs.
  void remake(int number, const Split& wanted) {
    const PartitionRows& rows = rows_[at(number)];
    Division division = pricing_.empty_division(number);
    for (std::size_t r = 0; r < rows.rows.size(); ++r)
      if (rows.rows[r].result >= 0 && at(rows.rows[r].result) < program::max_tensor_rank)
        division.rows[r] = wanted.dims[at(rows.rows[r].result)];
    write(number, division);
  }

  // --- operations
  void plan_region(int region) {
    for (const int number : graph_.regions[at(region)].operations) {
      const PartitionOperation& of = graph_.operations[at(number)];
      offset_ = of.at->offset;
      using Kind = PartitionOperation::Kind;
      switch (of.kind) {
        case Kind::parameter:
          if (of.at->opcode == "parameter") program_parameter(of);
          break;
        case Kind::constraint:
          pass(of, 0, choice_.home(of.out.front()));
          break;
        case Kind::enter:
          enter(of);
          break;
        case Kind::leave:
          leave(of);
          break;
        case Kind::loop:
          loop(number);
          break;
        case Kind::branch:
          branch(number);
          break;
        case Kind::plain:
          if (choice_.remakes(number)) break;  // where somebody needs it
          if (of.at->opcode == "optimization-barrier")
            for (std::size_t i = 0; i < std::min(of.in.size(), of.out.size()); ++i)
              pass(of, i, choice_.home(of.out[i]));
          else
            write(number, choice_.chosen(number));
      }
    }
  }

  DividedArray divided(int value, const Split& sharding) const {
    const Instruction& instruction = *graph_.operations[at(graph_.values[at(value)].operation)].at;
    return {std::string(instruction.name), graph_.shape(value), sharding, instruction.offset};
  }

  PartitionForm keep(int value, const Split& sharding, std::uint32_t instruction) {
    open_.back().values.push_back(value);
    return forms_[at(value)].emplace_back(PartitionForm{open_.back().region, sharding, instruction});
  }

  void program_parameter(const PartitionOperation& of) {
    const int value = of.out.front();
    Instruction parameter = *of.at;
    const Split sharding = choice_.home(value);
    parameter.shape = pricing_.local_shape(graph_.shape(value), sharding);
    out_.inputs.resize(std::max(out_.inputs.size(), at(of.number) + 1));
    out_.module.parameters.resize(out_.inputs.size());
    out_.module.parameters[at(of.number)] = parameter.shape;
    out_.inputs[at(of.number)] = divided(value, sharding);
    keep(value, sharding, add(std::move(parameter)));
    step({.kind = PartitionStep::Kind::parameter, .operation = of.number, .value = value, .to = sharding});
  }

  /// A result that is its operand, in a sharding.
  void pass(const PartitionOperation& of, std::size_t i, const Split& sharding) {
    keep(of.out[i], sharding, needed(of.in[i], sharding));
    rename(of.in[i], sharding, of.out[i], sharding);
  }
  void rename(int source, const Split& from, int value, const Split& to) {
    step({.kind = PartitionStep::Kind::rename, .source = source, .value = value, .from = from, .to = to});
  }

  /// From the whole array to the part of a device along manual axes: what the result is divided by, and those axes.
  void enter(const PartitionOperation& of) {
    const int from = of.in.front(), to = of.out.front();
    Split outside = hints_.shardings[at(from)];
    if (!of.at->attribute("manual_axes").empty()) {
      const auto list = sharding_list(module_, *of.at, "in_shardings");
      if (list && at(of.number) < list->size())
        outside = placed_sharding(mesh_, (*list)[at(of.number)], graph_.shape(from).dims.size());
    }
    outside.unreduced = 0;
    const std::uint32_t instruction = needed(from, outside);
    Split inside = outside;
    for (AxisList& list : inside.dims) list = without_axes(list, graph_.values[at(to)].manual);
    keep(to, inside, instruction);
    rename(from, outside, to, inside);
  }
  void leave(const PartitionOperation& of) {
    const int from = of.in.front(), to = of.out.front();
    Split inside = forms_[at(from)].empty() ? Split{} : forms_[at(from)].front().sharding;
    inside.unreduced = 0;
    const std::uint32_t instruction = needed(from, inside);
    Split outside = hints_.shardings[at(to)];
    outside.unreduced = 0;
    for (std::size_t d = 0; d < program::max_tensor_rank; ++d)
      for (const int axis : inside.dims[d].axes())
        if (!outside.dims[d].has(axis)) outside.dims[d] = outside.dims[d].pushed(axis);
    keep(to, outside, instruction);
    rename(from, inside, to, outside);
  }

  /// Plans a region in a computation of its own; its results have these shardings.
  std::uint32_t plan_inside(int region, const std::vector<Split>& parameters, const std::vector<Split>& results,
                            std::string name, double trips = 1.0) {
    open_.push_back({region, {}, open_.back().times * trips});
    const PartitionRegion& inside = graph_.regions[at(region)];
    if (!inside.parameters.empty()) {
      Instruction parameter;
      parameter.opcode = "parameter";
      parameter.name = "carried";
      parameter.argument = "0";
      parameter.shape.is_tuple = true;
      for (std::size_t i = 0; i < inside.parameters.size(); ++i)
        parameter.shape.members.push_back(pricing_.local_shape(graph_.shape(inside.parameters[i]), parameters[i]));
      const std::uint32_t tuple = add(std::move(parameter));
      for (std::size_t i = 0; i < inside.parameters.size(); ++i)
        keep(inside.parameters[i], parameters[i], add_member(tuple, i));
    }
    plan_region(region);
    std::vector<std::uint32_t> made_results;
    for (std::size_t i = 0; i < inside.results.size(); ++i)
      made_results.push_back(needed(inside.results[i], results[i]));
    const Shape* const only = made_results.size() == 1 ? &graph_.shape(inside.results.front()) : nullptr;
    const bool tests = only && only->element && only->element->name == "pred" && only->dims.empty();
    const bool single = only && (inside.parameters.empty() || tests);
    here().root = single ? made_results.front() : add_tuple(made_results);
    here().name = made(std::move(name));
    for (const int value : open_.back().values)  // what was made here is not there outside
      std::erase_if(forms_[at(value)], [&](const PartitionForm& form) { return form.region == region; });
    out_.module.computations.push_back(std::move(here()));
    inside_.push_back(std::move(open_.back().steps));
    open_.pop_back();
    return static_cast<std::uint32_t>(out_.module.computations.size() - 1);
  }

  void loop(int number) {
    const PartitionOperation& of = graph_.operations[at(number)];
    std::vector<Split> carried;
    std::vector<std::uint32_t> initial;
    for (std::size_t i = 0; i < of.in.size(); ++i) {
      carried.push_back(choice_.home(graph_.regions[at(of.regions[1])].parameters[i]));
      initial.push_back(needed(of.in[i], carried.back()));
    }
    Instruction loop;
    loop.opcode = "while";
    loop.name = of.at->name;
    loop.offset = of.at->offset;
    loop.attributes = of.at->attributes;
    loop.operands = {add_tuple(initial)};
    const std::vector<Split> test{Split{}};
    loop.callees = {
        plan_inside(of.regions[0], carried, test, fmt::format("{}.condition.{}", loop.name, ++count_)),
        plan_inside(of.regions[1], carried, carried, fmt::format("{}.body.{}", loop.name, ++count_), of.trips)};
    loop.callee_keys = {"condition", "body"};
    loop.shape = here().instructions[loop.operands.front()].shape;
    const std::uint32_t all = add(std::move(loop));
    for (std::size_t i = 0; i < of.out.size(); ++i) keep(of.out[i], carried[i], add_member(all, i));
    add_inside(PartitionStep::Kind::loop, number, carried);
  }
  /// The step of an operation that runs the regions which were planned last.
  void add_inside(PartitionStep::Kind kind, int number, const std::vector<Split>& carried) {
    const auto first = inside_.end() - static_cast<std::ptrdiff_t>(graph_.operations[at(number)].regions.size());
    PartitionStep out{.kind = kind, .operation = number, .carried = carried};
    out.inside.assign(std::make_move_iterator(first), std::make_move_iterator(inside_.end()));
    inside_.erase(first, inside_.end());
    step(std::move(out));
  }

  void branch(int number) {
    const PartitionOperation& of = graph_.operations[at(number)];
    Instruction choice;
    choice.opcode = "conditional";
    choice.name = of.at->name;
    choice.offset = of.at->offset;
    choice.operands = {needed(of.in.front(), Split{})};
    std::vector<Split> results;
    std::vector<Shape> shapes;
    for (const int value : of.out) {
      results.push_back(choice_.home(value));
      shapes.push_back(pricing_.local_shape(graph_.shape(value), results.back()));
    }
    for (const int region : of.regions) {
      choice.callees.push_back(plan_inside(region, {}, results, fmt::format("branch.{}", ++count_)));
      choice.callee_keys.push_back("branch_computations");
    }
    add_inside(PartitionStep::Kind::branch, number, results);
    add_making(of, results, shapes, std::move(choice));
  }

  /// Adds an instruction that makes the results of an operation; several are members of one.
  void add_making(const PartitionOperation& of, const std::vector<Split>& results, const std::vector<Shape>& shapes,
                  Instruction instruction) {
    if (shapes.size() == 1) {
      instruction.shape = shapes.front();
      keep(of.out.front(), results.front(), add(std::move(instruction)));
      return;
    }
    instruction.shape.is_tuple = true;
    instruction.shape.members = shapes;
    const std::uint32_t all = add(std::move(instruction));
    for (std::size_t i = 0; i < of.out.size(); ++i) keep(of.out[i], results[i], add_member(all, i));
  }

  /// Moves the operands and writes the operation as one device runs it.
  void write(int number, const Division& division) {
    const PartitionOperation& of = graph_.operations[at(number)];
    Instruction copy = *of.at;
    copy.operands = copy.callees = {};
    copy.callee_keys = {};
    for (std::size_t k = 0; k < of.in.size(); ++k)
      copy.operands.push_back(needed(of.in[k], pricing_.operand_split(number, division, k)));
    if (const double halo = pricing_.halo_bytes(number, division); halo > 0.0) add_halo(number, division, copy);
    const Split made_split = pricing_.result_split(number, division);
    std::vector<Shape> shapes;
    for (const int value : of.out) shapes.push_back(pricing_.local_shape(graph_.shape(value), made_split));
    note(number, made_split);
    step({.kind = PartitionStep::Kind::compute, .operation = number, .to = made_split, .division = division});
    out_.cost += open_.back().times * pricing_.flop_cost(number, division);
    add_making(of, std::vector<Split>(shapes.size(), made_split), shapes, std::move(copy));
    const bool pinned = pin_ && pin_->at == of.at && of.out.size() == 1;
    if (!pinned && (made_split.unreduced == 0 || rows_[at(number)].adds)) return;
    for (const int value : of.out) {  // partial maxima end at once
      Split ended = pinned ? pin_->sharding : made_split;
      ended.unreduced = 0;
      const std::uint32_t instruction = needed(value, ended);
      forms_[at(value)] = {{open_.back().region, ended, instruction}};
    }
  }

  void add_halo(int number, const Division& division, const Instruction& reader) {
    const auto& rows = rows_[at(number)].rows;
    for (std::size_t r = 0; r < rows.size(); ++r) {
      if (rows[r].halo <= 1 || division.rows[r].empty()) continue;
      Instruction send;
      send.opcode = "collective-permute";
      send.name = made(fmt::format("halo.{}", ++count_));
      send.shape = here().instructions[reader.operands.front()].shape;
      send.shape.dims[at(rows[r].operand[0])] = rows[r].halo - 1;
      Instruction edge;
      edge.opcode = "slice";
      edge.name = made(fmt::format("edge.{}", count_));
      edge.operands = {reader.operands.front()};
      edge.shape = send.shape;
      edge.offset = send.offset = reader.offset;
      send.operands = {add(std::move(edge))};
      send.attributes.emplace_back("replica_groups", groups(division.rows[r].set()));
      send.attributes.emplace_back("value", reader.name);
      add(std::move(send));
    }
  }

  /// What the answer says of an operation.
  void note(int number, const Split& sharding) {
    const PartitionOperation& of = graph_.operations[at(number)];
    if (of.out.empty()) return;
    const std::string_view opcode = of.at->opcode;
    if (opcode == "dot" || opcode == "convolution" || opcode == "ragged-dot" || of.at->calls(CallKind::product))
      out_.products.push_back(divided(of.out.front(), sharding));
    if (rows_[at(number)].rows.empty() && !of.in.empty() && !graph_.shape(of.out.front()).dims.empty() &&
        graph_.values[at(of.out.front())].manual == 0 &&
        std::find(out_.unknown.begin(), out_.unknown.end(), opcode) == out_.unknown.end())
      out_.unknown.emplace_back(opcode);
  }

  const Module& module_;
  PartitionPricing& pricing_;
  const PartitionGraph& graph_;
  const PartitionMesh& mesh_;
  const std::vector<PartitionRows>& rows_;
  DivisionChooser choice_;
  const PartitionHints& hints_ = choice_.hints();
  std::vector<std::vector<PartitionForm>>& forms_ = choice_.forms;
  const PartitionPin* pin_;
  std::map<AxisSet, std::string_view> groups_;
  std::vector<Open> open_;
  std::vector<std::vector<PartitionStep>> inside_;  ///< of regions that are planned, until the step that runs them
  std::int64_t count_ = 0;
  std::size_t offset_ = 0;  ///< of the operation at hand, in the text
  PartitionedProgram out_;
};

}  // namespace

struct Partitioner::Workspace {
  const Module& module;
  const PartitionMesh& mesh;
  const plan::Prices& prices;
  PartitionGraph graph;
  std::vector<PartitionRows> rows;
  SpreadOrder order = {};  ///< of the best plan
  PartitionPricing pricing{graph, mesh, prices, rows};

  Result<PartitionedProgram> plan(const SpreadOrder& by, const PartitionPin* pin) {
    ASSAY_TRY(hints, partition_hints(module, graph, mesh, rows, by, pin));
    return PartitionPlanner(module, pricing, std::move(hints), pin).run();
  }
};

Partitioner::Partitioner(std::unique_ptr<Workspace> workspace) : workspace_(std::move(workspace)) {}
Partitioner::Partitioner(Partitioner&&) noexcept = default;
Partitioner::~Partitioner() = default;

Result<Partitioner> Partitioner::make(const Module& module, const PartitionMesh& mesh, const plan::Prices& prices) {
  ASSAY_TRY(graph, partition_graph(module, mesh));
  std::vector<PartitionRows> rows;
  rows.reserve(graph.operations.size());
  for (const PartitionOperation& operation : graph.operations) rows.push_back(partition_rows(graph, operation));
  return Partitioner(
      std::unique_ptr<Workspace>(new Workspace{module, mesh, prices, std::move(graph), std::move(rows)}));
}

Result<PartitionedProgram> Partitioner::best() {
  constexpr std::size_t large = 20'000;  // operations: of large programs two orders are tried
  std::optional<PartitionedProgram> best;
  for (int i = 0; i < 8; ++i) {
    const SpreadOrder order{(i & 1) != 0, (i & 2) != 0, (i & 4) != 0};
    if (workspace_->graph.operations.size() > large && i > 1) break;
    ASSAY_TRY(found, workspace_->plan(order, nullptr));
    if (best && found.cost >= best->cost) continue;
    best = std::move(found);
    workspace_->order = order;
  }
  return std::move(*best);
}

Result<PartitionedProgram> Partitioner::with(const PartitionPin& pin) const {
  return workspace_->plan(workspace_->order, &pin);
}

const PartitionPricing& Partitioner::pricing() const { return workspace_->pricing; }
}  // namespace assay::hlo

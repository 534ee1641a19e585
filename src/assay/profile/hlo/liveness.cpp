#include "assay/profile/hlo/liveness.h"

#include <algorithm>
#include <map>
#include <optional>

namespace assay::hlo {
namespace {

constexpr std::int32_t elsewhere = -1;  ///< a parameter, a constant, or memory of the caller

std::size_t leaf_count(const Shape& shape) {
  if (!shape.is_tuple) return 1;
  std::size_t out = 0;
  for (const Shape& member : shape.members) out += leaf_count(member);
  return out;
}

void leaf_bytes(const Shape& shape, std::vector<Bytes>& out) {
  if (!shape.is_tuple) {
    out.push_back(main_memory_bytes(shape));
    return;
  }
  for (const Shape& member : shape.members) leaf_bytes(member, out);
}

struct Buffer {
  std::uint32_t made = 0, last_use = 0;
  Bytes bytes;
  bool output = false;
};

/// What a computation needs beyond its parameters.
struct ComputationMemory {
  Bytes peak;
  std::uint32_t at = 0;
  std::vector<Bytes> over_time;
  std::vector<LiveBuffer> live;
  Bytes outputs;  ///< of the entry: results with memory of their own
};

class LivenessFinder {
 public:
  LivenessFinder(const Module& module, const ProgramKernels& kernels) : module_(module), kernels_(kernels) {}

  const ComputationMemory& of(std::uint32_t number) {
    const auto known = done_.find(number);
    if (known != done_.end()) return known->second;
    ComputationMemory found = find(number);
    return done_.emplace(number, std::move(found)).first->second;
  }

 private:
  using Leaves = std::vector<std::int32_t>;

  struct State {
    const Computation& computation;
    const Grouping& groups;
    std::vector<Leaves> values;
    std::vector<Buffer> buffers;
    std::vector<std::uint32_t> last_reader;  ///< of each instruction's value itself, not of views
    std::vector<Bytes> inside;               ///< peaks of what instructions call
  };

  ComputationMemory find(std::uint32_t number) {
    const Computation& computation = module_.computations[number];
    const std::size_t count = computation.instructions.size();
    State state{computation,
                kernels_.groups[number],
                {},
                {},
                std::vector<std::uint32_t>(count, 0),
                std::vector<Bytes>(count, Bytes(0))};
    state.values.resize(count);
    for (std::uint32_t i = 0; i < count; ++i)
      for (const std::uint32_t operand : computation.instructions[i].operands)
        state.last_reader[operand] = std::max(state.last_reader[operand], run_at(state, i));
    for (std::uint32_t i = 0; i < count; ++i) make(state, i);
    for (std::uint32_t i = 0; i < count; ++i)
      for (const std::uint32_t operand : computation.instructions[i].operands)
        for (const std::int32_t leaf : state.values[operand])
          if (leaf != elsewhere) {
            Buffer& buffer = state.buffers[static_cast<std::size_t>(leaf)];
            buffer.last_use = std::max(buffer.last_use, run_at(state, i));
          }
    if (count > 0) keep_results(state, number);
    return sweep(state, number);
  }

  /// When an instruction runs: with the last one of its kernel.
  static std::uint32_t run_at(const State& state, std::uint32_t i) {
    if (i >= state.groups.kernel.size() || state.groups.kernel[i] == no_kernel) return i;
    return state.groups.kernel[i];
  }

  /// Results live to the end: in the entry in memory of their own, unless they are written over a parameter; in a loop
  /// in the memory of what it carries.
  void keep_results(State& state, std::uint32_t number) {
    const bool entry = number == module_.entry;
    const Leaves& results = state.values[state.computation.root];
    for (std::size_t i = 0; i < results.size(); ++i) {
      if (results[i] == elsewhere) continue;
      Buffer& buffer = state.buffers[static_cast<std::size_t>(results[i])];
      const bool aliased = std::any_of(module_.aliases.begin(), module_.aliases.end(), [&](const Alias& alias) {
        return alias.output < 0 || static_cast<std::size_t>(alias.output) == i;
      });
      if (!entry || aliased)
        buffer.bytes = Bytes(0);
      else
        buffer.output = true;
      buffer.last_use = static_cast<std::uint32_t>(state.computation.instructions.size());
    }
  }

  std::int32_t new_buffer(State& state, std::uint32_t made, Bytes bytes) {
    state.buffers.push_back({run_at(state, made), run_at(state, made), bytes, false});
    return static_cast<std::int32_t>(state.buffers.size()) - 1;
  }

  Leaves new_leaves(State& state, std::uint32_t made, const Shape& shape) {
    std::vector<Bytes> sizes;
    leaf_bytes(shape, sizes);
    Leaves out;
    for (const Bytes bytes : sizes) out.push_back(bytes > Bytes(0) ? new_buffer(state, made, bytes) : elsewhere);
    return out;
  }

  /// The operand that an update in place is made of.
  std::optional<std::uint32_t> updated_operand(const Instruction& at) const {
    if (at.opcode == "dynamic-update-slice" || at.opcode == "scatter")
      return at.operands.empty() ? std::nullopt : std::optional(at.operands[0]);
    if (base_opcode(at) != "fusion" || at.callees.size() != 1) return std::nullopt;
    const Computation& body = module_.computations[at.callees.front()];
    if (body.instructions.empty()) return std::nullopt;
    std::uint32_t number = body.root;
    for (std::size_t steps = 0; steps < body.instructions.size(); ++steps) {
      const Instruction& inner = body.instructions[number];
      if (inner.opcode == "parameter") {
        const auto index = number_list(inner.argument);
        const bool updates = steps > 0 && index.size() == 1 && index.front() >= 0 &&
                             static_cast<std::size_t>(index.front()) < at.operands.size();
        return updates ? std::optional(at.operands[static_cast<std::size_t>(index.front())]) : std::nullopt;
      }
      const bool passes =
          inner.opcode == "dynamic-update-slice" || inner.opcode == "scatter" || inner.opcode == "bitcast";
      if (!passes || inner.operands.empty()) return std::nullopt;
      number = inner.operands.front();
    }
    return std::nullopt;
  }

  /// The part of a start's result that is new: its place among the leaves.
  static std::pair<std::size_t, const Shape*> started(const Instruction& at) {
    const std::string_view opcode = base_opcode(at);
    const Shape& shape = at.shape;
    if (opcode == "copy" && !shape.members.empty()) return {0, &shape.members[0]};
    if (opcode == "all-reduce" || shape.members.size() < 2) return {0, &shape};
    return {leaf_count(shape.members[0]), &shape.members[1]};
  }

  void make(State& state, std::uint32_t i) {
    const Instruction& at = state.computation.instructions[i];
    Leaves& out = state.values[i];
    const auto leaves = [&](std::size_t operand) -> const Leaves& { return state.values[at.operands[operand]]; };
    if (at.opcode == "tuple") {
      for (std::size_t o = 0; o < at.operands.size(); ++o) out.insert(out.end(), leaves(o).begin(), leaves(o).end());
    } else if (at.opcode == "get-tuple-element" && at.operands.size() == 1) {
      out = member(state, at);
    } else if (is_async_start(at)) {
      out.assign(leaf_count(at.shape), elsewhere);
      const auto [first, shape] = started(at);
      const Leaves made = new_leaves(state, i, *shape);
      for (std::size_t l = 0; l < made.size() && first + l < out.size(); ++l) out[first + l] = made[l];
      if (const auto operand = updated_operand(at); operand && made.size() == 1 && state.values[*operand].size() == 1) {
        forget(state, made.front());
        out[first] = state.values[*operand].front();
      }
    } else if (is_async_done(at) && at.operands.size() == 1) {
      const auto [first, shape] = started(state.computation.instructions[at.operands.front()]);
      const Leaves& from = leaves(0);
      for (std::size_t l = 0; l < leaf_count(*shape) && first + l < from.size(); ++l) out.push_back(from[first + l]);
      out.resize(leaf_count(at.shape), elsewhere);
    } else if (at.opcode == "while" && at.operands.size() == 1) {
      out = leaves(0);
      call(state, i, at.callee("body"));
    } else if (at.opcode == "call" || at.opcode == "conditional") {
      for (const std::uint32_t callee : at.callees) call(state, i, callee);
      out = new_leaves(state, i, at.shape);
    } else if (i < state.groups.kernel.size() && state.groups.kernel[i] == i) {
      out = written(state, i);
    } else if (!at.operands.empty() && at.opcode != "parameter" && leaves(0).size() == leaf_count(at.shape) &&
               state.groups.kernel[i] == no_kernel) {
      out = leaves(0);  // a view
    } else {
      out.assign(leaf_count(at.shape), elsewhere);
    }
    out.resize(leaf_count(at.shape), elsewhere);
  }

  static void forget(State& state, std::int32_t buffer) {
    if (buffer != elsewhere) state.buffers[static_cast<std::size_t>(buffer)].bytes = Bytes(0);
  }

  static Leaves member(const State& state, const Instruction& at) {
    const Shape& tuple = state.computation.instructions[at.operands.front()].shape;
    const auto index = number_list(at.attribute("index"));
    Leaves out;
    if (index.size() != 1 || index.front() < 0 || static_cast<std::size_t>(index.front()) >= tuple.members.size())
      return out;
    std::size_t first = 0;
    const auto which = static_cast<std::size_t>(index.front());
    for (std::size_t m = 0; m < which; ++m) first += leaf_count(tuple.members[m]);
    const Leaves& from = state.values[at.operands.front()];
    for (std::size_t l = 0; l < leaf_count(tuple.members[which]) && first + l < from.size(); ++l)
      out.push_back(from[first + l]);
    return out;
  }

  void call(State& state, std::uint32_t i, std::uint32_t callee) {
    if (callee == no_computation || module_.computations[callee].fused) return;
    state.inside[i] = std::max(state.inside[i], of(callee).peak);
  }

  /// The result of a kernel: in new memory, in that of what it updates, or over an operand that ends here.
  Leaves written(State& state, std::uint32_t i) {
    const Instruction& at = state.computation.instructions[i];
    if (const auto operand = updated_operand(at); operand && state.values[*operand].size() == 1 && !at.shape.is_tuple)
      return state.values[*operand];
    const bool in_place = !at.shape.is_tuple && (is_element_wise(at.opcode) || at.attribute("kind") == "kLoop");
    if (in_place)
      for (const std::uint32_t operand : at.operands) {
        const Leaves& leaves = state.values[operand];
        if (leaves.size() != 1 || leaves.front() == elsewhere || state.last_reader[operand] > i) continue;
        const Buffer& buffer = state.buffers[static_cast<std::size_t>(leaves.front())];
        if (buffer.bytes == main_memory_bytes(at.shape) && sole_reader(state, operand, leaves.front())) return leaves;
      }
    return new_leaves(state, i, at.shape);
  }

  /// Whether no view of a buffer is read apart from the one that ends here: the value that made it is this one.
  static bool sole_reader(const State& state, std::uint32_t value, std::int32_t buffer) {
    return state.buffers[static_cast<std::size_t>(buffer)].made == value;
  }

  ComputationMemory sweep(const State& state, std::uint32_t number) {
    const std::size_t count = state.computation.instructions.size();
    std::vector<Bytes> starts(count + 1, Bytes(0)), ends(count + 2, Bytes(0));
    ComputationMemory out;
    for (const Buffer& buffer : state.buffers) {
      starts[std::min<std::size_t>(buffer.made, count)] += buffer.bytes;
      ends[std::min<std::size_t>(buffer.last_use, count) + 1] += buffer.bytes;
      if (buffer.output) out.outputs += buffer.bytes;
    }
    Bytes live(0);
    out.over_time.reserve(count);
    for (std::uint32_t i = 0; i < count; ++i) {
      live += starts[i] - ends[i];
      const Bytes now = live + state.inside[i];
      out.over_time.push_back(now);
      if (now > out.peak) {
        out.peak = now;
        out.at = i;
      }
    }
    for (const Buffer& buffer : state.buffers)
      if (buffer.bytes > Bytes(0) && buffer.made <= out.at && buffer.last_use >= out.at)
        out.live.push_back({number, buffer.made, buffer.bytes});
    if (count > 0) {
      const Instruction& at = state.computation.instructions[out.at];
      std::uint32_t largest = no_computation;
      for (const std::uint32_t callee : at.callees)
        if (done_.contains(callee) && (largest == no_computation || done_.at(callee).peak > done_.at(largest).peak))
          largest = callee;
      if (largest != no_computation && state.inside[out.at] > Bytes(0))
        out.live.insert(out.live.end(), done_.at(largest).live.begin(), done_.at(largest).live.end());
    }
    return out;
  }

  const Module& module_;
  const ProgramKernels& kernels_;
  std::map<std::uint32_t, ComputationMemory> done_;
};

}  // namespace

ProgramMemory program_memory(const Module& module, const ProgramKernels& kernels) {
  ProgramMemory out;
  for (const Shape& parameter : module.parameters) {
    out.arguments += main_memory_bytes(parameter);
    if (parameter.layout.memory_space == 5) out.host += parameter.padded_bytes();
  }
  if (module.entry == no_computation) return out;
  LivenessFinder finder(module, kernels);
  const ComputationMemory& entry = finder.of(module.entry);
  out.outputs = entry.outputs;
  out.temporaries = entry.peak - std::min(entry.peak, entry.outputs);
  out.over_time = entry.over_time;
  out.at_peak = entry.live;
  out.peak_instruction = entry.at;
  std::stable_sort(out.at_peak.begin(), out.at_peak.end(),
                   [](const LiveBuffer& a, const LiveBuffer& b) { return a.bytes > b.bytes; });
  if (module.result) {
    const auto members = module.result->is_tuple ? module.result->members : std::vector<Shape>{*module.result};
    for (const Alias& alias : module.aliases)
      if (alias.output < 0)
        out.aliased = main_memory_bytes(*module.result);
      else if (static_cast<std::size_t>(alias.output) < members.size())
        out.aliased += main_memory_bytes(members[static_cast<std::size_t>(alias.output)]);
  }
  return out;
}

}  // namespace assay::hlo

#include "assay/profile/hlo/linking.h"

#include <fmt/format.h>

#include <algorithm>

#include "assay/base/text.h"
#include "assay/profile/hlo/cursor.h"
#include "assay/profile/hlo/sharding.h"

namespace assay::hlo {
namespace {

/// Groups and shardings that are looked at.
constexpr int most_read = 200;

/// Whether computations call each other in a circle; the first instruction of one is given back.
const Instruction* recursion(const Module& module) {
  enum class State : std::uint8_t { unseen, open, done };
  std::vector<State> states(module.computations.size(), State::unseen);
  struct Frame {
    std::uint32_t computation;
    std::size_t instruction = 0, callee = 0;
  };
  for (std::uint32_t start = 0; start < module.computations.size(); ++start) {
    if (states[start] != State::unseen) continue;
    std::vector<Frame> stack{{start}};
    states[start] = State::open;
    while (!stack.empty()) {
      Frame& frame = stack.back();
      const Computation& computation = module.computations[frame.computation];
      if (frame.instruction == computation.instructions.size()) {
        states[frame.computation] = State::done;
        stack.pop_back();
        continue;
      }
      const Instruction& instruction = computation.instructions[frame.instruction];
      if (frame.callee == instruction.callees.size()) {
        ++frame.instruction;
        frame.callee = 0;
        continue;
      }
      const std::uint32_t next = instruction.callees[frame.callee++];
      if (states[next] == State::open) return &instruction;
      if (states[next] == State::unseen) {
        states[next] = State::open;
        stack.push_back({next});
      }
    }
  }
  return nullptr;
}

/// What a computation runs, with all that it calls: levels of calls, and instructions.
struct Extent {
  int levels = 1;
  double instructions = 0.0;
};

/// Readings follow calls: those of a compiler are few levels deep, and small. Computations do not call themselves.
Result<void> check_extents(const Module& module) {
  constexpr int most_levels = 200;
  constexpr double most_instructions = 1e8;
  std::vector<std::optional<Extent>> extents(module.computations.size());
  for (std::uint32_t start = 0; start < module.computations.size(); ++start) {
    std::vector<std::uint32_t> open{start};
    while (!open.empty()) {
      const std::uint32_t at = open.back();
      Extent sum;
      bool whole = true;
      for (const Instruction& instruction : module.computations[at].instructions) {
        sum.instructions += 1.0;
        for (const std::uint32_t callee : instruction.callees) {
          if (!extents[callee]) {
            whole = false;
            open.push_back(callee);
            break;
          }
          sum.levels = std::max(sum.levels, extents[callee]->levels + 1);
          sum.instructions += extents[callee]->instructions;
          if (sum.levels > most_levels || sum.instructions > most_instructions)
            return fail(module.where(instruction), fmt::format("{} calls too much", instruction.name),
                        "calls are at most 200 levels deep and run at most 100 million instructions");
        }
        if (!whole) break;
      }
      if (!whole) continue;
      extents[at] = sum;
      open.pop_back();
    }
  }
  return {};
}

Result<void> take_parameters(Module& module) {
  constexpr std::int64_t most_parameters = 1 << 20;
  const Computation* entry = module.entry_computation();
  if (!entry) return {};
  module.parameters.clear();
  for (const Instruction& instruction : entry->instructions) {
    if (instruction.opcode != "parameter") continue;
    const auto number = number_list(instruction.argument);
    if (number.size() != 1 || number.front() < 0 || number.front() >= most_parameters)
      return fail(module.where(instruction), "a parameter has a number", "write it as parameter(0)");
    const auto at = static_cast<std::size_t>(number.front());
    if (at >= module.parameters.size()) module.parameters.resize(at + 1);
    module.parameters[at] = instruction.shape;
  }
  if (!entry->instructions.empty()) module.result = entry->instructions[entry->root].shape;
  return {};
}

/// Where the module does not say how many devices it is for, its collectives and shardings do.
void find_devices(Module& module) {
  std::int64_t most = module.devices();
  int read = 0;
  for (const Computation& computation : module.computations)
    for (const Instruction& instruction : computation.instructions) {
      if (read > most_read) break;
      if (const std::string_view text = instruction.attribute("replica_groups"); !text.empty()) {
        ++read;
        if (const auto groups = parse_replica_groups(text, ""))
          for (const auto& list : groups->lists)
            for (const std::int64_t device : list) most = std::max(most, device + 1);
      }
      if (const std::string_view text = instruction.attribute("sharding");
          instruction.opcode == "parameter" && !text.empty()) {
        ++read;
        if (const auto sharding = parse_sharding(text, "")) most = std::max(most, sharding->devices());
      }
    }
  if (module.devices() == 1) module.partitions = most;
}

}  // namespace

Result<void> link(Module& module, const OpenNames& open) {
  std::unordered_map<std::string_view, std::uint32_t> numbers;
  for (std::uint32_t i = 0; i < module.computations.size(); ++i) numbers.emplace(module.computations[i].name, i);
  for (const OpenNames::Call& call : open.calls) {
    Instruction& instruction = module.computations[call.computation].instructions[call.instruction];
    const auto known = numbers.find(call.name);
    if (known == numbers.end()) {
      if (module.cut) continue;
      return fail(module.where(instruction),
                  fmt::format("{} calls {}, which the module does not have", instruction.name, in_quotes(call.name)),
                  "write the whole module");
    }
    instruction.callees.push_back(known->second);
    instruction.callee_keys.push_back(call.key);
    if (base_opcode(instruction) == "fusion" && call.key == "calls") module.computations[known->second].fused = true;
  }
  if (const Instruction* caller = recursion(module))
    return fail(module.where(*caller), fmt::format("{} calls the computation that it is in", caller->name),
                "computations of a module do not call themselves");
  ASSAY_CHECK(check_extents(module));
  find_devices(module);
  return take_parameters(module);
}

}  // namespace assay::hlo

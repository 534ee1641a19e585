#include "assay/profile/hlo/linking.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "assay/base/text.h"
#include "assay/profile/hlo/cursor.h"
#include "assay/profile/hlo/sharding.h"
#include "assay/profile/hlo/work.h"

namespace assay::hlo {
namespace {

/// Groups and shardings that are looked at.
constexpr int most_read = 200;

/// Readings follow calls: those of a compiler are few levels deep, and small. Computations do not call themselves.
Result<void> check_calls(const Module& module) {
  constexpr int most_levels = 200;
  constexpr double most_instructions = 1e8;
  struct Extent {  // what a computation runs, with all that it calls
    int levels = 1;
    double instructions = 0.0;
  };
  std::vector<std::uint32_t> all(module.computations.size());
  std::iota(all.begin(), all.end(), 0u);
  const CallOrder order = callees_first(module, all);
  if (order.circle)
    return fail(module.where(*order.circle), fmt::format("{} calls the computation that it is in", order.circle->name),
                "computations of a module do not call themselves");
  std::vector<Extent> extents(all.size());
  for (const std::uint32_t number : order.computations) {
    Extent& sum = extents[number];
    for (const Instruction& instruction : module.computations[number].instructions) {
      sum.instructions += 1.0;
      for (const std::uint32_t callee : instruction.callees) {
        sum.levels = std::max(sum.levels, extents[callee].levels + 1);
        sum.instructions += extents[callee].instructions;
        if (sum.levels > most_levels || sum.instructions > most_instructions)
          return fail(module.where(instruction), fmt::format("{} calls too much", instruction.name),
                      "calls are at most 200 levels deep and run at most 100 million instructions");
      }
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

/// Writes instructions of computations into one, those of calls in their place.
class Inliner {
 public:
  Inliner(const Module& module, std::vector<Instruction>& out) : module_(module), out_(out) {}

  /// Gives the place of each instruction; `arguments` are those of the computation's parameters.
  std::vector<std::uint32_t> add(const Computation& from, const std::vector<std::uint32_t>* arguments) {
    std::vector<std::uint32_t> places;
    for (const Instruction& at : from.instructions) {
      Instruction copy = at;
      for (std::uint32_t& operand : copy.operands) operand = places[operand];
      const auto number = number_list(at.argument);
      if (arguments && at.opcode == "parameter" && number.size() == 1 && number[0] >= 0 &&
          static_cast<std::size_t>(number[0]) < arguments->size()) {
        places.push_back((*arguments)[static_cast<std::size_t>(number[0])]);
      } else if (const auto member = member_of_tuple(copy)) {
        places.push_back(*member);
      } else if (is_plain_call(from, at)) {
        const Computation& callee = module_.computations[at.callees.front()];
        places.push_back(add(callee, &copy.operands)[callee.root]);
      } else {
        places.push_back(static_cast<std::uint32_t>(out_.size()));
        out_.push_back(std::move(copy));
      }
    }
    return places;
  }

 private:
  /// What a member of a tuple is, where the tuple stands here.
  std::optional<std::uint32_t> member_of_tuple(const Instruction& at) const {
    if (at.opcode != "get-tuple-element" || at.operands.size() != 1) return std::nullopt;
    const Instruction& tuple = out_[at.operands.front()];
    const auto index = number_list(at.attribute("index"));
    const bool known = tuple.opcode == "tuple" && index.size() == 1 && index[0] >= 0 &&
                       static_cast<std::size_t>(index[0]) < tuple.operands.size();
    return known ? std::optional(tuple.operands[static_cast<std::size_t>(index[0])]) : std::nullopt;
  }

  /// Calls that run on whole arrays. Regions keep their names of values outside; large programs stay as they are.
  bool is_plain_call(const Computation& from, const Instruction& at) const {
    constexpr std::size_t most_instructions = 1'000'000;
    if (at.opcode != "call" || at.callees.size() != 1 || !at.attribute("manual_axes").empty()) return false;
    const Computation& callee = module_.computations[at.callees.front()];
    return !callee.name.starts_with("region.") && !callee.instructions.empty() && out_.size() < most_instructions &&
           std::none_of(at.operands.begin(), at.operands.end(),
                        [&](std::uint32_t operand) { return from.instructions[operand].calls(CallKind::to_shards); });
  }

  const Module& module_;
  std::vector<Instruction>& out_;
};

/// Leaves out tuples that nothing reads.
void drop_tuples(Computation& computation) {
  const Users users = users_of(computation);
  std::vector<std::uint32_t> places(users.size(), 0);
  std::vector<Instruction> kept;
  for (std::uint32_t i = 0; i < users.size(); ++i) {
    Instruction& at = computation.instructions[i];
    places[i] = static_cast<std::uint32_t>(kept.size());
    if (at.opcode == "tuple" && users[i].empty() && i != computation.root) continue;
    for (std::uint32_t& operand : at.operands) operand = places[operand];
    kept.push_back(std::move(at));
  }
  computation.root = places[computation.root];
  computation.instructions = std::move(kept);
}

}  // namespace

Module inlined(const Module& module) {
  Module out = module;
  for (std::size_t i = 0; i < out.computations.size(); ++i) {
    out.computations[i].instructions.clear();
    const std::vector<std::uint32_t> places =
        Inliner(module, out.computations[i].instructions).add(module.computations[i], nullptr);
    if (places.empty()) continue;
    out.computations[i].root = places[module.computations[i].root];
    drop_tuples(out.computations[i]);
  }
  return out;
}

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
  ASSAY_CHECK(check_calls(module));
  find_devices(module);
  return take_parameters(module);
}

}  // namespace assay::hlo

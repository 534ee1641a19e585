// Bytes that kernels move, and what collectives send.
#include <algorithm>

#include "assay/profile/hlo/work.h"

namespace assay::hlo {
namespace {

bool is_view(const Instruction& instruction) {
  return instruction.opcode == "bitcast" || instruction.opcode == "reshape" || instruction.opcode == "convert" ||
         instruction.opcode == "copy";
}

/// What the body of a fusion reads of one of its parameters: the parts that slices cut out, nothing of an array that
/// it updates in place, else all of it.
Bytes read_of_parameter(const Computation& body, const Users& users, std::uint32_t parameter) {
  const Bytes whole = main_memory_bytes(body.instructions[parameter].shape);
  Bytes parts(0);
  std::vector<std::uint32_t> open{parameter};
  for (std::size_t steps = 0; !open.empty(); ++steps) {
    const std::uint32_t at = open.back();
    open.pop_back();
    if (steps > body.instructions.size() || at == body.root) return whole;
    for (const std::uint32_t user : users[at]) {
      const Instruction& by = body.instructions[user];
      const bool first = by.operands.front() == at;
      if (first && (by.opcode == "dynamic-slice" || by.opcode == "slice" || by.opcode == "gather"))
        parts += by.shape.padded_bytes();
      else if (by.opcode == "bitcast" || by.opcode == "reshape")
        open.push_back(user);
      else if (!(first && by.opcode == "dynamic-update-slice"))
        return whole;
    }
  }
  return std::min(parts, whole);
}

/// What is written of a result of a fusion: of an update in place the part alone.
Bytes written_of(const Computation& body, std::uint32_t result) {
  std::uint32_t at = result;
  for (std::size_t steps = 0; steps < body.instructions.size(); ++steps) {
    const Instruction& by = body.instructions[at];
    if (by.opcode == "dynamic-update-slice" && by.operands.size() >= 2)
      return std::min(body.instructions[by.operands[1]].shape.padded_bytes(),
                      main_memory_bytes(body.instructions[result].shape));
    if (!is_view(by) || by.operands.empty()) break;
    at = by.operands.front();
  }
  return main_memory_bytes(body.instructions[result].shape);
}

Bytes fusion_traffic(const Computation& body) {
  const auto users = users_of(body);
  Bytes out(0);
  for (std::uint32_t i = 0; i < body.instructions.size(); ++i)
    if (body.instructions[i].opcode == "parameter") out += read_of_parameter(body, users, i);
  if (body.instructions.empty()) return out;
  const Instruction& root = body.instructions[body.root];
  if (root.opcode != "tuple") return out + written_of(body, body.root);
  for (const std::uint32_t member : root.operands) out += written_of(body, member);
  return out;
}

/// Whether every device keeps one part of what an all-reduce makes.
bool keeps_a_part(const Computation& computation, const Users& users, std::uint32_t number, std::int64_t size) {
  const Shape& whole = computation.instructions[number].shape;
  if (whole.is_tuple || size < 2) return false;
  bool any = false;
  std::vector<bool> seen(computation.instructions.size(), false);
  std::vector<std::uint32_t> open{number};
  while (!open.empty()) {
    const std::uint32_t at = open.back();
    open.pop_back();
    for (const std::uint32_t user : users[at]) {
      if (seen[user]) continue;
      seen[user] = true;
      const Instruction& by = computation.instructions[user];
      if (is_view(by))
        open.push_back(user);
      else if (by.opcode == "dynamic-slice" && by.shape.elements() * static_cast<double>(size) == whole.elements())
        any = true;
      else
        return false;
    }
  }
  return any;
}

}  // namespace

std::optional<program::Collective> collective_kind(std::string_view opcode) {
  using enum program::Collective;
  constexpr std::pair<std::string_view, program::Collective> kinds[] = {{"all-gather", all_gather},
                                                                        {"all-reduce", all_reduce},
                                                                        {"reduce-scatter", reduce_scatter},
                                                                        {"all-to-all", all_to_all},
                                                                        {"collective-permute", permute},
                                                                        {"collective-broadcast", broadcast},
                                                                        {"ragged-all-to-all", ragged_all_to_all}};
  for (const auto& [name, kind] : kinds)
    if (name == opcode) return kind;
  return std::nullopt;
}

Bytes main_memory_bytes(const Shape& shape) {
  if (!shape.is_tuple) return shape.layout.memory_space == 0 ? shape.padded_bytes() : Bytes(0);
  Bytes out(0);
  for (const Shape& member : shape.members) out += main_memory_bytes(member);
  return out;
}

Users users_of(const Computation& computation) {
  Users out(computation.instructions.size());
  for (std::uint32_t i = 0; i < computation.instructions.size(); ++i)
    for (const std::uint32_t operand : computation.instructions[i].operands)
      if (out[operand].empty() || out[operand].back() != i) out[operand].push_back(i);
  return out;
}

Bytes traffic(const Module& module, const Computation& computation, const Instruction& instruction) {
  const std::string_view opcode = base_opcode(instruction);
  const auto operand = [&](std::size_t i) {
    return i < instruction.operands.size() ? main_memory_bytes(computation.instructions[instruction.operands[i]].shape)
                                           : Bytes(0);
  };
  if (is_free(instruction)) return Bytes(0);
  if ((opcode == "fusion" || opcode == "async") && instruction.callees.size() == 1) {
    const Computation& body = module.computations[instruction.callees.front()];
    if (opcode == "fusion" || body.instructions.empty()) return fusion_traffic(body);
    Bytes out(0);
    for (const Instruction& inner : body.instructions) out += traffic(module, body, inner);
    return out;
  }
  if (opcode == "dynamic-slice" || opcode == "slice") return 2.0 * main_memory_bytes(instruction.shape);
  if (opcode == "gather") return 2.0 * main_memory_bytes(instruction.shape) + operand(1);
  if (opcode == "dynamic-update-slice") return 2.0 * operand(1);
  if (opcode == "scatter" && instruction.operands.size() >= 3) return 2.0 * operand(2) + operand(1);
  if (opcode == "copy" && is_async_start(instruction)) {  // (destination, source, context)
    Bytes out(0);
    for (std::size_t i = 0; i < std::min<std::size_t>(2, instruction.shape.members.size()); ++i)
      out += main_memory_bytes(instruction.shape.members[i]);
    return out;
  }
  Bytes out = is_async_start(instruction) ? Bytes(0) : main_memory_bytes(instruction.shape);
  for (std::size_t i = 0; i < instruction.operands.size(); ++i)
    if (std::find(instruction.operands.begin(), instruction.operands.begin() + static_cast<std::ptrdiff_t>(i),
                  instruction.operands[i]) == instruction.operands.begin() + static_cast<std::ptrdiff_t>(i))
      out += operand(i);
  return out;
}

Result<std::optional<CollectiveCall>> collective_call(const Module& module, const Computation& computation,
                                                      const Instruction& instruction, const Users& users) {
  const Instruction* of = &instruction;
  const Computation* in = &computation;
  if (is_async_done(instruction)) return std::optional<CollectiveCall>();
  if (base_opcode(instruction) == "async" && instruction.callees.size() == 1)
    for (const Instruction& inner : module.computations[instruction.callees.front()].instructions)
      if (collective_kind(base_opcode(inner))) {
        of = &inner;
        in = &module.computations[instruction.callees.front()];
      }
  const auto kind = collective_kind(base_opcode(*of));
  if (!kind) return std::optional<CollectiveCall>();
  CollectiveCall out;
  out.kind = *kind;
  for (const std::uint32_t operand : of->operands) out.operand += in->instructions[operand].shape.bytes();
  out.size = module.devices();
  const double held = of->operands.empty() ? 0.0 : in->instructions[of->operands.front()].shape.elements();
  const double made = of->shape.is_tuple ? 0.0 : of->shape.elements();
  if (out.size == 1 && held > 0.0 && made > 0.0) {  // neither groups nor the module say how many: the shapes do
    if (program::gathers(*kind)) out.size = static_cast<std::int64_t>(made / held);
    if (program::scatters(*kind)) out.size = static_cast<std::int64_t>(held / made);
  }
  if (const std::string_view groups = of->attribute("replica_groups"); !groups.empty()) {
    auto read = parse_replica_groups(groups, "");
    if (!read) return fail(module.where(*of), read.error().what, read.error().hint);
    out.groups = std::move(*read);
    out.size = out.groups.size(module.devices());
  } else if (const std::string_view pairs = of->attribute("source_target_pairs"); !pairs.empty()) {
    const auto read = parse_pairs(pairs, "");
    if (!read) return fail(module.where(*of), read.error().what, read.error().hint);
    if (read->empty()) return std::optional<CollectiveCall>();
  }
  const double n = static_cast<double>(std::max<std::int64_t>(out.size, 1));
  const double after = program::gathers(*kind) ? n : program::scatters(*kind) ? 1.0 / n : 1.0;
  out.result = after * out.operand;
  if (*kind == program::Collective::all_reduce && of == &instruction)
    out.scattered =
        keeps_a_part(computation, users, static_cast<std::uint32_t>(of - computation.instructions.data()), out.size);
  return std::optional(std::move(out));
}

}  // namespace assay::hlo

#include "assay/profile/hlo/module.h"

#include <algorithm>

#include "assay/base/text.h"
#include "assay/profile/hlo/cursor.h"

namespace assay::hlo {

std::string_view Instruction::attribute(std::string_view key) const {
  for (const auto& [name_of, value] : attributes)
    if (name_of == key) return value;
  return {};
}

std::string_view Instruction::call_target() const {
  std::string_view target = attribute("custom_call_target");
  if (target.size() >= 2 && target.front() == '"') target = target.substr(1, target.size() - 2);
  return target;
}

std::uint32_t Instruction::callee(std::string_view key) const {
  for (std::size_t i = 0; i < callees.size(); ++i)
    if (callee_keys[i] == key) return callees[i];
  return no_computation;
}

std::string_view Instruction::op_name() const { return text_after(attribute("metadata"), "op_name").value_or(""); }

Instruction tuple_of(const Computation& in, std::vector<std::uint32_t> members, std::string_view name) {
  Instruction out;
  out.name = name;
  out.opcode = "tuple";
  out.shape.is_tuple = true;
  for (const std::uint32_t member : members) out.shape.members.push_back(in.instructions[member].shape);
  out.operands = std::move(members);
  return out;
}

Instruction member_of(const Computation& in, std::uint32_t tuple, std::string_view number, std::string_view name) {
  const Instruction& of = in.instructions[tuple];
  Instruction out;
  out.name = name;
  out.opcode = "get-tuple-element";
  out.shape = of.shape.members.at(static_cast<std::size_t>(number_list(number).front()));
  out.operands = {tuple};
  out.attributes.emplace_back("index", number);
  out.offset = of.offset;
  return out;
}

std::string Module::where(const Instruction& instruction) const {
  return Cursor(*text, file).where(instruction.offset);
}

CallOrder callees_first(const Module& module, const std::vector<std::uint32_t>& callers) {
  enum class State : std::uint8_t { unseen, open, done };
  struct Frame {
    std::uint32_t computation;
    std::size_t instruction = 0, callee = 0;
  };
  std::vector<State> states(module.computations.size(), State::unseen);
  CallOrder out;
  for (const std::uint32_t caller : callers) {
    std::vector<Frame> stack;
    if (states[caller] == State::unseen) stack.push_back({caller});
    while (!stack.empty()) {
      Frame& frame = stack.back();
      const auto& instructions = module.computations[frame.computation].instructions;
      states[frame.computation] = State::open;
      if (frame.instruction == instructions.size()) {
        states[frame.computation] = State::done;
        out.computations.push_back(frame.computation);
        stack.pop_back();
        continue;
      }
      const Instruction& at = instructions[frame.instruction];
      if (frame.callee == at.callees.size()) {
        ++frame.instruction;
        frame.callee = 0;
        continue;
      }
      const std::uint32_t next = at.callees[frame.callee++];
      if (states[next] == State::unseen) stack.push_back({next});
      if (states[next] != State::open) continue;
      out.circle = &at;
      return out;
    }
  }
  return out;
}

bool is_async_start(const Instruction& instruction) { return instruction.opcode.ends_with("-start"); }
bool is_async_done(const Instruction& instruction) { return instruction.opcode.ends_with("-done"); }

std::string_view base_opcode(const Instruction& instruction) {
  std::string_view out = instruction.opcode;
  if (is_async_start(instruction)) out.remove_suffix(6);
  if (is_async_done(instruction)) out.remove_suffix(5);
  return out;
}

std::vector<std::int64_t> number_list(std::string_view text) {
  std::vector<std::int64_t> out;
  Cursor in(text, "");
  while (!in.done()) {
    if (const auto value = in.integer())
      out.push_back(*value);
    else
      in.move_to(in.at() + 1);
  }
  return out;
}

namespace {

/// Takes a quote away, which may be written with a backslash; empty where there is none.
std::string_view taken_quote(std::string_view& text) {
  for (const std::string_view sign : {"\\\"", "\""})
    if (text.starts_with(sign)) {
      text.remove_prefix(sign.size());
      return sign;
    }
  return {};
}

/// What stands behind a whole key, its quote and a colon or an equals sign.
std::optional<std::string_view> behind_key(std::string_view text, std::string_view key) {
  for (std::size_t at = text.find(key); at != std::string_view::npos; at = text.find(key, at + 1)) {
    const auto is_letter = [](char c) { return (c >= 'a' && c <= 'z') || c == '_' || (c >= '0' && c <= '9'); };
    if (at > 0 && is_letter(text[at - 1])) continue;
    std::string_view rest = text.substr(at + key.size());
    taken_quote(rest);
    rest = trim(rest.substr(0, std::min<std::size_t>(rest.size(), 4096)));
    if (rest.empty() || (rest.front() != ':' && rest.front() != '=')) continue;
    rest.remove_prefix(1);
    return trim(rest);
  }
  return std::nullopt;
}

}  // namespace

std::optional<double> number_after(std::string_view text, std::string_view key) {
  auto rest = behind_key(text, key);
  if (!rest) return std::nullopt;
  taken_quote(*rest);
  std::size_t end = 0;
  while (end < rest->size() && ((*rest)[end] == '-' || (*rest)[end] == '+' || (*rest)[end] == '.' ||
                                (*rest)[end] == 'e' || ((*rest)[end] >= '0' && (*rest)[end] <= '9')))
    ++end;
  return parse_number(rest->substr(0, end));
}

std::optional<std::string_view> text_after(std::string_view text, std::string_view key) {
  auto rest = behind_key(text, key);
  if (!rest) return std::nullopt;
  const std::string_view sign = taken_quote(*rest);
  if (sign.empty()) return std::nullopt;
  std::size_t end = rest->find(sign);
  while (sign == "\"" && end != std::string_view::npos && end > 0 && (*rest)[end - 1] == '\\')
    end = rest->find('"', end + 1);
  return rest->substr(0, end);
}

bool is_hlo_text(std::string_view text) {
  Cursor in(text.substr(0, 1 << 16), "");
  in.skip_blanks();
  if (in.sees("HloModule")) return true;
  if (in.sees("ENTRY ")) return true;
  in.take("%");
  // A computation alone: name { or name (p: f32[8]) -> f32[8] {
  return !in.name().empty() && (in.skip_spaces(), in.peek() == '{' || in.peek() == '(') &&
         in.text().find(" parameter(") != std::string_view::npos;
}

bool is_stablehlo_text(std::string_view text) {
  const std::string_view start = text.substr(0, 1 << 16);
  const bool module = trim(start).starts_with("module") || start.find("func.func") != std::string_view::npos ||
                      trim(start).starts_with("#loc") || trim(start).starts_with("sdy.mesh");
  return module && (text.find("stablehlo.") != std::string_view::npos || text.find("mhlo.") != std::string_view::npos ||
                    start.find("func.func") != std::string_view::npos);
}

Result<Module> read_module(std::string text, std::string_view file, const Calls& calls) {
  Result<Module> module = is_hlo_text(text) ? read_hlo(std::move(text), file) : read_stablehlo(std::move(text), file);
  if (!module) return module;
  for (Computation& computation : module->computations)
    for (Instruction& at : computation.instructions)
      if (const std::string_view target = at.call_target(); !target.empty())
        at.call = calls.find(target, at.name, at.attribute("backend_config"));
  return module;
}

}  // namespace assay::hlo

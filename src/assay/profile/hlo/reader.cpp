// HLO text as XLA prints it.
#include <fmt/format.h>

#include <algorithm>

#include "assay/base/assign.h"
#include "assay/base/text.h"
#include "assay/profile/hlo/cursor.h"
#include "assay/profile/hlo/linking.h"
#include "assay/profile/hlo/module.h"
#include "assay/profile/hlo/sharding.h"

namespace assay::hlo {
namespace {

constexpr std::string_view callee_attributes[] = {"calls",
                                                  "to_apply",
                                                  "body",
                                                  "condition",
                                                  "true_computation",
                                                  "false_computation",
                                                  "select",
                                                  "scatter",
                                                  "branch_computations",
                                                  "called_computations"};
constexpr std::string_view sections[] = {"FileNames", "FunctionNames", "FileLocations", "StackFrames"};

std::string_view without_percent(std::string_view name) {
  if (name.starts_with("%")) name.remove_prefix(1);
  return name;
}

class HloReader {
 public:
  HloReader(Module& module, std::string_view file) : module_(module), in_(*module.text, file) {}

  Result<void> read() {
    in_.skip_blanks();
    if (in_.sees("HloModule")) ASSAY_CHECK(header());
    while (in_.skip_blanks(), !in_.done()) {
      const bool section = std::any_of(std::begin(sections), std::end(sections),
                                       [&](std::string_view title) { return in_.sees(title); });
      if (section || (in_.peek() >= '0' && in_.peek() <= '9'))
        in_.skip_line();  // where the instructions come from in the user's program
      else
        ASSAY_CHECK(computation());
    }
    if (module_.entry == no_computation && !module_.cut && module_.computations.size() == 1) module_.entry = 0;
    if (module_.entry == no_computation) {
      if (!module_.result) return in_.fault("the module has no ENTRY computation", "write the whole module");
      module_.cut = true;
    }
    return link(module_, open_);
  }

 private:
  Result<void> header() {
    ASSAY_CHECK(in_.expect("HloModule", "at the start"));
    module_.name = in_.name();
    while (in_.skip_spaces(), in_.peek() == ',') {
      in_.take(",");
      const std::string_view key = in_.name();
      if (key.empty() || !in_.take("=")) return in_.fault("expected key=value", "write the module as XLA prints it");
      const std::size_t start = in_.at();
      ASSAY_TRY(value, in_.value());
      if (key == "is_scheduled") module_.scheduled = trim(value) == "true";
      if (key == "num_partitions" || key == "replica_count") {
        const auto count = number_list(value);
        if (count.size() != 1 || count.front() < 1 || count.front() > most_devices)
          return in_.fault_at(start, fmt::format("{} is a count of 1 and more", key), "such as 8");
        (key == "num_partitions" ? module_.partitions : module_.replicas) = count.front();
      }
      if (key == "input_output_alias") aliases(value);
      if (key == "entry_computation_layout") ASSAY_CHECK(signature(start));
      if (key == "frontend_attributes") ASSAY_CHECK(meshes(value));
    }
    return {};
  }

  /// { {0}: (0, {}, may-alias), {1}: (2, {}, must-alias) }
  void aliases(std::string_view text) {
    Cursor in(text, "");
    in.take("{");
    while (in.take("{")) {
      Alias alias;
      alias.output = in.integer().value_or(-1);
      while (!in.done() && in.peek() != '(') in.move_to(in.at() + 1);
      in.take("(");
      const auto parameter = in.integer();
      if (!parameter || *parameter < 0) return;
      alias.parameter = *parameter;
      module_.aliases.push_back(alias);
      while (!in.done() && in.peek() != ')') in.move_to(in.at() + 1);
      in.take(")");
      in.take(",");
    }
  }

  /// {(f32[8]{0}, s32[])->f32[8]{0}}
  Result<void> signature(std::size_t start) {
    const std::size_t behind = in_.at();
    in_.move_to(start);
    ASSAY_CHECK(in_.expect("{", "of the entry's layout"));
    ASSAY_TRY(parameters, read_shape(in_));
    module_.parameters = std::move(parameters.members);
    ASSAY_CHECK(in_.expect("->", "behind the entry's parameters"));
    ASSAY_SET(module_.result, read_shape(in_));
    in_.move_to(behind);
    return {};
  }

  /// xla.sdy.meshes={mesh = #sdy.mesh<["data"=1, "fsdp"=4]>}
  Result<void> meshes(std::string_view text) {
    const std::size_t at = text.find("#sdy.mesh<");
    if (at == std::string_view::npos) return {};
    const std::string_view from = text.substr(at);
    ASSAY_SET(module_.mesh, parse_sdy_mesh(from.substr(0, from.find('>') + 1), module_.file));
    return {};
  }

  Result<void> computation() {
    const std::size_t start = in_.at();
    const bool entry = in_.sees("ENTRY");
    if (entry) in_.take("ENTRY");
    in_.take("%");
    Computation out;
    out.name = in_.name();
    if (out.name.empty())
      return in_.fault_at(start, "expected a computation", "it starts as %name (p: f32[8]) -> f32[8] {");
    in_.skip_blanks();
    if (in_.peek() == '(') {
      ASSAY_CHECK(in_.bracketed());
      ASSAY_CHECK(in_.expect("->", "behind the parameters of a computation"));
      ASSAY_CHECK(read_shape(in_));
    }
    ASSAY_CHECK(in_.expect("{", "of a computation"));
    const auto number = static_cast<std::uint32_t>(module_.computations.size());
    std::optional<std::uint32_t> root;
    std::vector<std::vector<std::string_view>> operands;
    while (!in_.take("}")) {
      if (in_.done()) {
        module_.cut = true;
        break;
      }
      bool is_root = false;
      operands.emplace_back();
      ASSAY_TRY(instruction, read_instruction(operands.back(), is_root));
      const auto at = static_cast<std::uint32_t>(out.instructions.size());
      if (is_root) root = at;
      ASSAY_CHECK(calls(instruction, number, at));
      out.instructions.push_back(std::move(instruction));
    }
    in_.skip_spaces();
    if (in_.peek() == ',') in_.skip_line();  // execution_thread="host"
    ASSAY_CHECK(resolve(out, operands));
    if (out.instructions.empty() && !module_.cut)
      return in_.fault_at(start, "the computation has no instructions", "write the whole module");
    out.root = root.value_or(out.instructions.empty() ? 0 : static_cast<std::uint32_t>(out.instructions.size() - 1));
    if (entry && !out.instructions.empty() && !module_.cut) module_.entry = number;
    module_.computations.push_back(std::move(out));
    return {};
  }

  Result<Instruction> read_instruction(std::vector<std::string_view>& operands, bool& is_root) {
    Instruction out;
    if (in_.sees("ROOT ")) is_root = in_.take("ROOT");
    in_.take("%");
    out.offset = in_.at();
    out.name = in_.name();
    if (out.name.empty())
      return in_.fault("expected an instruction", "instructions are written as %name = f32[8] add(%a, %b)");
    ASSAY_CHECK(in_.expect("=", "behind the name of an instruction"));
    ASSAY_SET(out.shape, read_shape(in_));
    out.opcode = in_.name();
    if (out.opcode.empty() || in_.peek() != '(')
      return in_.fault("expected an operation with its operands in brackets", "such as add(%a, %b)");
    ASSAY_TRY(inside, in_.bracketed());
    out.argument = inside;
    if (out.opcode != "constant" && out.opcode != "parameter" && out.opcode != "iota") {
      Cursor list(inside, module_.file);
      while (list.skip_blanks(), !list.done()) {
        ASSAY_TRY(item, list.balanced());
        const std::string_view text = trim(item);
        const std::size_t blank = text.rfind(' ');
        if (!text.empty())
          operands.push_back(without_percent(blank == std::string_view::npos ? text : text.substr(blank + 1)));
        if (!list.take(",") && !list.done()) list.move_to(list.at() + 1);
      }
    }
    while (in_.skip_spaces(), in_.peek() == ',') {
      in_.take(",");
      const std::string_view key = in_.name();
      if (key.empty() || !in_.take("="))
        return in_.fault("expected key=value behind an instruction", "such as dimensions={0,1}");
      ASSAY_TRY(value, in_.value());
      out.attributes.emplace_back(key, trim(value));
    }
    return out;
  }

  /// Names of computations behind calls=, body= and others.
  Result<void> calls(const Instruction& instruction, std::uint32_t computation, std::uint32_t at) {
    for (const auto& [key, value] : instruction.attributes) {
      if (std::find(std::begin(callee_attributes), std::end(callee_attributes), key) == std::end(callee_attributes))
        continue;
      Cursor list(value, module_.file);
      list.take("{");
      while (true) {
        list.take("%");
        const std::string_view name = list.name();
        if (name.empty()) break;
        open_.calls.push_back({computation, at, key, name});
        if (!list.take(",")) break;
      }
    }
    return {};
  }

  Result<void> resolve(Computation& computation, const std::vector<std::vector<std::string_view>>& operands) {
    std::unordered_map<std::string_view, std::uint32_t> numbers;
    for (std::uint32_t i = 0; i < computation.instructions.size(); ++i)
      numbers.emplace(computation.instructions[i].name, i);
    for (std::uint32_t i = 0; i < computation.instructions.size(); ++i)
      for (const std::string_view name : operands[i]) {
        const auto known = numbers.find(name);
        if (known == numbers.end() || known->second >= i)
          return in_.fault_at(computation.instructions[i].offset,
                              fmt::format("operand {} of {} is not defined before it", in_quotes(name),
                                          in_quotes(computation.instructions[i].name)),
                              "operands are instructions above, of the same computation");
        computation.instructions[i].operands.push_back(known->second);
      }
    return {};
  }

  Module& module_;
  Cursor in_;
  OpenNames open_;
};

}  // namespace

Result<Module> read_hlo(std::string text, std::string_view file) {
  Module module;
  module.file = file;
  module.text = std::make_shared<const std::string>(std::move(text));
  HloReader reader(module, module.file);
  ASSAY_CHECK(reader.read());
  return module;
}

}  // namespace assay::hlo

// StableHLO in MLIR's textual form: functions and regions become computations, operations instructions of HLO.
#include <fmt/format.h>

#include <algorithm>
#include <cctype>

#include "assay/base/text.h"
#include "assay/profile/hlo/linking.h"
#include "assay/profile/hlo/sharding.h"
#include "assay/profile/hlo/stablehlo_types.h"

namespace assay::hlo {
namespace {

constexpr const char* statement_form = "operations are written as %1 = stablehlo.add %0, %0 : tensor<8xf32>";
constexpr int deepest_region = 60;

/// A computation that is being read, and the one around it, whose values it may use.
struct Region {
  Computation computation;
  std::unordered_map<std::string_view, std::uint32_t> values;
  std::vector<OpenNames::Call> calls;  ///< without the number of the computation
  Region* outer = nullptr;
  std::string_view returned;  ///< operands of its last statement
};

class StableReader {
 public:
  StableReader(Module& module, std::string_view file) : module_(module), in_(*module.text, file) {}

  Result<void> read() {
    while (in_.skip_blanks(), !in_.done()) {
      if (in_.sees("module"))
        ASSAY_CHECK(module_header());
      else if (in_.sees("func.func"))
        ASSAY_CHECK(function());
      else if (in_.sees("sdy.mesh"))
        ASSAY_CHECK(mesh());
      else if (in_.sees("}") || in_.sees("#") || in_.sees("{-#"))
        in_.skip_line();
      else
        return in_.fault("expected func.func", "a module holds functions; its operations are of StableHLO");
    }
    for (std::uint32_t i = 0; i < module_.computations.size(); ++i)
      if (module_.computations[i].name == "main") module_.entry = i;
    if (module_.entry == no_computation && functions_ == 1)
      module_.entry = static_cast<std::uint32_t>(module_.computations.size() - 1);
    if (module_.entry == no_computation) return in_.fault("the module has no function @main", "write the whole module");
    return link(module_, open_);
  }

 private:
  std::string_view made(std::string text) { return module_.made.emplace_back(std::move(text)); }

  Result<void> module_header() {
    const std::size_t end = std::min(in_.text().find('\n', in_.at()), in_.text().size());
    const std::string_view line = in_.text().substr(in_.at(), end - in_.at());
    if (const std::size_t at = line.find('@'); at != std::string_view::npos)
      module_.name = line.substr(at + 1, line.find_first_of(" {", at) - at - 1);
    for (const auto& [key, count] :
         {std::pair("num_partitions", &module_.partitions), std::pair("num_replicas", &module_.replicas)})
      if (const std::size_t at = line.find(key); at != std::string_view::npos) {
        const auto found = number_list(line.substr(at, 40));
        if (found.empty() || found.front() < 1 || found.front() > most_devices)
          return in_.fault(fmt::format("{} is a count of 1 and more", key), "such as 8 : i32");
        *count = found.front();
      }
    in_.skip_line();
    return {};
  }

  Result<void> mesh() {
    const std::size_t end = std::min(in_.text().find('\n', in_.at()), in_.text().size());
    ASSAY_TRY(found, parse_sdy_mesh(in_.text().substr(in_.at(), end - in_.at()), in_.where(in_.at())));
    module_.mesh = std::move(found);
    in_.skip_line();
    return {};
  }

  Result<void> function() {
    const std::size_t name_at = in_.text().find('@', in_.at());
    if (name_at == std::string_view::npos) return in_.fault("a function has a name", "such as func.func @main()");
    in_.move_to(name_at + 1);
    Region region;
    region.computation.name = in_.name();
    ++functions_;
    const bool main = region.computation.name == "main";
    const std::size_t at = in_.at();
    ASSAY_TRY(arguments, in_.bracketed());
    std::int64_t number = 0;
    for (const std::string_view argument : top_level_parts(arguments)) {
      ASSAY_CHECK(parameter(region, argument, number, at));
      if (const std::size_t alias = argument.find("tf.aliasing_output"); main && alias != std::string_view::npos)
        if (const auto output = number_list(argument.substr(alias, 40)); !output.empty())
          module_.aliases.push_back({output.front(), number});
      ++number;
    }
    while (!in_.done() && in_.peek() != '{') {  // results, in brackets if they have attributes
      if (in_.peek() == '(') {
        ASSAY_TRY(ignored, in_.bracketed());
        static_cast<void>(ignored);
      } else if (in_.sees("attributes")) {
        in_.take("attributes");
        in_.skip_blanks();
        ASSAY_TRY(ignored, in_.bracketed());
        static_cast<void>(ignored);
      } else {
        in_.move_to(in_.at() + 1);
      }
    }
    ASSAY_CHECK(in_.expect("{", "of a function"));
    ASSAY_CHECK(block(region, 0));
    ASSAY_TRY(closed, close(region));
    static_cast<void>(closed);
    return {};
  }

  /// %arg0: tensor<8xf32> {mhlo.sharding = "..."}
  Result<void> parameter(Region& region, std::string_view text, std::int64_t number, std::size_t at) {
    const std::size_t colon = text.find(':');
    if (!text.starts_with("%") || colon == std::string_view::npos)
      return in_.fault_at(at, "expected %argument: type", "such as %arg0: tensor<8xf32>");
    const std::size_t end = text.find('>', colon);
    std::size_t stop = end == std::string_view::npos ? text.size() : end + 1;
    if (const std::size_t brace = text.find(" {", colon); brace != std::string_view::npos) stop = brace;
    ASSAY_TRY(shape, parse_tensor_type(text.substr(colon + 1, stop - colon - 1), in_, at));
    Instruction out;
    out.name = trim(text.substr(1, colon - 1));
    out.opcode = "parameter";
    out.shape = std::move(shape);
    out.offset = at;
    out.argument = made(fmt::format("{}", number));
    for (auto& [key, value] : hlo_attributes("parameter", text.substr(stop)))
      out.attributes.emplace_back(key, made(std::move(value)));
    add(region, std::move(out));
    return {};
  }

  std::uint32_t add(Region& region, Instruction instruction) {
    const auto number = static_cast<std::uint32_t>(region.computation.instructions.size());
    region.values[instruction.name] = number;
    region.computation.instructions.push_back(std::move(instruction));
    return number;
  }

  /// The instruction of a name; values of regions around become instructions of this one.
  Result<std::uint32_t> value(Region& region, std::string_view name, std::size_t at) {
    if (const auto known = region.values.find(name); known != region.values.end()) return known->second;
    for (Region* outer = region.outer; outer; outer = outer->outer) {
      const auto known = outer->values.find(name);
      if (known == outer->values.end()) continue;
      Instruction copy = outer->computation.instructions[known->second];
      if (copy.opcode != "constant") {
        copy.opcode = "captured";
        copy.operands.clear();
        copy.attributes.clear();
      }
      copy.name = name;
      return add(region, std::move(copy));
    }
    return in_.fault_at(at, fmt::format("%{} is not defined before it is used", name), statement_form);
  }

  /// All %names of a text.
  Result<std::vector<std::uint32_t>> values(Region& region, std::string_view text, std::size_t at) {
    std::vector<std::uint32_t> out;
    for (std::size_t i = text.find('%'); i != std::string_view::npos; i = text.find('%', i + 1)) {
      std::size_t end = i + 1;
      while (end < text.size() && (std::isalnum(static_cast<unsigned char>(text[end])) || text[end] == '_' ||
                                   text[end] == '#' || text[end] == '$' || text[end] == '.' || text[end] == '-'))
        ++end;
      ASSAY_TRY(number, value(region, text.substr(i + 1, end - i - 1), at));
      out.push_back(number);
    }
    return out;
  }

  /// Statements up to the closing brace.
  Result<void> block(Region& region, int depth) {
    if (depth > deepest_region) return in_.fault("regions nest too deep", statement_form);
    while (!in_.take("}")) {
      if (in_.done()) return in_.fault("a region is not closed", "write the whole module");
      if (in_.sees("^")) {
        in_.skip_line();
        continue;
      }
      ASSAY_CHECK(statement(region, depth));
    }
    return {};
  }

  Result<void> statement(Region& region, int depth) {
    const std::size_t start = in_.at();
    std::string_view name;
    if (in_.sees("%")) {
      in_.take("%");
      name = in_.name();
      if (in_.take(":") && !in_.integer()) return in_.fault("expected a number of results", statement_form);
      ASSAY_CHECK(in_.expect("=", "behind the result of an operation"));
    }
    const bool quoted = in_.take("\"");
    const std::string_view operation = in_.name();
    if (operation.empty()) return in_.fault("expected an operation", statement_form);
    if (quoted) ASSAY_CHECK(in_.expect("\"", "behind the name of an operation"));
    const std::size_t text_at = in_.at();
    while (true) {
      ASSAY_TRY(part, in_.balanced());
      static_cast<void>(part);
      if (in_.done() || in_.peek() != ',') break;
      in_.move_to(in_.at() + 1);
    }
    std::string_view text = in_.text().substr(text_at, std::min(in_.at(), in_.text().size()) - text_at);
    if (const std::size_t loc = text.rfind(" loc("); loc != std::string_view::npos) text = text.substr(0, loc);
    if (operation == "return" || operation.ends_with(".return")) {
      region.returned = text.substr(0, type_colon(text).value_or(text.size()));
      return {};
    }
    if (operation.ends_with(".while")) return loop(region, {name, operation, text, start}, depth);
    return plain(region, {name, operation, text, start}, depth);
  }

  struct Statement {
    std::string_view name, operation, text;
    std::size_t at;
  };

  /// Adds an instruction and, where it has several results, one for each of them.
  void add_results(Region& region, Instruction instruction, std::vector<Shape> shapes) {
    const std::string_view name = instruction.name;
    if (shapes.size() == 1) {
      instruction.shape = std::move(shapes.front());
      add(region, std::move(instruction));
      return;
    }
    instruction.shape.is_tuple = true;
    instruction.shape.members = shapes;
    const std::size_t offset = instruction.offset;
    const std::uint32_t all = add(region, std::move(instruction));
    for (std::size_t i = 0; i < shapes.size(); ++i) {
      Instruction member;
      member.name = made(fmt::format("{}#{}", name, i));
      member.opcode = "get-tuple-element";
      member.shape = shapes[i];
      member.operands = {all};
      member.attributes.emplace_back("index", made(fmt::format("{}", i)));
      member.offset = offset;
      add(region, std::move(member));
    }
  }

  Result<void> plain(Region& region, const Statement& statement, int depth) {
    Instruction out;
    out.name = statement.name.empty() ? made(fmt::format("op{}", in_.at())) : statement.name;
    out.opcode = made(hlo_opcode(statement.operation));
    out.offset = statement.at;
    const auto colon = type_colon(statement.text);
    std::string_view text = statement.text.substr(0, colon.value_or(statement.text.size()));
    std::vector<Shape> shapes;
    if (colon) {
      ASSAY_TRY(types, result_types(statement.text.substr(*colon + 1), in_, statement.at));
      shapes = std::move(types);
    }
    const std::size_t regions = text.find("({");
    std::string_view operands = text.substr(0, regions);
    if (out.opcode == "constant") {
      out.argument = trim(operands);
      if (out.argument.starts_with("dense<") && out.argument.ends_with(">"))
        out.argument = out.argument.substr(6, out.argument.size() - 7);
    } else {
      ASSAY_TRY(found, values(region, operands, statement.at));
      out.operands = std::move(found);
    }
    for (auto& [key, value] : hlo_attributes(out.opcode, text))
      out.attributes.emplace_back(key, made(std::move(value)));
    if (const std::size_t target = text.find('@');
        target != std::string_view::npos && !statement.operation.starts_with("sdy.")) {
      const std::string_view called = text.substr(target + 1, text.find_first_of("( ", target) - target - 1);
      if (out.opcode == "call")
        region.calls.push_back(
            {0, static_cast<std::uint32_t>(region.computation.instructions.size()), "to_apply", called});
      if (out.opcode == "custom-call") {
        out.attributes.emplace_back("custom_call_target", made(fmt::format("\"{}\"", called)));
        out.attributes.emplace_back("backend_config", made(unescaped(text)));
      }
    }
    if (out.opcode == "custom-call" && statement.operation.starts_with("sdy."))
      out.attributes.emplace_back("custom_call_target", "\"Sharding\"");
    if (out.opcode == "conditional" && regions != std::string_view::npos)
      ASSAY_CHECK(branches(region, statement, depth));
    ASSAY_CHECK(skip_reducer());
    if (shapes.empty()) shapes.emplace_back().is_tuple = true;
    add_results(region, std::move(out), std::move(shapes));
    return {};
  }

  /// The body of a reduction stands on lines of its own.
  Result<void> skip_reducer() {
    const std::size_t at = in_.at();
    in_.skip_blanks();
    if (!in_.sees("reducer(")) {
      in_.move_to(at);
      return {};
    }
    in_.take("reducer");
    for (int part = 0; part < 2; ++part) {
      while (!in_.done() && in_.peek() != (part == 0 ? '(' : '{')) {
        if (part == 1 && in_.peek() == '(') {
          ASSAY_TRY(ignored, in_.bracketed());
          static_cast<void>(ignored);
        } else {
          in_.move_to(in_.at() + 1);
        }
      }
      ASSAY_TRY(ignored, in_.bracketed());
      static_cast<void>(ignored);
    }
    return {};
  }

  /// Regions of a case or an if: ({ ... }, { ... })
  Result<void> branches(Region& region, const Statement& statement, int depth) {
    const std::size_t behind = in_.at();
    in_.move_to(in_.text().find("({", statement.at) + 1);
    do {
      in_.skip_blanks();
      if (!in_.take("{")) break;
      Region inner;
      inner.outer = &region;
      ASSAY_CHECK(block(inner, depth + 1));
      inner.computation.name = made(fmt::format("branch.{}", in_.at()));
      ASSAY_TRY(name, close(inner));
      region.calls.push_back(
          {0, static_cast<std::uint32_t>(region.computation.instructions.size()), "branch_computations", name});
    } while (in_.take(","));
    in_.move_to(behind);
    return {};
  }

  /// stablehlo.while(%i = %a, %j = %b) : types  cond { ... } do { ... }
  Result<void> loop(Region& region, const Statement& statement, int depth) {
    Cursor head(statement.text, module_.file);
    head.skip_blanks();
    if (head.peek() != '(') return in_.fault_at(statement.at, "a while lists its values", "while(%i = %a) : types");
    ASSAY_TRY(inside, head.bracketed());
    std::vector<std::string_view> names, initial;
    for (const std::string_view pair : top_level_parts(inside)) {
      const std::size_t equals = pair.find('=');
      if (!pair.starts_with("%") || equals == std::string_view::npos)
        return in_.fault_at(statement.at, "expected %name = %value", "while(%i = %a) : types");
      names.push_back(trim(pair.substr(1, equals - 1)));
      initial.push_back(pair.substr(equals + 1));
    }
    std::string_view types = head.rest();
    types = types.substr(std::min(types.find(':') + 1, types.size()));
    if (const std::size_t more = types.find(" attributes"); more != std::string_view::npos)
      types = types.substr(0, more);
    std::vector<Shape> shapes;
    for (const std::string_view type : top_level_parts(types)) {
      ASSAY_TRY(shape, parse_tensor_type(type, in_, statement.at));
      shapes.push_back(std::move(shape));
    }
    if (shapes.size() != names.size())
      return in_.fault_at(statement.at, fmt::format("a while of {} values has {} types", names.size(), shapes.size()),
                          "while(%i = %a) : types");
    Instruction tuple;
    tuple.name = made(fmt::format("{}.init", statement.name));
    tuple.opcode = "tuple";
    tuple.offset = statement.at;
    tuple.shape.is_tuple = true;
    tuple.shape.members = shapes;
    for (const std::string_view text : initial) {
      ASSAY_TRY(found, values(region, text, statement.at));
      tuple.operands.insert(tuple.operands.end(), found.begin(), found.end());
    }
    const std::uint32_t carried = add(region, std::move(tuple));
    std::string_view parts[2];
    for (const auto& [word, part] : {std::pair("cond", 0), std::pair("do", 1)}) {
      ASSAY_CHECK(in_.expect(word, "of a while"));
      ASSAY_CHECK(in_.expect("{", "of a while"));
      Region inner;
      inner.outer = &region;
      carry(inner, names, shapes, statement.at);
      ASSAY_CHECK(block(inner, depth + 1));
      inner.computation.name = made(fmt::format("{}.{}.{}", statement.name, word, in_.at()));
      ASSAY_TRY(name, close(inner));
      parts[part] = name;
    }
    Instruction out;
    out.name = statement.name.empty() ? made(fmt::format("while{}", in_.at())) : statement.name;
    out.opcode = "while";
    out.offset = statement.at;
    out.operands = {carried};
    const auto number = static_cast<std::uint32_t>(region.computation.instructions.size());
    region.calls.push_back({0, number, "condition", parts[0]});
    region.calls.push_back({0, number, "body", parts[1]});
    if (shapes.size() == 1) {  // the tuple of one value has no member names of its own
      Instruction all = std::move(out);
      all.name = made(fmt::format("{}.all", statement.name));
      all.shape.is_tuple = true;
      all.shape.members = shapes;
      Instruction member;
      member.operands = {add(region, std::move(all))};
      member.name = statement.name;
      member.opcode = "get-tuple-element";
      member.shape = shapes.front();
      member.attributes.emplace_back("index", "0");
      add(region, std::move(member));
      return {};
    }
    add_results(region, std::move(out), std::move(shapes));
    return {};
  }

  /// The values of a loop inside of it: members of one parameter.
  void carry(Region& inner, const std::vector<std::string_view>& names, const std::vector<Shape>& shapes,
             std::size_t at) {
    Instruction parameter;
    parameter.name = "carried";
    parameter.opcode = "parameter";
    parameter.argument = "0";
    parameter.offset = at;
    parameter.shape.is_tuple = true;
    parameter.shape.members = shapes;
    add(inner, std::move(parameter));
    for (std::size_t i = 0; i < names.size(); ++i) {
      Instruction member;
      member.name = names[i];
      member.opcode = "get-tuple-element";
      member.shape = shapes[i];
      member.operands = {0};
      member.attributes.emplace_back("index", made(fmt::format("{}", i)));
      member.offset = at;
      add(inner, std::move(member));
    }
  }

  /// Makes the root of a region from what it returns, and adds the region to the module.
  Result<std::string_view> close(Region& region) {
    ASSAY_TRY(found, values(region, region.returned, in_.at()));
    Computation& computation = region.computation;
    // A loop over one value returns a tuple of it.
    const bool of_loop = !computation.instructions.empty() && computation.instructions.front().name == "carried" &&
                         computation.instructions.front().shape.members.size() == 1;
    const bool tests = found.size() == 1 && computation.instructions[found.front()].shape.element &&
                       computation.instructions[found.front()].shape.element->name == "pred";
    if (found.size() == 1 && (!of_loop || tests)) {
      computation.root = found.front();
    } else {
      Instruction root;
      root.name = made(fmt::format("returned.{}", in_.at()));
      root.opcode = "tuple";
      root.operands = found;
      root.shape.is_tuple = true;
      for (const std::uint32_t member : found) root.shape.members.push_back(computation.instructions[member].shape);
      computation.root = add(region, std::move(root));
    }
    const auto number = static_cast<std::uint32_t>(module_.computations.size());
    for (OpenNames::Call call : region.calls) {
      call.computation = number;
      open_.calls.push_back(call);
    }
    module_.computations.push_back(std::move(computation));
    return module_.computations.back().name;
  }

  Module& module_;
  Cursor in_;
  OpenNames open_;
  int functions_ = 0;
};

}  // namespace

Result<Module> read_stablehlo(std::string text, std::string_view file) {
  Module module;
  module.file = file;
  module.is_stablehlo = true;
  module.text = std::make_unique<const std::string>(std::move(text));
  StableReader reader(module, module.file);
  ASSAY_CHECK(reader.read());
  return module;
}

}  // namespace assay::hlo

// StableHLO in MLIR's textual form: functions and regions become computations, operations instructions of HLO.
#include <fmt/format.h>

#include <algorithm>
#include <cctype>

#include "assay/base/assign.h"
#include "assay/base/text.h"
#include "assay/profile/hlo/linking.h"
#include "assay/profile/hlo/sharding.h"
#include "assay/profile/hlo/stablehlo_types.h"

namespace assay::hlo {
namespace {

constexpr const char* statement_form = "operations are written as %1 = stablehlo.add %0, %0 : tensor<8xf32>";
constexpr const char* while_form = "while(%i = %a) : types";
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
      const bool generic = in_.take("\"");  // the name of an operation in the generic form
      if (in_.sees("module") || in_.sees("builtin.module"))
        ASSAY_CHECK(module_header());
      else if (in_.sees("func.func"))
        ASSAY_CHECK(function(generic));
      else if (in_.sees("sdy.mesh"))
        ASSAY_CHECK(mesh());
      else if (in_.sees("{-#"))
        break;  // resources
      else if (in_.sees("}"))
        ASSAY_CHECK(module_counts(taken_line()));
      else if (in_.sees("#"))
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
  std::string_view made(std::string text) { return module_.keep(std::move(text)); }

  std::string_view taken_line() {
    const std::size_t start = in_.at();
    in_.skip_line();
    return in_.text().substr(start, std::min(in_.at(), in_.text().size()) - start);
  }

  Result<void> module_counts(std::string_view line) {
    for (const auto& [key, count] :
         {std::pair("num_partitions", &module_.partitions), std::pair("num_replicas", &module_.replicas)})
      if (const std::size_t at = line.find(key); at != std::string_view::npos) {
        const auto found = number_list(line.substr(at, 40));
        if (found.empty() || found.front() < 1 || found.front() > most_devices)
          return in_.fault(fmt::format("{} is a count of 1 and more", key), "such as 8 : i32");
        *count = found.front();
      }
    return {};
  }

  Result<void> module_header() {
    const std::string_view line = taken_line();
    module_.name = symbol(line);
    return module_counts(line);
  }

  Result<void> mesh() {
    const std::size_t at = in_.at();
    const std::string_view line = taken_line();
    ASSAY_TRY(found, parse_sdy_mesh(line, in_.where(at)));
    std::int64_t devices = 1, most = 0;
    for (const NamedAxis& axis : found) devices *= axis.second;
    for (const NamedAxis& axis : module_.mesh) most = std::max<std::int64_t>(most, 1) * axis.second;
    if (devices > most && !found.empty()) module_.mesh = found;
    meshes_.emplace_back(symbol(line), std::move(found));
    return {};
  }

  Result<void> function(bool generic) {
    const std::size_t start = in_.at();
    Region region;
    ++functions_;
    if (generic) {
      in_.move_to(start + std::string_view("func.func\"()").size());
      ASSAY_TRY(properties, in_.balanced());
      const Pieces pieces = pieces_of(properties);
      if (pieces.brackets.size() < 2 || properties[pieces.brackets[1].first] != '(')
        return in_.fault_at(start, "a function has properties and a body", "such as \"func.func\"() <{...}> ({ ... })");
      const std::size_t offset = static_cast<std::size_t>(properties.data() - in_.text().data());
      const std::string_view head = properties.substr(0, pieces.brackets[1].first);
      region.computation.name = symbol(head);
      const std::vector<std::string_view> given = attribute_lists(head, "arg_attrs");
      if (region.computation.name == "main") module_.result_shardings = attribute_lists(head, "res_attrs");
      const std::size_t end = in_.at();
      in_.move_to(offset + pieces.brackets[1].first + 1);
      ASSAY_CHECK(in_.expect("{", "of a function"));
      ASSAY_TRY(arguments, block_arguments());
      ASSAY_CHECK(parameters(region, arguments, given, start));
      ASSAY_CHECK(block(region, 0));
      in_.move_to(end);
    } else {
      const std::size_t name_at = in_.text().find('@', start);
      if (name_at == std::string_view::npos) return in_.fault("a function has a name", "such as func.func @main()");
      in_.move_to(name_at + 1);
      region.computation.name = in_.name();
      ASSAY_TRY(arguments, in_.bracketed());
      ASSAY_CHECK(parameters(region, top_level_parts(arguments), {}, start));
      ASSAY_CHECK(results(region.computation.name == "main"));
      ASSAY_CHECK(in_.expect("{", "of a function"));
      ASSAY_CHECK(block(region, 0));
    }
    ASSAY_CHECK(close(region));
    return {};
  }

  /// Results of a function: in brackets if they have attributes, which are kept of the main one.
  Result<void> results(bool main) {
    while (!in_.done() && in_.peek() != '{') {
      if (in_.peek() == '(') {
        ASSAY_TRY(inside, in_.bracketed());
        if (main) module_.result_shardings = top_level_parts(inside);
      } else if (in_.sees("attributes")) {
        in_.take("attributes");
        in_.skip_blanks();
        ASSAY_CHECK(in_.bracketed());
      } else {
        in_.move_to(in_.at() + 1);
      }
    }
    return {};
  }

  Result<void> parameters(Region& region, const std::vector<std::string_view>& arguments,
                          const std::vector<std::string_view>& given, std::size_t at) {
    for (std::size_t i = 0; i < arguments.size(); ++i) {
      const auto number = static_cast<std::int64_t>(i);
      const std::string_view attributes = i < given.size() ? given[i] : arguments[i];
      ASSAY_CHECK(parameter(region, arguments[i], attributes, number, at));
      if (const std::size_t alias = attributes.find("tf.aliasing_output");
          region.computation.name == "main" && alias != std::string_view::npos)
        if (const auto output = number_list(attributes.substr(alias, 40)); !output.empty())
          module_.aliases.push_back({output.front(), number});
    }
    return {};
  }

  /// Arguments of a region: ^bb0(%a: tensor<f32>, %b: tensor<f32>):
  Result<std::vector<std::string_view>> block_arguments() {
    in_.skip_blanks();
    if (!in_.sees("^")) return std::vector<std::string_view>();
    while (!in_.done() && in_.peek() != '(' && in_.peek() != ':') in_.move_to(in_.at() + 1);
    std::vector<std::string_view> out;
    if (in_.peek() == '(') {
      ASSAY_TRY(inside, in_.bracketed());
      out = top_level_parts(inside);
    }
    ASSAY_CHECK(in_.expect(":", "behind the arguments of a region"));
    return out;
  }

  /// %arg0: tensor<8xf32> {mhlo.sharding = "..."}
  Result<void> parameter(Region& region, std::string_view text, std::string_view attributes, std::int64_t number,
                         std::size_t at) {
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
    for (auto& [key, value] :
         hlo_attributes("parameter", attributes.substr(attributes.data() == text.data() ? stop : 0)))
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
    Statement out;
    out.at = in_.at();
    constexpr std::int64_t most_results = 1 << 20;
    while (in_.take("%")) {
      out.names.push_back(in_.name());
      if (in_.take(":")) {
        const auto count = in_.integer();
        if (!count || *count < 0 || *count > most_results)
          return in_.fault("expected a number of results", statement_form);
        out.count = static_cast<std::size_t>(*count);
      }
      if (!in_.take(",")) break;
    }
    if (!out.names.empty()) ASSAY_CHECK(in_.expect("=", "behind the result of an operation"));
    const bool quoted = in_.take("\"");
    out.operation = in_.name();
    if (out.operation.empty()) return in_.fault("expected an operation", statement_form);
    if (quoted) ASSAY_CHECK(in_.expect("\"", "behind the name of an operation"));
    const std::size_t text_at = in_.at();
    while (true) {
      ASSAY_CHECK(in_.balanced());
      if (in_.done() || in_.peek() != ',') break;
      in_.move_to(in_.at() + 1);
    }
    divide(out, *module_.made, in_.text().substr(text_at, std::min(in_.at(), in_.text().size()) - text_at), text_at,
           quoted);
    if (out.operation == "return" || out.operation.ends_with(".return")) {
      region.returned = out.operands;
      return {};
    }
    if (out.operation.ends_with(".while")) return loop(region, out, depth);
    return plain(region, out, depth);
  }

  /// Adds an instruction and, where it has several results, one for each of them.
  void add_results(Region& region, Instruction instruction, std::vector<Shape> shapes,
                   const std::vector<std::string_view>& names) {
    const std::string_view name = instruction.name;
    if (shapes.size() == 1) {
      instruction.shape = std::move(shapes.front());
      add(region, std::move(instruction));
      return;
    }
    instruction.shape.is_tuple = true;
    instruction.shape.members = std::move(shapes);
    const std::size_t count = instruction.shape.members.size();
    if (names.size() > 1) instruction.name = made(fmt::format("{}.all", name));
    const std::uint32_t all = add(region, std::move(instruction));
    for (std::size_t i = 0; i < count; ++i)
      add(region, member_of(region.computation, all, made(std::to_string(i)),
                            names.size() > 1 ? names[i] : made(fmt::format("{}#{}", name, i))));
  }

  Result<void> plain(Region& region, const Statement& statement, int depth) {
    Instruction out;
    out.name = statement.names.empty() ? made(fmt::format("op{}", in_.at())) : statement.name();
    out.opcode = made(hlo_opcode(statement.operation));
    out.offset = statement.at;
    std::vector<Shape> shapes;
    if (!statement.types.empty())
      ASSAY_SET(shapes,
                result_types(statement.types, std::max(statement.count, statement.names.size()), in_, statement.at));
    if (out.opcode == "constant") {
      const std::size_t dense = statement.attributes.find("dense<");
      out.argument = trim(statement.attributes);
      if (dense != std::string_view::npos) {
        const std::string_view value = statement.attributes.substr(dense + 6);
        out.argument = value.substr(0, value.find('>'));
      }
    } else {
      ASSAY_SET(out.operands, values(region, statement.operands, statement.at));
      if (statement.operands.find("init:") != std::string_view::npos)  // arrays and their starts in turns
        std::stable_partition(out.operands.begin(), out.operands.end(),
                              [i = 0](std::uint32_t) mutable { return i++ % 2 == 0; });
    }
    for (auto& [key, value] : hlo_attributes(out.opcode, statement.attributes))
      out.attributes.emplace_back(key, made(std::move(value)));
    if (statement.operation.starts_with("sdy.") && out.opcode == "custom-call")
      out.attributes.emplace_back("custom_call_target", "\"Sharding\"");
    else
      add_called(region, statement, out);
    if (std::string groups = mesh_groups(statement.attributes, meshes_, module_.mesh); !groups.empty())
      out.attributes.emplace_back("replica_groups", made(std::move(groups)));
    ASSAY_CHECK(add_regions(region, statement, depth, out));
    ASSAY_CHECK(read_reducer(region, depth, out));
    if (shapes.empty()) shapes.emplace_back().is_tuple = true;
    if (statement.names.size() > 1 && statement.names.size() != shapes.size())
      return in_.fault_at(statement.at, fmt::format("{} names for {} results", statement.names.size(), shapes.size()),
                          statement_form);
    add_results(region, std::move(out), std::move(shapes), statement.names);
    return {};
  }

  /// What calls call: @name behind it, or in the generic form an attribute.
  void add_called(Region& region, const Statement& statement, Instruction& out) {
    const std::string_view text = statement.attributes;
    const auto behind_at = [&](std::size_t at) {
      const std::size_t sign = text.find('@', at);
      return sign == std::string_view::npos ? "" : text.substr(sign + 1, text.find_first_of("( ,>}{", sign) - sign - 1);
    };
    if (out.opcode == "call") {
      for (const std::string_view key : {"decomposition", "callee"})
        if (const std::size_t at = text.find(key); at != std::string_view::npos)
          return add_call(region, "to_apply", behind_at(at));
      if (statement.regions.empty()) add_call(region, "to_apply", behind_at(0));
    }
    if (out.opcode == "custom-call") {
      const auto named = text_after(text, "call_target_name");
      out.attributes.emplace_back("custom_call_target", made(fmt::format("\"{}\"", named ? *named : behind_at(0))));
      out.attributes.emplace_back("backend_config", made(unescaped(text)));
    }
  }

  void add_call(Region& region, std::string_view key, std::string_view name) {
    region.calls.push_back({0, static_cast<std::uint32_t>(region.computation.instructions.size()), key, name});
  }

  /// Regions become computations: branches, what a manual computation does on each device, and what a reduction, a sort
  /// or a scatter does with single elements, unless that is one operation on two of them.
  Result<void> add_regions(Region& region, const Statement& statement, int depth, Instruction& out) {
    const std::size_t behind = in_.at();
    const bool branches = out.opcode == "conditional", runs = branches || out.opcode == "call";
    if (!runs && !statement.regions.empty() && note_applied(statement.regions.front(), behind, out)) return {};
    for (const std::size_t at : statement.regions) {
      Region inner;
      inner.outer = &region;
      in_.move_to(at);
      std::vector<std::string_view> arguments;
      if (in_.peek() == '(') {
        ASSAY_TRY(inside, in_.bracketed());
        arguments = top_level_parts(inside);
        ASSAY_CHECK(in_.expect("{", "of a region"));
      } else {
        in_.take("{");
        ASSAY_SET(arguments, block_arguments());
      }
      inner.computation.name = made(fmt::format("region.{}", at));
      ASSAY_CHECK(parameters(inner, arguments, {}, at));
      ASSAY_CHECK(block(inner, depth + 1));
      ASSAY_TRY(name, close(inner));
      const bool second = !runs && at != statement.regions.front();  // of select-and-scatter
      add_call(region, branches ? "branch_computations" : second ? "scatter" : "to_apply", name);
    }
    in_.move_to(behind);
    return {};
  }

  /// Whether a region is one operation on two elements, which its name says all about.
  bool note_applied(std::size_t from, std::size_t to, Instruction& out) {
    const std::string_view applied = made(applied_operation(in_.text().substr(from, to - from)));
    out.attributes.emplace_back("applies", applied);
    return !applied.empty() && applied != "compare" && out.opcode != "select-and-scatter";
  }

  /// The body of a reduction stands on lines of its own, and names what it has of each array, so far and next:
  /// reducer(%a: ..., %b: ...) (%c: ..., %d: ...) { ... }
  Result<void> read_reducer(Region& region, int depth, Instruction& out) {
    const std::size_t at = in_.at();
    in_.skip_blanks();
    if (!in_.take("reducer")) {
      in_.move_to(at);
      return {};
    }
    std::vector<std::string_view> arguments, next;
    while (in_.skip_blanks(), !in_.done() && in_.peek() == '(') {
      ASSAY_TRY(pair, in_.bracketed());
      const std::vector<std::string_view> both = top_level_parts(pair);
      if (both.size() != 2)
        return in_.fault("a reducer names two elements of each array", "(%a: tensor<f32>, %b: tensor<f32>)");
      arguments.push_back(both[0]);
      next.push_back(both[1]);
    }
    arguments.insert(arguments.end(), next.begin(), next.end());
    const std::size_t open = in_.at();
    ASSAY_CHECK(in_.expect("{", "of a reducer"));
    Region inner;
    inner.outer = &region;
    inner.computation.name = made(fmt::format("region.{}", open));
    ASSAY_CHECK(parameters(inner, arguments, {}, open));
    ASSAY_CHECK(block(inner, depth + 1));
    if (note_applied(open, in_.at(), out)) return {};
    ASSAY_TRY(name, close(inner));
    add_call(region, "to_apply", name);
    return {};
  }

  /// stablehlo.while(%i = %a, %j = %b) : types  cond { ... } do { ... }, or both as regions that name their values.
  Result<void> loop(Region& region, const Statement& statement, int depth) {
    const bool generic = !statement.regions.empty();
    std::vector<std::string_view> names;
    Instruction tuple;
    tuple.name = made(fmt::format("{}.init", statement.name()));
    tuple.opcode = "tuple";
    tuple.offset = statement.at;
    tuple.shape.is_tuple = true;
    const std::size_t open = statement.operands.find('(');
    if (open == std::string_view::npos) return in_.fault_at(statement.at, "a while lists its values", while_form);
    for (const std::string_view pair :
         top_level_parts(statement.operands.substr(open + 1, statement.operands.rfind(')') - open - 1))) {
      const std::size_t equals = pair.find('=');
      if (!pair.starts_with("%") || (!generic && equals == std::string_view::npos))
        return in_.fault_at(statement.at, "expected %name = %value", while_form);
      if (!generic) names.push_back(trim(pair.substr(1, equals - 1)));
      ASSAY_TRY(found, values(region, pair.substr(generic ? 0 : equals + 1), statement.at));
      tuple.operands.insert(tuple.operands.end(), found.begin(), found.end());
    }
    std::string_view types = statement.types;
    if (const std::size_t more = types.find(" attributes"); more != std::string_view::npos)
      types = types.substr(0, more);
    ASSAY_TRY(shapes, result_types(types, tuple.operands.size(), in_, statement.at));
    const bool counted = generic ? statement.regions.size() == 2 : names.size() == shapes.size();
    if (shapes.size() != tuple.operands.size() || !counted)
      return in_.fault_at(statement.at,
                          fmt::format("a while of {} values has {} types", tuple.operands.size(), shapes.size()),
                          while_form);
    tuple.shape.members = shapes;
    const std::uint32_t carried = add(region, std::move(tuple));
    const std::size_t behind = in_.at();
    std::string_view parts[2];
    for (const auto& [word, part] : {std::pair("cond", 0), std::pair("do", 1)}) {
      if (generic)
        in_.move_to(statement.regions[static_cast<std::size_t>(part)]);
      else
        ASSAY_CHECK(in_.expect(word, "of a while"));
      ASSAY_CHECK(in_.expect("{", "of a while"));
      if (generic) {
        ASSAY_TRY(arguments, block_arguments());
        names.clear();
        for (const std::string_view argument : arguments)
          names.push_back(trim(argument.substr(std::min<std::size_t>(1, argument.size()), argument.find(':') - 1)));
        if (names.size() != shapes.size())
          return in_.fault("a region of a while names all its values", "^bb0(%i: tensor<i32>, %x: tensor<8xf32>):");
      }
      Region inner;
      inner.outer = &region;
      carry(inner, names, shapes, statement.at);
      ASSAY_CHECK(block(inner, depth + 1));
      inner.computation.name = made(fmt::format("{}.{}.{}", statement.name(), word, in_.at()));
      ASSAY_SET(parts[part], close(inner));
    }
    if (generic) in_.move_to(behind);
    Instruction out;
    out.name = statement.names.empty() ? made(fmt::format("while{}", in_.at())) : statement.name();
    out.opcode = "while";
    out.offset = statement.at;
    out.operands = {carried};
    add_call(region, "condition", parts[0]);
    add_call(region, "body", parts[1]);
    if (shapes.size() == 1) {  // the tuple of one value has no member names of its own
      Instruction all = std::move(out);
      all.name = made(fmt::format("{}.all", statement.name()));
      all.shape.is_tuple = true;
      all.shape.members = shapes;
      add(region, member_of(region.computation, add(region, std::move(all)), "0", statement.name()));
      return {};
    }
    add_results(region, std::move(out), std::move(shapes), statement.names);
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
    for (std::size_t i = 0; i < names.size(); ++i)
      add(inner, member_of(inner.computation, 0, made(std::to_string(i)), names[i]));
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
      computation.root = add(region, tuple_of(computation, found, made(fmt::format("returned.{}", in_.at()))));
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
  NamedMeshes meshes_;
  int functions_ = 0;
};

}  // namespace

Result<Module> read_stablehlo(std::string text, std::string_view file) {
  Module module;
  module.file = file;
  module.is_stablehlo = true;
  blank_locations(text);
  module.text = std::make_shared<const std::string>(std::move(text));
  StableReader reader(module, module.file);
  ASSAY_CHECK(reader.read());
  return module;
}

}  // namespace assay::hlo

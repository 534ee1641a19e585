#include "assay/ask/verbs/table/schema.h"

#include <fmt/format.h>

#include <algorithm>

#include "assay/ask/launch/target.h"
#include "assay/ask/verbs/table/grammar.h"
#include "assay/ask/verbs/table/pages.h"
#include "assay/ask/verbs/table/value_kinds.h"
#include "assay/base/dtype.h"
#include "assay/base/text.h"
#include "assay/base/version.h"

namespace assay::verbs {
namespace {

using report::Items;
using report::Members;
using report::Value;

Value refer(std::string_view name) { return Members{{"$ref", fmt::format("#/$defs/{}", name)}}; }
Value of_type(std::string_view type) { return Members{{"type", type}}; }

Value object(Members properties, std::initializer_list<std::string_view> optional = {}) {
  Items required;
  for (const auto& [key, value] : properties)
    if (std::find(optional.begin(), optional.end(), key) == optional.end()) required.emplace_back(key);
  return Members{{"type", "object"},
                 {"properties", std::move(properties)},
                 {"required", std::move(required)},
                 {"additionalProperties", false}};
}

Value with(Value schema, std::string_view key, Value value) {
  schema.make_members().emplace_back(key, std::move(value));
  return schema;
}

/// Words, and as numbers those that are numbers.
Items words_of(std::string_view alternatives) {
  Items words;
  for (const std::string& word : split(alternatives, '|')) {
    words.emplace_back(word);
    if (const auto number = parse_number(word)) words.emplace_back(static_cast<std::int64_t>(*number));
  }
  return words;
}

/// What JSON may hold for a value of this kind; null is as good as nothing.
Items types_of(ValueKind kind) {
  switch (kind) {
    case ValueKind::flag:
      return {"boolean", "null"};
    case ValueKind::count:
      return {"integer", "string", "null"};
    case ValueKind::number:
    case ValueKind::share:
      return {"number", "string", "null"};
    case ValueKind::model:
    case ValueKind::catalogue:
      return {"string", "number", "object", "null"};
    default:
      return {"string", "number", "null"};
  }
}

/// What stands for itself in a schema, and what front ends need beyond it: the kind of value and its unit.
Members value_members(ValueType type) {
  Members out{{"kind", name(type.kind)}};
  if (!type.unit.empty()) out.emplace_back("unit", type.unit);
  if (type.kind == ValueKind::dtype) {
    Items formats;
    for (const DtypeFacts& dtype : all_dtypes()) formats.emplace_back(dtype.name);
    out.emplace_back("examples", std::move(formats));
  }
  return out;
}

/// What the values of an option are called where the catalogue knows: programs that run a plan, with the software whose
/// properties they have, and what starts them.
Items names_of(const VerbSpec& verb, const OptionSpec& option) {
  Items out;
  const bool is_program = option.name == "emit", is_launcher = option.name == "launcher";
  if (!is_program && !is_launcher) return out;
  if (is_launcher) {
    const hardware::Catalogue catalogue = hardware::Catalogue::builtin();
    for (const std::string& id : split(option.choices, '|'))
      if (const auto launcher = launch::find_launcher(catalogue, id, "schema"))
        out.emplace_back(Members{{"id", id}, {"name", launcher->name}});
    return out;
  }
  for (const launch::Target& target : programs_of(verb))
    out.emplace_back(Members{{"id", target.id}, {"name", target.name}, {"software", target.software}});
  return out;
}

Value option_schema(const VerbSpec& verb, const OptionSpec& option) {
  const ValueType type = type_of(option);
  Members one;
  if (type.kind == ValueKind::choice) {
    Items words = words_of(option.choices);
    words.emplace_back();
    one.emplace_back("enum", std::move(words));
  } else {
    Items types = types_of(type.kind);
    if (!option.detail.empty()) types.emplace_back("string");
    if (option.may_stand_alone) types.emplace_back("boolean");
    one.emplace_back("type", std::move(types));
  }
  Members out;
  if (option.repeatable)
    out = {{"anyOf", Items{Members(one), Members{{"type", "array"}, {"items", Members(one)}}}}};
  else
    out = std::move(one);
  const std::string inputs = inputs_text(verb, option);
  out.emplace_back("description", option_help(option) + (inputs.empty() ? "" : fmt::format(" (for {})", inputs)));
  if (!option.fallback.empty()) out.emplace_back("default", option.fallback);
  if (!option.offers.empty()) out.emplace_back("examples", words_of(option.offers));
  if (!option.value.empty()) out.emplace_back("placeholder", option.value);
  for (auto& member : value_members(type))
    if (member.first != "examples" || option.offers.empty()) out.push_back(std::move(member));
  if (Items names = names_of(verb, option); !names.empty()) out.emplace_back("names", std::move(names));
  return out;
}

Value argument_schema(const VerbSpec& verb, const ArgumentSpec& argument) {
  const ValueType type = type_of(verb, argument);
  Members one{{"type", types_of(type.kind)}};
  Members out = one;
  if (argument.repeatable) {
    Items either{Members(one), Members{{"type", "array"}, {"items", Members(one)}}};
    out = {{"anyOf", std::move(either)}};
  }
  out.emplace_back("description", argument.help);
  if (!argument.offers.empty()) out.emplace_back("examples", words_of(argument.offers));
  for (auto& member : value_members(type)) out.push_back(std::move(member));
  return out;
}

/// Arguments and options; names may be written with _ for -, which the schema does not list.
Value arguments_schema(const VerbSpec& verb) {
  Members properties;
  Items required, never;
  const auto& arguments = verb.arguments;
  const bool launched = find_option(verb, "emit") != nullptr;  // --from may name the rest
  for (const ArgumentSpec& argument : arguments) {
    properties.emplace_back(argument.name, argument_schema(verb, argument));
    if (argument.required && !launched) required.emplace_back(argument.name);
  }
  for (const OptionSpec& option : verb.options) properties.emplace_back(option.name, option_schema(verb, option));
  for (const OptionSpec& option : common_options())
    if (!option.of_terminal) properties.emplace_back(option.name, option_schema(verb, option));
  for (const auto& [one, other, why] : verb.exclusive) {
    const Value given = Members{{"not", of_type("null")}};
    Value both = Members{{"required", Items{one, other}},
                         {"properties", Members{{std::string(one), given}, {std::string(other), given}}}};
    never.emplace_back(Members{{"not", std::move(both)}, {"description", why}});
  }
  Members out{{"type", "object"}, {"properties", std::move(properties)}};
  if (!required.empty()) out.emplace_back("required", std::move(required));
  if (!never.empty()) out.emplace_back("allOf", std::move(never));
  out.emplace_back("additionalProperties", false);
  return out;
}

Value request_schema(const VerbSpec& verb) {
  Members properties{{"verb", Members{{"const", verb.name}}}, {"arguments", arguments_schema(verb)}};
  if (verb.has_picture)
    properties.emplace_back("picture",
                            Members{{"enum", Items{"still", "steps"}},
                                    {"description", "also draw the answer, or each of its steps where it has some"}});
  Members out{{"title", fmt::format("assay {}", verb.name)}, {"description", verb.summary}, {"type", "object"}};
  out.emplace_back("properties", std::move(properties));
  Items required{"verb"};
  if (find_option(verb, "on") || (!verb.arguments.empty() && verb.arguments.front().required))
    required.emplace_back("arguments");
  out.emplace_back("required", std::move(required));
  out.emplace_back("additionalProperties", false);
  return out;
}

Value results_schema(const VerbSpec& verb) {
  return schema_of(fmt::format("{}{}, derivatives?: $derivatives", declared_text("answers/shared.txt"),
                               trim(declared_text(fmt::format("answers/{}.txt", verb.name)))));
}

Value answer_schema(const VerbSpec& verb) {
  Members inputs{{"type", "object"},
                 {"description", "the request: verb, arguments and options as they were given"},
                 {"properties", Members{{"verb", Members{{"const", verb.name}}}}},
                 {"required", Items{"verb"}}};
  return object(
      {{"schema", Members{{"const", 1}}},
       {"version", of_type("string")},
       {"headline", with(of_type("string"), "description", "the answer in one sentence")},
       {"outcome", Members{{"enum", Items{"ok", "infeasible", "check failed"}}}},
       {"inputs", std::move(inputs)},
       {"results", results_schema(verb)},
       {"notes", Members{{"type", "array"},
                         {"items", of_type("string")},
                         {"description", "defaults taken and limits of the answer"}}},
       {"derivation", Members{{"type", "array"}, {"items", refer("derivation")}}},
       {"pictures",
        Members{{"type", "array"}, {"items", of_type("string")}, {"description", "what `picture` asked for, as SVG"}}}},
      {"notes", "derivation", "pictures"});
}

/// Forms that all answers share.
Members shared_definitions() {
  const Value number_or_null = Members{{"type", Items{"number", "null"}}};
  const Value text = of_type("string");
  Value quantity = object({{"value", number_or_null},
                           {"unit", text},
                           {"source", text},
                           {"note", text},
                           {"also", Members{{"type", "array"}, {"items", of_type("object")}}}},
                          {"source", "note", "also"});
  Value range = object({{"lower", refer("quantity")},
                        {"estimate", refer("quantity")},
                        {"upper", refer("quantity")},
                        {"interval", refer("interval")}},
                       {"interval"});
  Value interval = object({{"low", refer("quantity")},
                           {"high", refer("quantity")},
                           {"coverage", of_type("number")},
                           {"basis", text},
                           {"rows", of_type("integer")},
                           {"groups", of_type("integer")},
                           {"extrapolates", of_type("boolean")},
                           {"extrapolates_in", Members{{"type", "array"}, {"items", text}}}},
                          {"basis", "rows", "groups", "extrapolates", "extrapolates_in"});
  Value derivation = object({{"name", text},
                             {"value", number_or_null},
                             {"unit", text},
                             {"formula", text},
                             {"source", text},
                             {"bound_by", text},
                             {"repeated", of_type("boolean")},
                             {"from", Members{{"type", "array"}, {"items", refer("derivation")}}}},
                            {"formula", "source", "bound_by", "repeated", "from"});
  Value fault = object({{"kind", Members{{"enum", Items{"usage", "input", "missing", "internal"}}}},
                        {"where", text},
                        {"what", text},
                        {"hint", text},
                        {"also", Members{{"type", "array"}, {"items", refer("fault")}}}},
                       {"also"});
  Value error = object({{"error", refer("fault")},
                        {"request", with(text, "description", "the request, where the error is a bug of ours")}},
                       {"request"});
  return {{"quantity", with(std::move(quantity), "description", "a number in base units; null where it is not finite")},
          {"range", with(std::move(range), "description",
                         "lower and upper are bounds of ideal hardware; the estimate is of real hardware and may lie "
                         "above upper")},
          {"interval", with(std::move(interval), "description",
                            "where the share `coverage` of measurements lies that this estimate was compared with")},
          {"arguments", with(of_type("object"), "description", "arguments of a request that asks for this")},
          {"derivation", std::move(derivation)},
          {"fault", std::move(fault)},
          {"error", std::move(error)}};
}

}  // namespace

Result<Value> json_schema(std::string_view verb) {
  std::vector<const VerbSpec*> wanted;
  if (verb.empty()) {
    for (const VerbSpec& each : verbs()) wanted.push_back(&each);
  } else {
    ASSAY_TRY(found, find_verb(verb));
    wanted.push_back(found);
  }
  Members definitions = shared_definitions();
  Items requests, answers;
  for (const VerbSpec* each : wanted) {
    const std::string request_name = fmt::format("{}.request", each->name),
                      answer_name = fmt::format("{}.answer", each->name);
    definitions.emplace_back(request_name, request_schema(*each));
    definitions.emplace_back(answer_name, answer_schema(*each));
    requests.push_back(refer(request_name));
    answers.push_back(refer(answer_name));
  }
  definitions.emplace_back("request", Members{{"oneOf", std::move(requests)}});
  definitions.emplace_back("answer", Members{{"oneOf", std::move(answers)}});
  return Members{{"$schema", "https://json-schema.org/draft/2020-12/schema"},
                 {"title", verb.empty() ? std::string("assay") : fmt::format("assay {}", verb)},
                 {"description", fmt::format("requests and answers of assay {}; options of a request have `kind`, "
                                             "`unit` and `placeholder` besides the words of JSON Schema",
                                             version)},
                 {"anyOf", Items{refer("request"), refer("answer"), refer("error")}},
                 {"$defs", std::move(definitions)}};
}

}  // namespace assay::verbs

#include "assay/ask/verbs/table/value_kinds.h"

#include <fmt/format.h>

#include <algorithm>

#include "assay/base/text.h"

namespace assay::verbs {
namespace {

struct Placeholders {
  ValueType type;
  std::string_view words;  ///< with blanks between them
};

constexpr Placeholders placeholders[] = {
    {{ValueKind::count}, "N B K M P V X Y Z RANK CHIPS"},  // 4096, 4Mi, 15T
    {{ValueKind::text, "tokens"}, "TOKENS TOKENS|Nseq"},   // 4Mi, or sequences: 1024seq
    {{ValueKind::number}, "F"},
    {{ValueKind::number, "requests/s"}, "R"},
    {{ValueKind::share}, "A SHARE"},
    {{ValueKind::quantity, "s"}, "TIME"},
    {{ValueKind::quantity, "B"}, "BYTES CAP"},
    {{ValueKind::quantity, "B/s"}, "RATE"},
    {{ValueKind::quantity, "FLOP"}, "FLOP"},
    {{ValueKind::quantity, "FLOP/s"}, "FLOP/s"},
    {{ValueKind::quantity, "W"}, "WATTS"},
    {{ValueKind::dtype}, "DTYPE"},
    {{ValueKind::chip}, "CHIP ID"},
    {{ValueKind::cluster}, "CLUSTER"},
    {{ValueKind::model}, "MODEL"},
    {{ValueKind::software}, "NAME[@VERSION]"},
    {{ValueKind::file}, "FILE FILE.json FILE.npz:NAME FILE|COMMAND"},
    {{ValueKind::records}, "FILE|JSON"},
    {{ValueKind::provider}, "PROVIDER|FILE"},
    {{ValueKind::directory}, "DIR"},
    {{ValueKind::catalogue}, "DIR|JSON"},
    {{ValueKind::request}, "REQUEST"},
    // texts with a form of their own, which the help describes
    {{},
     "0..3 AXES B=1..4096 B=128,... B=240,... CHIP=USD CONDITION COUNT D+2F D=..,F=.. DEVICE FAMILY FORMAT HOW "
     "I=4096,... KEY=VALUE LEVEL LEVELS LIST N/M NAME OP PLACE POLICY PROGRAM PROVIDER RxC TENSOR TEXT USD WAY WHAT "
     "WHEN "
     "WHERE WHO X,Y=4 X=4,Y=4 Z=4 batch=1..512 batch=1M..16M bm,bk,bn bytes=1kB..1GB interval|N%|none seq=1k..128k"},
};

const ValueType* find_placeholder(std::string_view value) {
  for (const Placeholders& known : placeholders)
    for (const std::string& word : split(known.words, ' '))
      if (word == value) return &known.type;
  return nullptr;
}

/// Whether a value of this kind names a file by the way it is written. A plain path of a model is the catalogue's to
/// refuse, which knows the names that are none.
bool names_file(ValueKind kind, std::string_view value) {
  switch (kind) {
    case ValueKind::file:
    case ValueKind::directory:
      return !value.empty();  // alone it asks for what would be written
    case ValueKind::catalogue:
    case ValueKind::records:
      return !trim(value).starts_with('{');
    case ValueKind::provider:
      return value.find_first_of("./") != std::string_view::npos;
    case ValueKind::cluster:
    case ValueKind::chip:
      return value.find('@') != std::string_view::npos;
    default:
      return trim(value).starts_with('@');
  }
}

Result<void> refused(std::string_view where, std::string_view what) {
  return fail(std::string(where), std::string(what), "send what the file holds, or use the command line",
              Error::Kind::usage);
}

}  // namespace

ValueType type_of(const OptionSpec& option) {
  if (option.value.empty()) return {ValueKind::flag};
  if (!option.choices.empty()) return {ValueKind::choice};
  const ValueType* known = find_placeholder(option.value);
  return known ? *known : ValueType{};
}

ValueType type_of(const VerbSpec& verb, const ArgumentSpec& argument) {
  if (argument.name == "model") return {ValueKind::model};
  if (argument.name == "cluster") return {ValueKind::cluster};
  if (argument.name == "id") return {ValueKind::chip};
  if (argument.name == "file") return {ValueKind::file};
  if (verb.name == "software") return {ValueKind::software};
  if (argument.name.size() == 1) return {ValueKind::count};
  return {};
}

std::string_view name(ValueKind kind) {
  constexpr std::string_view names[] = {"flag",     "text",      "choice",    "count",   "number",  "share",
                                        "quantity", "dtype",     "chip",      "cluster", "model",   "software",
                                        "file",     "directory", "catalogue", "records", "request", "provider"};
  return names[static_cast<std::size_t>(kind)];
}

bool names_path(const Request& request, std::string_view option) {
  const OptionSpec* spec = find_option(request.verb(), option);
  const auto value = request.value(option);
  return spec && value && names_file(type_of(*spec).kind, *value);
}

bool may_be_object(ValueKind kind) { return kind == ValueKind::model || kind == ValueKind::catalogue; }

bool is_known_placeholder(std::string_view value) { return value.empty() || find_placeholder(value) != nullptr; }

Result<void> check_without_files(const Request& request, const std::map<std::string, std::string_view>& attached) {
  const VerbSpec& verb = request.verb();
  if (verb.on_this_machine) return refused(verb.name, "this command works on the machine it runs on");
  const auto& arguments = request.arguments();
  if (verb.passes_options && !arguments.empty()) {
    ASSAY_TRY(inner, parse_request(arguments));
    ASSAY_CHECK(check_without_files(inner));
  }
  const bool runs_model =  // `run train MODEL` has no file
      verb.name == "run" && !arguments.empty() && (arguments.front() == "train" || arguments.front() == "serve");
  for (std::size_t i = 0; i < arguments.size() && !verb.arguments.empty(); ++i) {
    const ArgumentSpec& spec = verb.arguments[std::min(i, verb.arguments.size() - 1)];
    if (spec.attachable && attached.contains(arguments[i])) continue;
    // a design without dot and slash is one of the catalogue
    if (verb.name == "design" && arguments[i].find_first_of("./") == std::string::npos) continue;
    if (names_file(runs_model ? ValueKind::model : type_of(verb, spec).kind, arguments[i]))
      return refused(spec.name, "files are not read here");
  }
  const auto check = [&](const OptionSpec& option) -> Result<void> {
    for (const std::string& value : request.values(option.name)) {
      if (option.attachable && attached.contains(value)) continue;
      // the text of a script; files that it names are not read where files may not be
      if (option.name == "from" && value.find('\n') != std::string::npos) continue;
      if (type_of(option).kind == ValueKind::request)
        if (const auto inner = parse_request_text(value)) ASSAY_CHECK(check_without_files(*inner));
      if (names_file(type_of(option).kind, value) || (option.name == "output" && names_output_file(value)))
        return refused(fmt::format("--{}", option.name), "files are neither read nor written here");
    }
    return {};
  };
  for (const OptionSpec& option : verb.options) ASSAY_CHECK(check(option));
  for (const OptionSpec& option : common_options())
    if (find_option(verb, option.name) == &option) ASSAY_CHECK(check(option));
  return {};
}

}  // namespace assay::verbs

#include "assay/ask/launch/target.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>

#include "assay/base/record_reader.h"
#include "assay/base/text.h"

namespace assay::launch {
namespace {

constexpr std::pair<std::string_view, Style> styles[] = {{"arguments", Style::arguments},
                                                         {"overrides", Style::overrides},
                                                         {"toml", Style::toml},
                                                         {"yaml", Style::yaml},
                                                         {"json", Style::json}};

void read_option(Option& out, RecordReader& reader) {
  reader.text("name", out.name);
  if (reader.has("aliases")) reader.texts("aliases", out.aliases);
  if (reader.has("text")) {
    reader.text("text", out.field);
    if (reader.has("suffix")) reader.text("suffix", out.suffix);
  } else if (reader.has("pattern")) {
    reader.text("pattern", out.pattern);
    out.write_only = true;
  } else {
    std::string value;
    reader.text("value", value);
    if (auto product = parse_product(value))
      out.product = std::move(*product);
    else
      reader.fault("value", fmt::format("{} is not a product of fields", in_quotes(value)), "e.g. sequences / dp");
  }
  if (reader.has("standard")) reader.text("standard", out.standard);
  if (reader.has("reason")) reader.text("reason", out.reason);
  reader.flag("launcher", out.launcher);
  reader.flag("first", out.first);
  reader.flag("read_only", out.read_only);
  if (reader.has("instead_of")) reader.text("instead_of", out.instead_of);
  reader.flag("asked", out.asked);
  reader.flag("write_only", out.write_only);
  reader.pairs("when", out.when);
  reader.pairs("unless", out.unless);
}

void read_demand(Demand& out, RecordReader& reader) {
  std::string value;
  reader.text("whole", value);
  reader.text("text", out.text);
  reader.pairs("when", out.when);
  if (auto product = parse_product(value))
    out.product = std::move(*product);
  else
    reader.fault("whole", fmt::format("{} is not a product of fields", in_quotes(value)), "e.g. layers / pp");
}

void read_constant(Constant& out, RecordReader& reader) {
  reader.text("name", out.name);
  reader.text("value", out.value);
  reader.text("reason", out.reason);
  reader.flag("environment", out.environment);
  reader.pairs("when", out.when);
}

void read_required(Required& out, RecordReader& reader) {
  reader.text("name", out.name);
  if (reader.has("value")) reader.text("value", out.value);
  reader.pairs("when", out.when);
}

void read_rendezvous(Rendezvous& out, RecordReader& reader) {
  reader.text("text", out.text);
  reader.pairs("when", out.when);
}

void read_case(Case& out, RecordReader& reader) {
  reader.pairs("when", out.when);
  reader.pairs("options", out.options);
  if (reader.has("reason")) reader.text("reason", out.reason);
}

void read_choice(Choice& out, RecordReader& reader) {
  reader.text("about", out.about);
  reader.pairs("standards", out.standards);
  reader.items("case", out.cases, read_case);
  if (out.cases.empty()) reader.fault("case", "a choice has cases");
}

void read_words(RecordReader& reader, std::string_view key, std::vector<std::string>& out) {
  std::string text;
  reader.text(key, text);
  out = words_of(text);
}

/// Options that cases name are options of the program, too.
void check_names(const Target& target, RecordReader& reader) {
  const auto check = [&](const std::string& name) {
    if (!target.knows(name))
      reader.fault("known", fmt::format("{} has no option {}", target.id, in_quotes(name)),
                   suggestion(name, target.known));
  };
  for (const Option& option : target.options)
    if (!option.first) check(option.name);
  for (const Constant& constant : target.constants)
    if (!constant.environment) check(constant.name);
  for (const Choice& choice : target.choices)
    for (const Case& one : choice.cases)
      for (const auto& [name, value] : one.options) check(name);
}

}  // namespace

std::vector<std::string> words_of(std::string_view text) {
  std::vector<std::string> words;
  std::string word;
  for (const char c : std::string(text) + " ") {
    if (std::isspace(static_cast<unsigned char>(c)) == 0)
      word += c;
    else if (!word.empty())
      words.push_back(std::exchange(word, {}));
  }
  return words;
}

std::optional<Product> parse_product(std::string_view text) {
  Product out;
  int power = 1;
  const std::vector<std::string> words = words_of(text);
  for (std::size_t i = 0; i < words.size(); ++i) {
    if (i % 2 == 1) {
      if (words[i] != "*" && words[i] != "/") return std::nullopt;
      power = words[i] == "*" ? 1 : -1;
      continue;
    }
    Factor factor{words[i], 1, power};
    if (const auto number = parse_number(words[i])) factor = {"", *number, power};
    out.push_back(std::move(factor));
  }
  if (words.size() % 2 == 0) return std::nullopt;
  return out;
}

std::optional<std::string_view> Choice::standard(std::string_view option) const {
  for (const auto& [name, value] : standards)
    if (name == option) return value;
  return std::nullopt;
}

bool Target::knows(std::string_view option) const {
  return std::find(known.begin(), known.end(), option) != known.end();
}

Result<Target> read_target(std::string_view document, std::string_view file) {
  Target out;
  RecordFile shared{.name = std::string(file), .sourced_tables = false};
  ASSAY_CHECK(read_record(document, shared, [&](RecordReader& reader) {
    reader.sources([&](const std::string&, RecordReader& source) {
      TargetSource& one = out.sources.emplace_back();
      source.text("title", one.title);
      source.text("url", one.url);
    });
    reader.text("id", out.id);
    reader.check_id(out.id);
    for (const auto& [key, place] :
         {std::pair{"name", &out.name}, std::pair{"verb", &out.verb}, std::pair{"version", &out.version}})
      reader.text(key, *place);
    for (const auto& [key, place] :
         {std::pair{"command", &out.command}, std::pair{"software", &out.software}, std::pair{"router", &out.router},
          std::pair{"port", &out.port}, std::pair{"image", &out.image}, std::pair{"file", &out.file},
          std::pair{"file_option", &out.file_option}})
      if (reader.has(key)) reader.text(key, *place);
    reader.word("style", styles, out.style);
    if (reader.has("file_options")) read_words(reader, "file_options", out.file_options);
    if (!out.file_option.empty()) out.file_options.push_back(out.file_option);
    reader.flag("reads_only", out.reads_only);
    reader.flag("explicit", out.explicit_);
    read_words(reader, "recognised", out.recognised);
    read_words(reader, "known", out.known);
    if (reader.has("elsewhere")) read_words(reader, "elsewhere", out.elsewhere);
    if (reader.has("lists")) read_words(reader, "lists", out.lists);
    if (reader.has("runs")) read_words(reader, "runs", out.runs.emplace());
    reader.pairs("assumed", out.assumed);
    reader.items("rendezvous", out.rendezvous, read_rendezvous);
    reader.items("option", out.options, read_option);
    reader.items("choice", out.choices, read_choice);
    reader.items("demand", out.demands, read_demand);
    reader.items("constant", out.constants, read_constant);
    reader.items("required", out.required, read_required);
    for (const Option& option : out.options)  // other names of options are names, too
      for (const std::string& alias : option.aliases)
        if (!out.knows(alias)) out.known.push_back(alias);
    check_names(out, reader);
  }));
  return out;
}

Result<const std::vector<Target>*> targets_of(const hardware::Catalogue& catalogue, std::string_view verb) {
  return catalogue.kept<std::vector<Target>>(fmt::format("launch {}", verb), [&]() -> Result<std::vector<Target>> {
    std::vector<Target> out;
    for (const auto& [path, text] : catalogue.files("launch/")) {
      ASSAY_TRY(target, read_target(text, path));
      if (target.verb == verb) out.push_back(std::move(target));
    }
    return out;
  });
}

Result<const Target*> target_of_software(const hardware::Catalogue& catalogue, std::string_view software) {
  const std::string file = fmt::format("launch/{}.toml", software);
  for (const auto& [path, text] : catalogue.files(file))
    return catalogue.kept<Target>(file, [&, &path = path, &text = text] { return read_target(text, path); });
  return nullptr;
}

Result<Target> find_target(const hardware::Catalogue& catalogue, std::string_view verb, std::string_view id,
                           std::string_view where) {
  ASSAY_TRY(all, targets_of(catalogue, verb));
  std::vector<std::string> ids;
  for (const Target& target : *all) {
    if (target.reads_only) continue;
    if (target.id == id) return target;
    ids.push_back(target.id);
  }
  return fail(std::string(where),
              fmt::format("{} is not a program that {} plans can be written for", in_quotes(id), verb),
              suggestion(id, ids), Error::Kind::usage);
}

Result<Launcher> find_launcher(const hardware::Catalogue& catalogue, std::string_view id, std::string_view where) {
  std::vector<std::string> ids;
  for (const auto& [path, text] : catalogue.files("launchers/")) {
    Launcher out;
    RecordFile shared{.name = path, .sourced_tables = false};
    ASSAY_CHECK(read_record(text, shared, [&](RecordReader& reader) {
      reader.sources();
      reader.text("id", out.id);
      reader.check_id(out.id);
      reader.text("name", out.name);
      for (const auto& [key, place] : {std::pair{"script", &out.script}, std::pair{"serve", &out.serve},
                                       std::pair{"serve_over_nodes", &out.serve_over_nodes}})
        reader.text(key, *place);
      reader.pairs("resources", out.resources);
    }));
    if (out.id == id) return out;
    ids.push_back(out.id);
  }
  return fail(std::string(where), fmt::format("unknown launcher {}", in_quotes(id)), suggestion(id, ids),
              Error::Kind::usage);
}

}  // namespace assay::launch

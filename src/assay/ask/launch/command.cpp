#include "assay/ask/launch/command.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <filesystem>

#include "assay/ask/launch/shell.h"
#include "assay/ask/launch/shell_expressions.h"
#include "assay/base/text.h"

namespace assay::launch {
namespace {

using Words = std::vector<std::string>;

std::string file_name(std::string_view path) { return std::string(path.substr(path.rfind('/') + 1)); }

std::optional<Style> style_of(std::string_view path) {
  constexpr std::pair<std::string_view, Style> endings[] = {
      {".toml", Style::toml}, {".yaml", Style::yaml}, {".yml", Style::yaml}, {".json", Style::json}};
  for (const auto& [ending, style] : endings)
    if (path.ends_with(ending)) return style;
  return std::nullopt;
}

std::string plain_name(std::string_view name) {
  std::string out(name);
  std::replace(out.begin(), out.end(), '_', '-');
  while (out.starts_with('-')) out.erase(0, 1);
  return out;
}

/// How many of the options a target has.
std::size_t score(const Target& target, const std::vector<Given>& given) {
  Words names;
  for (const std::string& name : target.known) names.push_back(plain_name(name));
  std::sort(names.begin(), names.end());
  return static_cast<std::size_t>(std::count_if(given.begin(), given.end(), [&](const Given& one) {
    return std::binary_search(names.begin(), names.end(), plain_name(one.name));
  }));
}

/// The target that has the most of the options; nothing where none has a quarter of them.
const Target* best_target(std::span<const Target> targets, const std::vector<Given>& given, std::size_t& most) {
  const Target* best = nullptr;
  for (const Target& target : targets)
    if (const std::size_t n = score(target, given); n > most && 4 * n >= given.size()) {
      best = &target;
      most = n;
    }
  return best;
}

/// Names of options as the target writes them: with dashes on command lines, with dots in files.
std::string target_name(const Target& target, std::string_view name) {
  if (target.knows(name)) return std::string(name);
  for (const std::string& known : target.known)
    if (plain_name(known) == plain_name(name)) return known;
  return std::string(name);
}

bool is_flag(const Target& target, const std::string& name) {
  bool flag = false;
  for (const Choice& choice : target.choices)
    for (const Case& one : choice.cases)
      for (const auto& [option, value] : one.options)
        if (option == name) {
          if (value != "true" && value != "false") return false;
          flag = true;
        }
  return flag;
}

/// Whether an option chooses something.
bool is_chosen(const Target& target, const std::string& name) {
  return std::any_of(target.choices.begin(), target.choices.end(), [&](const Choice& choice) {
    return std::any_of(choice.cases.begin(), choice.cases.end(), [&](const Case& one) {
      return std::any_of(one.options.begin(), one.options.end(), [&](const auto& o) { return o.first == name; });
    });
  });
}

const Option* option_named(const Target& target, const std::string& name) {
  for (const Option& option : target.options)
    if (option.name == name || std::find(option.aliases.begin(), option.aliases.end(), name) != option.aliases.end())
      return &option;
  return nullptr;
}

bool is_number(const std::string& word) { return parse_number(word).has_value(); }

/// A program among the words of a command.
struct Program {
  const Target* target = nullptr;
  std::size_t first = 0, end = 0;  ///< its words
};

/// Where the command starts a program that is known: behind others that start it, if any.
Program program_in(const Reader& reader, const Words& words) {
  Program out;
  std::size_t first = 0;  // behind variables that are set for it
  while (first < words.size() && words[first].find('=') != std::string::npos && !words[first].starts_with('-')) ++first;
  if (first == words.size()) return out;
  const auto& starters = reader.jobs.starters;
  const bool starts = words[first].starts_with('$') ||
                      std::find(starters.begin(), starters.end(), file_name(words[first])) != starters.end();
  for (std::size_t i = first; i < (starts ? words.size() : first + 1); ++i)
    for (const Target& target : reader.targets)
      for (const std::string& known : target.recognised) {
        const std::size_t plus = known.find('+');
        const std::string_view name = std::string_view(known).substr(0, plus);
        const bool second = plus == std::string::npos ||
                            (i + 1 < words.size() && words[i + 1] == std::string_view(known).substr(plus + 1));
        const bool is =
            words[i] == name || file_name(words[i]) == name || (name.ends_with('*') && matches_glob(name, words[i]));
        if (is && second) out = {&target, i, i + (plus == std::string::npos ? 1 : 2)};
      }
  return out;
}

class CommandReader {
 public:
  CommandReader(const Reader& reader, const Program& program, const Variables& files, FoundOptions& out)
      : jobs_(reader.jobs),
        target_(*program.target),
        program_(program),
        files_(files),
        directory_(reader.directory),
        reads_files_(reader.reads_files),
        out_(out) {}

  Result<void> read(const Words& words) {
    out_.target = target_;
    const auto named =
        std::find_if(target_.options.begin(), target_.options.end(), [](const Option& o) { return o.first; });
    bool wants_first = named != target_.options.end();
    for (std::size_t i = 0; i < words.size(); ++i) {
      if (i == program_.first) i = program_.end;
      if (i >= words.size()) break;
      const std::string& word = words[i];
      const bool before = i < program_.first;
      const std::size_t equals = word.find('=');
      if (word.starts_with('-') && word.size() > 1 && !is_number(word)) {
        i = option(words, i, before);
      } else if (!before && equals != std::string::npos && equals > 0 && is_key(word.substr(0, equals))) {
        own_.push_back({target_name(target_, word.substr(0, equals)), word.substr(equals + 1), false});
      } else if (!before && target_.file_options.empty() && style_of(word)) {
        ASSAY_TRY(found, file(word));
        static_cast<void>(found);  // configurations of models and defaults, which the program has itself
      } else if (!before && wants_first) {
        own_.push_back({named->name, word, false});
        wants_first = false;
      }
    }
    bool known = true;
    for (const std::string& config : configs_) {
      ASSAY_TRY(found, file(config));
      known = known && found;
      if (!found && config.find('$') != std::string::npos) out_.asked.push_back(config);
    }
    out_.given.insert(out_.given.end(), own_.begin(), own_.end());
    if (!known) forget_standards();
    return {};
  }

  /// A file that the command names: one that the script writes, or one that exists, there or beside what is read. False
  /// where there is none.
  Result<bool> file(const std::string& path) {
    std::string text;
    std::string place = path;
    std::error_code failed;
    for (const std::string& one : {directory_ + "/" + path, directory_ + "/" + file_name(path)})
      if (!directory_.empty() && !std::filesystem::is_regular_file(place, failed)) place = one;
    const auto written = std::find_if(files_.begin(), files_.end(), [&](const auto& one) {
      return one.first == path || file_name(one.first) == file_name(path);
    });
    if (written != files_.end()) {
      text = written->second;
    } else if (reads_files_ && std::filesystem::is_regular_file(place, failed)) {
      ASSAY_TRY(read, hardware::read_file(place, "--from"));
      text = read;
    } else {
      out_.notes.push_back(fmt::format("{} cannot be read: its options are not known", in_quotes(path)));
      return false;
    }
    auto given = read_document(style_of(path).value_or(target_.style), text, path);
    if (!given && text.find('$') == std::string::npos) return tl::unexpected<Error>(given.error());
    if (!given)
      out_.notes.push_back(
          fmt::format("{} holds values that only a shell knows: its options are not known", in_quotes(path)));
    for (Given& one : given ? *given : std::vector<Given>{}) {
      one.name = target_name(target_, one.name);
      out_.given.push_back(std::move(one));
    }
    return given.has_value();
  }

  /// What a file that is not there may say has no default.
  void forget_standards() {
    for (Option& option : out_.target.options)
      if (!option.launcher) option.standard.clear();
    std::erase_if(out_.target.choices, [&](const Choice& choice) {
      return std::none_of(choice.cases.begin(), choice.cases.end(), [&](const Case& one) {
        return std::any_of(one.options.begin(), one.options.end(), [&](const auto& option) {
          return std::any_of(out_.given.begin(), out_.given.end(),
                             [&](const Given& given) { return plain_name(given.name) == plain_name(option.first); });
        });
      });
    });
  }

 private:
  static bool is_key(std::string_view text) {
    return std::all_of(text.begin(), text.end(), [](char c) {
      return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' || c == '.' || c == '-' || c == '+';
    });
  }

  /// KEY=VALUE of a key that the program has.
  bool is_override(const std::string& word) const {
    const std::size_t equals = word.find('=');
    return equals != std::string::npos && target_.knows(target_name(target_, word.substr(0, equals)));
  }

  bool names_file(const std::string& name) const {
    return std::any_of(target_.file_options.begin(), target_.file_options.end(),
                       [&](const std::string& one) { return plain_name(one) == plain_name(name); });
  }

  /// One option with its values; returns the place of its last word.
  std::size_t option(const Words& words, std::size_t i, bool before) {
    const std::size_t equals = words[i].find('=');
    const std::string name = target_name(target_, words[i].substr(0, equals));
    if (equals != std::string::npos) {
      add(name, words[i].substr(equals + 1), before);
      return i;
    }
    const auto is_value = [&](std::size_t k) {
      return k < words.size() && k != program_.first && !is_override(words[k]) &&
             (!words[k].starts_with('-') || words[k].size() == 1 || is_number(words[k]));
    };
    const bool one = option_named(target_, name) || names_file(name) || before;
    const std::size_t most = is_flag(target_, name) && !(i + 1 < words.size() && is_truth(words[i + 1])) ? 0
                             : one                                                                       ? 1
                                                                                                         : words.size();
    Words values;
    while (values.size() < most && is_value(i + 1)) values.push_back(words[++i]);
    // "-m program" starts a module.
    if (name == "-m") return i - values.size();
    add(name, values.empty() ? "true" : join(values, ","), before);
    return i;
  }

  static bool is_truth(const std::string& word) {
    return word == "true" || word == "True" || word == "false" || word == "False";
  }

  void add(const std::string& name, std::string value, bool before) {
    if (names_file(name) && style_of(value)) {
      configs_.push_back(value);
      if (!is_chosen(target_, name)) return;
    }
    if (before && !option_named(target_, name))
      for (const auto& [option, field] : jobs_.options)
        if (plain_name(option) == plain_name(name)) out_.job.emplace(field, value);
    // A value in JSON holds options of its own.
    if (value.starts_with('{'))
      if (const auto tree = model::parse_json(value, name); tree && !tree->members.empty()) {
        for (const Given& one : flat(*tree)) own_.push_back({target_name(target_, name + "." + one.name), one.value});
        return;
      }
    own_.push_back({name, std::move(value), before});
  }

  const Jobs& jobs_;
  const Target& target_;
  const Program& program_;
  const Variables& files_;
  const std::string& directory_;
  bool reads_files_;
  FoundOptions& out_;
  std::vector<Given> own_;
  Words configs_;
};

tl::unexpected<Error> no_program(const Reader& reader, std::string_view where) {
  Words names;
  for (const Target& target : reader.targets) {
    std::string first = target.recognised.front();
    std::replace(first.begin(), first.end(), '+', ' ');
    names.push_back(fmt::format("{} ({})", first, target.id));
  }
  return fail(std::string(where), "no command in it starts a program that is known here",
              fmt::format("known: {}", join(names, ", ")));
}

/// The options of a target, read as if they were a file of it.
Result<FoundOptions> of_target(const Reader& reader, const Target& target, std::vector<Given> given,
                               const Variables& files) {
  FoundOptions out;
  const Program program{&target, 0, 0};
  CommandReader command(reader, program, files, out);
  ASSAY_CHECK(command.read({}));
  bool known = true;
  for (Given& one : given) {
    one.name = target_name(target, one.name);
    if (std::find(target.file_options.begin(), target.file_options.end(), one.name) != target.file_options.end() &&
        style_of(one.value)) {
      ASSAY_TRY(found, command.file(one.value));
      known = known && found;
    }
    out.given.push_back(std::move(one));
  }
  if (!known) command.forget_standards();
  return out;
}

/// Options among words, by how they look.
std::vector<Given> options_in(const Words& words) {
  std::vector<Given> out;
  for (std::size_t i = 0; i < words.size(); ++i) {
    if (!words[i].starts_with("--")) continue;
    const std::size_t equals = words[i].find('=');
    const bool follows = equals == std::string::npos && i + 1 < words.size() && !words[i + 1].starts_with("--");
    out.push_back({words[i].substr(0, equals), equals != std::string::npos ? words[i].substr(equals + 1)
                                               : follows                   ? words[i + 1]
                                                                           : "true"});
  }
  return out;
}

constexpr std::size_t telling_options = 2;  ///< with no more of them, a program is not told by its options
/// Where the command starts a script of the user's own, whose options tell what it calls.
Program script_in(const Reader& reader, const Words& words) {
  const auto& starters = reader.jobs.starters;
  const auto script = std::find_if(words.begin(), words.end(), [](const std::string& w) { return w.ends_with(".py"); });
  if (script == words.end() || std::find(starters.begin(), starters.end(), file_name(words.front())) == starters.end())
    return {};
  std::size_t most = telling_options;
  const Target* target = best_target(reader.targets, options_in(Words(script, words.end())), most);
  const auto place = static_cast<std::size_t>(script - words.begin());
  return {target, place, place + 1};
}

/// A fragment that starts nothing: options that its variables hold.
Result<FoundOptions> find_in_variables(const Reader& reader, const ShellScript& script, std::string_view where) {
  std::vector<Given> given;
  for (const auto& [name, value] : script.variables)
    for (Given& one : options_in(words_of(value))) given.push_back(std::move(one));
  std::size_t most = telling_options;
  const Target* target = best_target(reader.targets, given, most);
  if (!target) return no_program(reader, where);
  ASSAY_TRY(out, of_target(reader, *target, std::move(given), script.files));
  out.notes.emplace_back("it starts no program: the options are those that its variables hold");
  return std::move(out);
}

Result<FoundOptions> find_in_job(const Reader& reader, const Job& job, const Variables& files, std::string_view where) {
  const ShellSurroundings around{reader.given, job.environment, reader.jobs.script_options, reader.directory};
  ASSAY_TRY(script, read_shell(job.script, where, around));
  script.files.insert(files.begin(), files.end());
  const Words* read = nullptr;
  FoundOptions out;
  std::size_t others = 0;
  const bool any = std::any_of(script.commands.begin(), script.commands.end(),
                               [&](const Words& words) { return program_in(reader, words).target != nullptr; });
  for (const Words& words : script.commands) {
    const Program program = any ? program_in(reader, words) : script_in(reader, words);
    if (!program.target) continue;
    if (read) {
      others += words != *read ? 1 : 0;
      continue;
    }
    read = &words;
    ASSAY_CHECK(CommandReader(reader, program, script.files, out).read(words));
  }
  if (!read) {
    ASSAY_TRY(fragment, find_in_variables(reader, script, where));
    out = std::move(fragment);
  }
  if (others > 0)
    out.notes.push_back(fmt::format("{} other command{} in it start{} such a program: the first one is read", others,
                                    others > 1 ? "s" : "", others > 1 ? "" : "s"));
  for (const std::string& missing : script.missing)
    out.notes.push_back(fmt::format("{} cannot be read: what it sets is not known", in_quotes(missing)));
  if (!script.unset.empty())
    out.notes.push_back(fmt::format("read as if not set: {}; --var NAME=VALUE sets them", join(script.unset, ", ")));
  for (const auto& [field, value] : job.fields) out.job.emplace(field, value);
  out.unset = script.unset;
  out.variables = std::move(script.variables);
  return out;
}

/// The options below one part of a file, with the target that has most of them.
struct Part {
  const Target* target = nullptr;
  std::vector<Given> given;
  std::size_t most = 1;
};

void find_part(const Reader& reader, const model::Json& node, int depth, Part& best) {
  if (node.kind != model::Json::Kind::object || depth > 4) return;
  std::vector<Given> given = flat(node);
  if (const Target* target = best_target(reader.targets, given, best.most)) {
    best.target = target;
    best.given = std::move(given);
  }
  for (const auto& [key, inner] : node.members) find_part(reader, inner, depth + 1, best);
}

void texts_in(const model::Json& node, Words& out) {
  if (node.kind == model::Json::Kind::text && node.text.find(' ') != std::string::npos) out.push_back(node.text);
  for (const model::Json& item : node.items) texts_in(item, out);
  for (const auto& [key, inner] : node.members) texts_in(inner, out);
}

/// The first of several scripts that starts a program.
Result<FoundOptions> find_first(const Reader& reader, const Words& scripts, std::string_view where) {
  std::optional<FoundOptions> out;
  std::size_t others = 0;
  for (const std::string& script : scripts) {
    auto found = find_options_in(reader, script, where);
    if (!found) continue;
    if (out)
      ++others;
    else
      out = std::move(*found);
  }
  if (!out) return no_program(reader, where);
  if (others > 0)
    out->notes.push_back(fmt::format("{} other script{} in it start{} such a program: the first one is read", others,
                                     others > 1 ? "s" : "", others > 1 ? "" : "s"));
  return std::move(*out);
}

Result<FoundOptions> find_in_trees(const Reader& reader, const std::vector<model::Json>& trees,
                                   std::string_view where) {
  const Containers containers = containers_in(reader.jobs, trees);
  std::optional<FoundOptions> out;
  for (const Job& job : containers.jobs) {
    auto found = find_in_job(reader, job, containers.files, where);
    const auto image = job.fields.find("image");
    if (!found && job.script.starts_with('-') && image != job.fields.end()) {
      Job started = job;  // by the program of the image, which takes the words as its options
      started.script = image->second + " " + job.script;
      found = find_in_job(reader, started, containers.files, where);
    }
    if (!found) continue;
    if (!out) {
      out = std::move(*found);
    } else if (found->target.id == out->target.id) {
      // Another part of the same service, which has chips of its own.
      const auto more = found->job.find("chips"), set = found->job.find("set"), same = out->job.find("set");
      auto chips = out->job.find("chips");
      const bool counted = set != found->job.end() && same != out->job.end() && set->second == same->second;
      if (more != found->job.end() && chips != out->job.end() && !counted)
        chips->second =
            exact_number(parse_number(chips->second).value_or(0.0) + parse_number(more->second).value_or(0.0));
      out->notes.emplace_back("several containers in it start such a program: the first one is read");
    }
  }
  if (out) return std::move(*out);
  Part best;
  for (const model::Json& tree : trees) find_part(reader, tree, 0, best);
  if (best.target) return of_target(reader, *best.target, std::move(best.given), containers.files);
  Words texts, scripts;
  for (const model::Json& tree : trees) texts_in(tree, texts);
  for (const std::string& text : texts)
    for (std::string& script : scripts_in(text)) scripts.push_back(std::move(script));
  if (auto found = find_first(reader, scripts, where)) return found;
  Words ids;
  for (const Target& target : reader.targets) ids.push_back(target.id);
  return fail(std::string(where), "these are not the options of a program that is known here",
              fmt::format("known: {}", join(ids, ", ")));
}

}  // namespace

Result<FoundOptions> find_options_in(const Reader& reader, std::string_view script, std::string_view where) {
  return find_in_job(reader, batch_job(reader.jobs, script), {}, where);
}

Result<FoundOptions> find_options(Reader reader, const std::string& from, std::string_view where) {
  std::error_code failed;
  const bool exists = reader.reads_files && from.size() < 4096 && std::filesystem::is_regular_file(from, failed);
  if (!exists && from.find_first_of(" \n") == std::string::npos)
    return fail(std::string(where), fmt::format("there is no file {}", in_quotes(from)),
                "name a file, or give a whole command line in quotes");
  if (!exists) return find_options_in(reader, from, where);
  ASSAY_TRY(text, hardware::read_file(from, where));
  reader.directory = std::filesystem::absolute(from, failed).parent_path().string();
  if (const std::optional<Style> style = style_of(from)) {
    ASSAY_TRY(trees, read_trees(*style, text, from));
    return find_in_trees(reader, trees, from);
  }
  const Words scripts = scripts_in(text);
  return scripts.size() == 1 ? find_options_in(reader, scripts.front(), from) : find_first(reader, scripts, from);
}

}  // namespace assay::launch

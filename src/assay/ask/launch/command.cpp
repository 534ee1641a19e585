#include "assay/ask/launch/command.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <filesystem>

#include "assay/ask/launch/shell.h"
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

Result<const Target*> best_target(const std::vector<Target>& targets, const std::vector<Given>& given,
                                  std::string_view where) {
  const Target* best = nullptr;
  std::size_t most = 0;
  Words ids;
  for (const Target& target : targets) {
    ids.push_back(target.id);
    if (const std::size_t n = score(target, given); n > most) {
      best = &target;
      most = n;
    }
  }
  if (best && 4 * most >= given.size()) return best;
  return fail(std::string(where), "these are not the options of a program that is known here",
              fmt::format("known: {}", join(ids, ", ")));
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

const Option* option_named(const Target& target, const std::string& name) {
  for (const Option& option : target.options)
    if (option.name == name || std::find(option.aliases.begin(), option.aliases.end(), name) != option.aliases.end())
      return &option;
  return nullptr;
}

bool is_number(const std::string& word) { return parse_number(word).has_value(); }

class CommandReader {
 public:
  CommandReader(const Target& target, const ShellScript& script, FoundOptions& out)
      : target_(target), script_(script), out_(out) {}

  Result<void> read(const Words& words) {
    const auto named =
        std::find_if(target_.options.begin(), target_.options.end(), [](const Option& o) { return o.first; });
    bool before = std::any_of(words.begin(), words.end(), [&](const std::string& w) { return is_program(w); });
    bool wants_first = named != target_.options.end();
    for (std::size_t i = 0; i < words.size(); ++i) {
      const std::string& word = words[i];
      if (is_program(word)) {
        before = false;
        continue;
      }
      const std::size_t equals = word.find('=');
      if (word.starts_with('-') && word.size() > 1 && !is_number(word)) {
        i = option(words, i, before);
      } else if (!before && equals != std::string::npos && equals > 0 && is_key(word.substr(0, equals))) {
        own_.push_back({target_name(target_, word.substr(0, equals)), word.substr(equals + 1), false});
      } else if (!before && target_.file_option.empty() && !target_.file.empty() && style_of(word)) {
        ASSAY_CHECK(file(word));
      } else if (!before && wants_first && word != "serve") {
        own_.push_back({named->name, word, false});
        wants_first = false;
      }
    }
    if (!config_.empty()) ASSAY_CHECK(file(config_));
    out_.given.insert(out_.given.end(), own_.begin(), own_.end());
    return {};
  }

  bool is_program(const std::string& word) const {
    return std::any_of(target_.recognised.begin(), target_.recognised.end(),
                       [&](const std::string& known) { return word == known || file_name(word) == known; });
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

  /// One option with its values; returns the place of its last word.
  std::size_t option(const Words& words, std::size_t i, bool before) {
    const std::size_t equals = words[i].find('=');
    const std::string name = target_name(target_, words[i].substr(0, equals));
    if (equals != std::string::npos) {
      add(name, words[i].substr(equals + 1), before);
      return i;
    }
    const auto is_value = [&](std::size_t k) {
      return k < words.size() && !is_program(words[k]) && !is_override(words[k]) &&
             (!words[k].starts_with('-') || words[k].size() == 1 || is_number(words[k]));
    };
    const bool config = !target_.file_option.empty() && name == target_.file_option;
    const std::size_t most = is_flag(target_, name)                            ? 0
                             : option_named(target_, name) || config || before ? 1
                                                                               : words.size();
    Words values;
    while (values.size() < most && is_value(i + 1)) values.push_back(words[++i]);
    // "-m program" starts a module.
    if (name == "-m") return i - values.size();
    add(name, values.empty() ? "true" : join(values, ","), before);
    return i;
  }

  void add(const std::string& name, std::string value, bool before) {
    if (!target_.file_option.empty() && name == target_.file_option)
      config_ = value;
    else
      own_.push_back({name, std::move(value), before});
  }

  /// A file that the command names: one that the script writes, or one that exists.
  Result<void> file(const std::string& path) {
    std::string text;
    if (const auto written = script_.files.find(path); written != script_.files.end()) {
      text = written->second;
    } else if (std::error_code failed; std::filesystem::is_regular_file(path, failed)) {
      ASSAY_TRY(read, hardware::read_file(path, "--from"));
      text = read;
    } else {
      out_.notes.push_back(fmt::format("{} cannot be read: its options are not known", in_quotes(path)));
      return {};
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
    return {};
  }

  const Target& target_;
  const ShellScript& script_;
  FoundOptions& out_;
  std::vector<Given> own_;
  std::string config_;
};

}  // namespace

Result<FoundOptions> find_options_in(const std::vector<Target>& targets, std::string_view text,
                                     std::string_view where) {
  ASSAY_TRY(script, read_shell(text, where));
  Words ids;
  for (const Words& words : script.commands)
    for (const Target& target : targets) {
      FoundOptions out;
      CommandReader reader(target, script, out);
      if (!std::any_of(words.begin(), words.end(), [&](const std::string& w) { return reader.is_program(w); }))
        continue;
      ASSAY_CHECK(reader.read(words));
      out.target = target;
      return out;
    }
  for (const Target& target : targets) ids.push_back(fmt::format("{} ({})", target.recognised.front(), target.id));
  return fail(std::string(where), "no command in it starts a program that is known here",
              fmt::format("known: {}", join(ids, ", ")));
}

Result<FoundOptions> find_options(const std::vector<Target>& targets, const std::string& from, std::string_view where) {
  std::error_code failed;
  const bool exists = from.size() < 4096 && std::filesystem::is_regular_file(from, failed);
  if (!exists && from.find_first_of(" \n") == std::string::npos)
    return fail(std::string(where), fmt::format("there is no file {}", in_quotes(from)),
                "name a file, or give a whole command line in quotes");
  if (!exists) return find_options_in(targets, from, where);
  ASSAY_TRY(text, hardware::read_file(from, where));
  const std::optional<Style> style = style_of(from);
  if (!style) return find_options_in(targets, text, from);
  ASSAY_TRY(given, read_document(*style, text, from));
  ASSAY_TRY(target, best_target(targets, given, from));
  FoundOptions out{*target, {}, {}};
  for (Given& one : given) {
    one.name = target_name(out.target, one.name);
    out.given.push_back(std::move(one));
  }
  return out;
}

}  // namespace assay::launch

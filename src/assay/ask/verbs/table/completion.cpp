// Shell completion, made from the verb table: shells ask this program what may follow, so that a user's own files are
// offered as well.
#include <fmt/format.h>

#include <algorithm>

#include "assay/ask/verbs/table/pages.h"
#include "assay/ask/verbs/table/value_kinds.h"
#include "assay/base/dtype.h"
#include "assay/base/text.h"
#include "assay/model/model_catalogue.h"
#include "assay/predict/kernel/software/software.h"

namespace assay::verbs {
namespace {

/// What may stand for a word, a line each with what it means behind a tab; files where the first line says so.
class Offers {
 public:
  Offers(const hardware::Catalogue& catalogue, std::string prefix)
      : catalogue_(catalogue), prefix_(std::move(prefix)) {}

  void add(std::string_view word, std::string_view meaning = {}) {
    lines_ += fmt::format("{}{}{}{}\n", prefix_, word, meaning.empty() ? "" : "\t", meaning);
  }
  /// "json|csv"
  void add_alternatives(std::string_view words) {
    for (const std::string& word : split(words, '|')) add(word);
  }
  void add_value(ValueKind kind) {
    switch (kind) {
      case ValueKind::chip:
      case ValueKind::cluster:
        for (const std::string& id : catalogue_.chip_ids()) add(id);
        break;
      case ValueKind::model:
        files_ = true;
        for (const std::string& id : model::model_ids(catalogue_)) add(id);
        break;
      case ValueKind::software:
        if (const auto all = kernel::software_of(catalogue_))
          for (const kernel::Software& software : *all) add(software.id);
        break;
      case ValueKind::file:
      case ValueKind::directory:
      case ValueKind::catalogue:
      case ValueKind::records:
        files_ = true;
        break;
      case ValueKind::dtype:
        for (const DtypeFacts& dtype : all_dtypes()) add(dtype.name);
        break;
      default:
        break;
    }
  }
  void add_value(const OptionSpec& option) {
    if (option.choices.empty() && option.offers.empty()) return add_value(type_of(option).kind);
    add_alternatives(option.choices.empty() ? option.offers : option.choices);
  }
  /// The first argument of a verb.
  void add_argument(const VerbSpec& verb) {
    if (verb.arguments.empty()) return;
    const ArgumentSpec& argument = verb.arguments.front();
    if (argument.offers.empty()) return add_value(type_of(verb, argument).kind);
    add_alternatives(argument.offers);
  }
  void add_verbs() {
    for (const VerbSpec& verb : verbs()) add(verb.name, verb.summary);
  }

  std::string take() { return (files_ ? ":files\n" : "") + std::move(lines_); }

 private:
  const hardware::Catalogue& catalogue_;
  std::string prefix_, lines_;
  bool files_ = false;
};

std::vector<OptionSpec> all_options(const VerbSpec& verb) {
  std::vector<OptionSpec> all(verb.options);
  for (OptionSpec& option : all)
    if (option.name == "emit")
      for (const launch::Target& program : programs_of(verb))
        option.offers += (option.offers.empty() ? "" : "|") + program.id;
  if (&verb == &ui_command()) return all;
  for (const OptionSpec& option : common_options()) {
    const bool own =
        std::any_of(all.begin(), all.end(), [&](const OptionSpec& other) { return other.name == option.name; });
    if (!own) all.push_back(option);
  }
  return all;
}

const VerbSpec* command_of(std::string_view name) {
  if (name == ui_command().name) return &ui_command();
  for (const VerbSpec& verb : verbs())
    if (verb.name == name) return &verb;
  return nullptr;
}

constexpr std::string_view bash_script =
    R"(# bash completion for assay: source this file, or put it into /etc/bash_completion.d/
_assay() {
  local current="${COMP_WORDS[COMP_CWORD]}" offers
  offers=$(assay completion of "${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null | cut -f1)
  [ "$current" = "=" ] && current=""
  COMPREPLY=()
  if [ "${offers%%$'\n'*}" = ":files" ]; then offers="${offers#:files}"; COMPREPLY=($(compgen -f -- "$current")); fi
  COMPREPLY+=($(compgen -W "$offers" -- "$current"))
}
complete -F _assay assay
)";

constexpr std::string_view zsh_script = R"(#compdef assay
# zsh completion for assay: put this file as _assay into a directory of $fpath
_assay() {
  local -a offers
  local tab=$'\t'
  offers=("${(@f)$(assay completion of "${(@)words[2,CURRENT]}" 2>/dev/null)}")
  if [[ $offers[1] == :files ]]; then _files; shift offers; fi
  offers=("${(@)offers//:/\\:}")
  offers=("${(@)offers//$tab/:}")
  [[ -n $offers[1] ]] && _describe 'assay' offers
}
if [[ $funcstack[1] == _assay ]]; then _assay "$@"; else compdef _assay assay; fi
)";

constexpr std::string_view fish_script = R"(# fish completion for assay: put this file into ~/.config/fish/completions/
complete -c assay -f
function __assay_offers
  for offer in (assay completion of (commandline -opc)[2..-1] (commandline -ct) 2>/dev/null)
    if test "$offer" = :files
      __fish_complete_path (commandline -ct)
    else
      echo $offer
    end
  end
end
complete -c assay -a '(__assay_offers)'
)";

}  // namespace

std::string completions(std::vector<std::string> words, const hardware::Catalogue& catalogue) {
  // Some shells make words of their own of the sign in --option=value.
  if (!words.empty() && words.back() == "=") words.back().clear();
  std::erase(words, "=");
  const VerbSpec* verb = words.empty() ? nullptr : command_of(words.front());
  if (verb && verb->passes_options && words.size() > 1 && !words[1].starts_with('-')) words.erase(words.begin());
  const std::string current = words.empty() ? "" : words.back();
  const std::size_t equals = current.starts_with("--") ? current.find('=') : std::string::npos;
  Offers offers(catalogue, equals == std::string::npos ? "" : current.substr(0, equals + 1));
  if (words.size() < 2) {
    offers.add_verbs();
    for (const auto& [name, help] : built_in_words()) offers.add(name, help);
    offers.add_alternatives("--help|--version");
    return offers.take();
  }
  if (words.front() == "completion") offers.add_alternatives("bash|zsh|fish");
  if (words.front() == "schema" || words.front() == "man") offers.add_verbs();
  verb = command_of(words.front());
  if (!verb) return offers.take();
  const std::string& before = equals == std::string::npos ? words[words.size() - 2] : current.substr(0, equals);
  const std::vector<OptionSpec> options = all_options(*verb);
  for (const OptionSpec& option : options)
    if (before == "--" + std::string(option.name) && !option.value.empty()) {
      offers.add_value(option);
      return offers.take();
    }
  if (current.starts_with('-'))
    for (const OptionSpec& option : options) offers.add("--" + std::string(option.name), option_help(option));
  else
    offers.add_argument(*verb);
  return offers.take();
}

Result<std::string> completion_script(std::string_view shell) {
  if (shell == "bash") return std::string(bash_script);
  if (shell == "zsh") return std::string(zsh_script);
  if (shell == "fish") return std::string(fish_script);
  return fail("completion", shell.empty() ? "the shell is missing" : fmt::format("unknown shell {}", in_quotes(shell)),
              "one of bash, zsh, fish", Error::Kind::usage);
}

std::vector<launch::Target> programs_of(const VerbSpec& verb) {
  std::vector<launch::Target> out;
  const hardware::Catalogue catalogue = hardware::Catalogue::builtin();
  if (const auto targets = launch::targets_of(catalogue, verb.name))
    for (const launch::Target& target : **targets)
      if (!target.reads_only) out.push_back(target);
  return out;
}

}  // namespace assay::verbs

// Shell completion, made from the verb table: commands, options, enumerated values, and names of the catalogue, which
// the script asks this program for, so that a user's own files are offered as well.
#include <fmt/format.h>

#include <algorithm>

#include "assay/ask/verbs/table/pages.h"
#include "assay/ask/verbs/table/value_kinds.h"
#include "assay/base/dtype.h"
#include "assay/base/text.h"

namespace assay::verbs {
namespace {

/// What a shell can offer for a value.
struct Offer {
  enum class Kind { nothing, words, files, chips, models, software } kind = Kind::nothing;
  std::string words;  ///< separated by blanks
};

Offer offer_words(std::string_view alternatives) {
  std::string words(alternatives);
  std::replace(words.begin(), words.end(), '|', ' ');
  return {Offer::Kind::words, words};
}

Offer offer_of(ValueKind kind) {
  switch (kind) {
    case ValueKind::chip:
    case ValueKind::cluster:
      return {Offer::Kind::chips, {}};
    case ValueKind::model:
      return {Offer::Kind::models, {}};
    case ValueKind::software:
      return {Offer::Kind::software, {}};
    case ValueKind::file:
    case ValueKind::directory:
    case ValueKind::catalogue:
    case ValueKind::records:
      return {Offer::Kind::files, {}};
    case ValueKind::dtype: {
      Offer offer{Offer::Kind::words, {}};
      for (const DtypeFacts& dtype : all_dtypes()) offer.words += fmt::format("{} ", dtype.name);
      offer.words.pop_back();
      return offer;
    }
    default:
      return {};
  }
}

Offer offer_of(const OptionSpec& option) {
  if (option.value.empty()) return {};
  if (!option.choices.empty()) return offer_words(option.choices);
  if (!option.offers.empty()) return offer_words(option.offers);
  return offer_of(type_of(option).kind);
}

/// Of a verb's first argument.
Offer offer_of(const VerbSpec& verb) {
  if (verb.arguments.empty()) return {};
  const ArgumentSpec& argument = verb.arguments.front();
  return argument.offers.empty() ? offer_of(type_of(verb, argument).kind) : offer_words(argument.offers);
}

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

/// Whatever has options.
std::vector<const VerbSpec*> commands_with_options() {
  std::vector<const VerbSpec*> out;
  for (const VerbSpec& verb : verbs()) out.push_back(&verb);
  out.push_back(&ui_command());
  return out;
}

/// Commands that others take as their arguments: solve train ...
std::string commands_that_pass() {
  std::string names;
  for (const VerbSpec& verb : verbs())
    if (verb.passes_options) names += (names.empty() ? "" : "|") + std::string(verb.name);
  return names;
}

/// Text inside single quotes of a shell.
std::string shell_quoted(std::string_view text) {
  std::string out;
  for (char c : text) out += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return out;
}

std::string verb_names(bool with_built_in) {
  std::string names;
  for (const VerbSpec& verb : verbs()) names += std::string(verb.name) + " ";
  if (with_built_in)
    for (const auto& [name, help] : built_in_words()) names += std::string(name) + " ";
  names.pop_back();
  return names;
}

/// The ids that a verb lists: the first column of its table.
std::string listing(std::string_view verb) {
  return fmt::format("assay {} --format csv 2>/dev/null | tail -n +2 | cut -d, -f1", verb);
}

std::string_view verb_listing(Offer::Kind kind) {
  return kind == Offer::Kind::chips ? "chips" : kind == Offer::Kind::models ? "models" : "software";
}

std::string bash_reply(const Offer& offer) {
  switch (offer.kind) {
    case Offer::Kind::nothing:
      return "";
    case Offer::Kind::words:
      return fmt::format("COMPREPLY=($(compgen -W \"{}\" -- \"$current\"))", offer.words);
    case Offer::Kind::files:
      return "COMPREPLY=($(compgen -f -- \"$current\"))";
    case Offer::Kind::models:
      return fmt::format("COMPREPLY=($(compgen -W \"$({})\" -- \"$current\") $(compgen -f -- \"$current\"))",
                         listing("models"));
    case Offer::Kind::chips:
    case Offer::Kind::software:
      break;
  }
  return fmt::format("COMPREPLY=($(compgen -W \"$({})\" -- \"$current\"))", listing(verb_listing(offer.kind)));
}

std::string bash_script() {
  std::string values, flags, arguments;
  for (const VerbSpec* command : commands_with_options()) {
    const VerbSpec& verb = *command;
    std::string names;
    for (const OptionSpec& option : all_options(verb)) {
      names += fmt::format("--{} ", option.name);
      if (option.value.empty()) continue;
      values += fmt::format("    {}:--{}) {}; return ;;\n", verb.name, option.name,
                            offer_of(option).kind == Offer::Kind::nothing ? ":" : bash_reply(offer_of(option)));
    }
    names.pop_back();
    flags += fmt::format("    {}) flags=\"{}\" ;;\n", verb.name, names);
    if (const std::string reply = bash_reply(offer_of(verb)); !reply.empty())
      arguments += fmt::format("    {}) {} ;;\n", verb.name, reply);
  }
  return fmt::format(R"script(# bash completion for assay: source this file, or put it into /etc/bash_completion.d/
_assay() {{
  local current="${{COMP_WORDS[COMP_CWORD]}}" previous="${{COMP_WORDS[COMP_CWORD-1]}}" flags="" at=1
  COMPREPLY=()
  if [ "$current" = "=" ]; then current=""; elif [ "$previous" = "=" ]; then previous="${{COMP_WORDS[COMP_CWORD-2]}}"; fi
  case "${{COMP_WORDS[1]}}" in {}) [ "$COMP_CWORD" -gt 1 ] && at=2 ;; esac
  if [ "$COMP_CWORD" -eq "$at" ]; then
    COMPREPLY=($(compgen -W "{} --help --version" -- "$current"))
    return
  fi
  local verb="${{COMP_WORDS[at]}}"
  case "$verb:$previous" in
{}  esac
  case "$verb" in
{}  esac
  case "$current" in -*) COMPREPLY=($(compgen -W "$flags" -- "$current")); return ;; esac
  case "$verb" in
{}    completion) COMPREPLY=($(compgen -W "bash zsh fish" -- "$current")) ;;
    schema|man) COMPREPLY=($(compgen -W "{}" -- "$current")) ;;
  esac
}}
complete -F _assay assay
)script",
                     commands_that_pass(), verb_names(true), values, flags, arguments, verb_names(false));
}

/// The action of an argument in _arguments, after its name.
std::string zsh_action(const Offer& offer) {
  switch (offer.kind) {
    case Offer::Kind::nothing:
      return ":value:";
    case Offer::Kind::words:
      return fmt::format(":value:({})", offer.words);
    case Offer::Kind::files:
      return ":file:_files";
    case Offer::Kind::chips:
    case Offer::Kind::models:
    case Offer::Kind::software:
      break;
  }
  return fmt::format(":{0}:_assay_{0}", verb_listing(offer.kind));
}

std::string zsh_script() {
  std::string commands, cases, lists;
  for (const char* list : {"chips", "models", "software"})
    lists += fmt::format("_assay_{}() {{ compadd -- $({}){} }}\n", list, listing(list),
                         std::string_view(list) == "models" ? "; _files" : "");
  for (const VerbSpec& verb : verbs()) commands += fmt::format("    '{}:{}'\n", verb.name, shell_quoted(verb.summary));
  for (const VerbSpec* command : commands_with_options()) {
    const VerbSpec& verb = *command;
    cases += fmt::format("    {})\n      _arguments '*{}' \\\n", verb.name, zsh_action(offer_of(verb)));
    for (const OptionSpec& option : all_options(verb)) {
      std::string help = option_help(option);
      for (std::size_t i = 0; (i = help.find_first_of("[]:", i)) != std::string::npos; i += 2) help.insert(i, "\\");
      cases += fmt::format("        '{}--{}[{}]{}' \\\n", option.repeatable ? "*" : "", option.name, shell_quoted(help),
                           option.value.empty() ? "" : zsh_action(offer_of(option)));
    }
    cases.erase(cases.size() - 3);
    cases += " ;;\n";
  }
  for (const auto& [name, help] : built_in_words()) commands += fmt::format("    '{}:{}'\n", name, shell_quoted(help));
  return fmt::format(R"script(#compdef assay
# zsh completion for assay: put this file as _assay into a directory of $fpath
{}_assay() {{
  local -a commands
  commands=(
{}  )
  if (( CURRENT == 2 )); then
    _describe 'command' commands
    return
  fi
  local verb=$words[2]
  shift words
  (( CURRENT-- ))
  case $verb in
    {}) if (( CURRENT > 2 )); then verb=$words[2]; shift words; (( CURRENT-- )); else _describe 'command' commands; return; fi ;;
  esac
  case $verb in
{}    completion) compadd bash zsh fish ;;
    schema|man) compadd {} ;;
  esac
}}
if [[ $funcstack[1] == _assay ]]; then _assay "$@"; else compdef _assay assay; fi
)script",
                     lists, commands, commands_that_pass(), cases, verb_names(false));
}

/// The arguments of fish's complete that offer a value.
std::string fish_values(const Offer& offer) {
  switch (offer.kind) {
    case Offer::Kind::nothing:
      return "-x ";
    case Offer::Kind::words:
      return fmt::format("-x -a '{}' ", offer.words);
    case Offer::Kind::files:
      return "-r -F ";
    case Offer::Kind::chips:
    case Offer::Kind::models:
    case Offer::Kind::software:
      break;
  }
  return fmt::format("-x -a '({})' ", listing(verb_listing(offer.kind)));
}

std::string fish_script() {
  std::string out =
      "# fish completion for assay: put this file into ~/.config/fish/completions/\ncomplete -c assay -f\n";
  for (const VerbSpec& verb : verbs())
    out += fmt::format("complete -c assay -n __fish_use_subcommand -a {} -d '{}'\n", verb.name,
                       shell_quoted(verb.summary));
  for (const VerbSpec* command : commands_with_options()) {
    const VerbSpec& verb = *command;
    const std::string seen = fmt::format("complete -c assay -n '__fish_seen_subcommand_from {}' ", verb.name);
    if (const Offer offer = offer_of(verb); offer.kind != Offer::Kind::nothing)
      out += fmt::format("{}{}\n", seen, trim(fish_values(offer)));
    for (const OptionSpec& option : verb.options)
      out += fmt::format("{}-l {} {}-d '{}'\n", seen, option.name,
                         option.value.empty() ? "" : fish_values(offer_of(option)), shell_quoted(option_help(option)));
  }
  for (const auto& [name, help] : built_in_words())
    out += fmt::format("complete -c assay -n __fish_use_subcommand -a {} -d '{}'\n", name, shell_quoted(help));
  out += "complete -c assay -n '__fish_seen_subcommand_from completion' -x -a 'bash zsh fish'\n";
  out += fmt::format("complete -c assay -n '__fish_seen_subcommand_from schema man' -x -a '{}'\n", verb_names(false));
  for (const OptionSpec& option : common_options())
    out += fmt::format("complete -c assay -l {} {}-d '{}'\n", option.name,
                       option.value.empty() ? "" : fish_values(offer_of(option)), shell_quoted(option_help(option)));
  return out;
}

}  // namespace

Result<std::string> completion_script(std::string_view shell) {
  if (shell == "bash") return bash_script();
  if (shell == "zsh") return zsh_script();
  if (shell == "fish") return fish_script();
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

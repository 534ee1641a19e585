// Help and shell completion, both made from the verb table.
#include <fmt/format.h>

#include <algorithm>

#include "assay/base/text.h"
#include "assay/report/layout.h"
#include "assay/verbs/request.h"

namespace assay::verbs {
namespace {

constexpr std::size_t help_width = 100, help_column = 26;

/// A word and what it means, which continues below itself.
std::string explained(std::string_view word, std::string_view meaning) {
  std::string out;
  for (const std::string& line : report::wrapped(meaning, help_width - help_column)) {
    const bool first = out.empty();
    const std::string start = first ? fmt::format("  {}", word) : "";
    if (first && start.size() + 2 > help_column)
      out += start + "\n" + std::string(help_column, ' ') + line + "\n";
    else
      out += report::padded(start, help_column) + line + "\n";
  }
  return out;
}

std::string option_text(const OptionSpec& option) {
  if (!option.detail.empty()) return fmt::format("--{}[={}]", option.name, option.detail);
  return fmt::format("--{}{}{}", option.name, option.value.empty() ? "" : " ", option.value);
}

std::string option_list(std::span<const OptionSpec> options) {
  std::string out;
  for (const OptionSpec& option : options)
    out += explained(option_text(option), fmt::format("{}{}", option.help, option.repeatable ? " (repeatable)" : ""));
  return out;
}

/// Text inside single quotes of a shell.
std::string shell_quoted(std::string_view text) {
  std::string out;
  for (char c : text) out += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return out;
}

constexpr std::pair<std::string_view, std::string_view> built_in[] = {
    {"completion", "shell completion: bash, zsh or fish"}, {"version", "the version"}, {"help", "help on a command"}};

std::string flags_of(const VerbSpec& verb) {
  std::string flags;
  for (const OptionSpec& option : verb.options) flags += fmt::format("--{} ", option.name);
  for (const OptionSpec& option : common_options()) flags += fmt::format("--{} ", option.name);
  if (!flags.empty()) flags.pop_back();
  return flags;
}

std::string verb_names() {
  std::string names;
  for (const VerbSpec& verb : verbs()) names += std::string(verb.name) + " ";
  for (const auto& [name, help] : built_in_words()) names += std::string(name) + " ";
  names.pop_back();
  return names;
}

std::string bash_script() {
  std::string cases;
  for (const VerbSpec& verb : verbs()) cases += fmt::format("    {}) flags=\"{}\" ;;\n", verb.name, flags_of(verb));
  return fmt::format(R"script(# bash completion for assay: source this file, or put it into /etc/bash_completion.d/
_assay() {{
  local current="${{COMP_WORDS[COMP_CWORD]}}" previous="${{COMP_WORDS[COMP_CWORD-1]}}" flags=""
  if [ "$COMP_CWORD" -eq 1 ]; then
    COMPREPLY=($(compgen -W "{} --help --version" -- "$current"))
    return
  fi
  case "$previous" in
    --format) COMPREPLY=($(compgen -W "table tree json csv md svg" -- "$current")); return ;;
    --color) COMPREPLY=($(compgen -W "auto always never" -- "$current")); return ;;
    --output|--config|--catalogue) COMPREPLY=($(compgen -f -- "$current")); return ;;
    --on) COMPREPLY=($(compgen -W "$(assay chips --format csv 2>/dev/null | tail -n +2 | cut -d, -f1)" -- "$current")); return ;;
  esac
  case "${{COMP_WORDS[1]}}" in
    chips|clusters) COMPREPLY=($(compgen -W "$(assay chips --format csv 2>/dev/null | tail -n +2 | cut -d, -f1)" -- "$current")) ;;
    completion) COMPREPLY=($(compgen -W "bash zsh fish" -- "$current")) ;;
  esac
  case "${{COMP_WORDS[1]}}" in
{}  esac
  case "$current" in -*) COMPREPLY=($(compgen -W "$flags" -- "$current")) ;; esac
}}
complete -F _assay assay
)script",
                     verb_names(), cases);
}

std::string zsh_script() {
  std::string commands, cases;
  for (const VerbSpec& verb : verbs()) {
    commands += fmt::format("    '{}:{}'\n", verb.name, shell_quoted(verb.summary));
    cases += fmt::format("    {})\n      _arguments '*:argument:' \\\n", verb.name);
    std::vector<OptionSpec> all(verb.options);
    all.insert(all.end(), common_options().begin(), common_options().end());
    for (const OptionSpec& option : all) {
      std::string help(option.help);
      for (std::size_t i = 0; (i = help.find_first_of("[]:", i)) != std::string::npos; i += 2) help.insert(i, "\\");
      std::string choices(option.choices);
      std::replace(choices.begin(), choices.end(), '|', ' ');
      const std::string value = option.value.empty() ? ""
                                : choices.empty()    ? fmt::format(":{}:", option.value == "FILE" ? "file" : "value") +
                                                        (option.value == "FILE" ? "_files" : "")
                                                  : fmt::format(":value:({})", choices);
      cases += fmt::format("        '{}--{}[{}]{}' \\\n", option.repeatable ? "*" : "", option.name, shell_quoted(help),
                           value);
    }
    cases.erase(cases.size() - 3);
    cases += " ;;\n";
  }
  for (const auto& [name, help] : built_in_words()) commands += fmt::format("    '{}:{}'\n", name, shell_quoted(help));
  return fmt::format(R"script(#compdef assay
# zsh completion for assay: put this file as _assay into a directory of $fpath
_assay() {{
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
{}  esac
}}
compdef _assay assay
)script",
                     commands, cases);
}

std::string fish_script() {
  std::string out =
      "# fish completion for assay: put this file into ~/.config/fish/completions/\ncomplete -c assay -f\n";
  for (const VerbSpec& verb : verbs()) {
    out += fmt::format("complete -c assay -n __fish_use_subcommand -a {} -d '{}'\n", verb.name,
                       shell_quoted(verb.summary));
    for (const OptionSpec& option : verb.options)
      out += fmt::format("complete -c assay -n '__fish_seen_subcommand_from {}' -l {} {}-d '{}'\n", verb.name,
                         option.name, option.value.empty() ? "" : "-x ", shell_quoted(option.help));
  }
  for (const auto& [name, help] : built_in_words())
    out += fmt::format("complete -c assay -n __fish_use_subcommand -a {} -d '{}'\n", name, shell_quoted(help));
  for (const OptionSpec& option : common_options()) {
    std::string choices(option.choices);
    std::replace(choices.begin(), choices.end(), '|', ' ');
    const bool file = option.value == "FILE" || option.value == "DIR";
    out += fmt::format("complete -c assay -l {} {}{}-d '{}'\n", option.name,
                       option.value.empty() ? ""
                       : file               ? "-r -F "
                                            : "-x ",
                       choices.empty() ? "" : fmt::format("-a '{}' ", choices), shell_quoted(option.help));
  }
  return out;
}

}  // namespace

std::span<const std::pair<std::string_view, std::string_view>> built_in_words() { return built_in; }

std::string overview_help() {
  std::string out =
      "assay: predicts how long language models take to train and serve, what limits them, and why\n\nusage: assay "
      "COMMAND [ARGUMENTS] [OPTIONS]\n\ncommands:\n";
  for (const VerbSpec& verb : verbs()) out += fmt::format("  {:<12}{}\n", verb.name, verb.summary);
  for (const auto& [name, help] : built_in_words()) out += fmt::format("  {:<12}{}\n", name, help);
  out += "\noptions of every command:\n" + option_list(common_options());
  out += "\nexamples:\n";
  for (const VerbSpec& verb : verbs())
    if (!verb.examples.empty()) out += fmt::format("  {}\n", verb.examples.front().first);
  return out +
         "\nexit codes: 0 ok, 1 bad input, 2 usage, 3 infeasible, 4 check failed, 70 a bug in assay, 130 interrupted\n";
}

std::string verb_help(const VerbSpec& verb) {
  std::string usage = fmt::format("usage: assay {}", verb.name);
  for (const ArgumentSpec& argument : verb.arguments) {
    const std::string text = fmt::format("{}{}", argument.name, argument.repeatable ? "..." : "");
    usage += argument.required ? " " + text : " [" + text + "]";
  }
  std::string out = fmt::format("assay {}: {}\n\n{} [OPTIONS]\n\n{}\n", verb.name, verb.summary, usage,
                                join(report::wrapped(verb.description, help_width), "\n"));
  if (!verb.arguments.empty()) {
    out += "\narguments:\n";
    for (const ArgumentSpec& argument : verb.arguments) out += explained(argument.name, argument.help);
  }
  out += "\noptions:\n" + option_list(verb.options) + option_list(common_options());
  if (!verb.examples.empty()) out += "\nexamples:\n";
  for (const auto& [command, shows] : verb.examples) out += fmt::format("  # {}\n  {}\n", shows, command);
  return out;
}

Result<std::string> completion_script(std::string_view shell) {
  if (shell == "bash") return bash_script();
  if (shell == "zsh") return zsh_script();
  if (shell == "fish") return fish_script();
  return fail("completion", shell.empty() ? "the shell is missing" : fmt::format("unknown shell {}", in_quotes(shell)),
              "one of bash, zsh, fish", Error::Kind::usage);
}

}  // namespace assay::verbs

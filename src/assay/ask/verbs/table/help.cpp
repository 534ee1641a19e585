// Help, made from the verb table.
#include <fmt/format.h>

#include "assay/ask/report/layout.h"
#include "assay/ask/verbs/table/pages.h"
#include "assay/base/text.h"
#include "assay/base/version.h"

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

std::string option_list(std::span<const OptionSpec> options) {
  std::string out;
  for (const OptionSpec& option : options)
    out += explained(option_text(option), option_help(option) + (option.repeatable ? " (repeatable)" : ""));
  return out;
}

}  // namespace

std::span<const std::pair<std::string_view, std::string_view>> built_in_words() {
  static const std::pair<std::string_view, std::string_view> words[] = {
      {"ui", ui_command().summary},
      {"json", declared("json").summary},
      {"mcp", declared("mcp").summary},
      {"schema", declared("schema").summary},
      {"completion", "shell completion: bash, zsh or fish"},
      {"man", "the man page of a command, or of the program"},
      {"version", "the version, the commit and the date of the catalogue"},
      {"help", "help on a command"}};
  return words;
}

std::string option_text(const OptionSpec& option) {
  if (!option.detail.empty()) return fmt::format("--{}[={}]", option.name, option.detail);
  if (option.may_stand_alone) return fmt::format("--{} [{}]", option.name, option.value);
  return fmt::format("--{}{}{}", option.name, option.value.empty() ? "" : " ", option.value);
}

std::string arguments_text(const VerbSpec& verb) {
  std::string out;
  for (const ArgumentSpec& argument : verb.arguments) {
    const std::string text = fmt::format("{}{}", argument.name, argument.repeatable ? "..." : "");
    out += argument.required ? " " + text : " [" + text + "]";
  }
  return out;
}

std::string option_help(const OptionSpec& option) {
  const bool says = option.fallback.empty() || option.help.find("default") != std::string_view::npos;
  return fmt::format("{}{}", option.help, says ? "" : fmt::format(" (default {})", option.fallback));
}

std::string overview_help() {
  std::string out =
      fmt::format("assay: {}\n\nusage: assay COMMAND [ARGUMENTS] [OPTIONS]\n\ncommands:\n", what_assay_does);
  for (const VerbSpec& verb : verbs()) out += fmt::format("  {:<12}{}\n", verb.name, verb.summary);
  for (const auto& [name, help] : built_in_words()) out += fmt::format("  {:<12}{}\n", name, help);
  out += "\noptions of every command:\n" + option_list(common_options());
  out += "\nexamples:\n";
  for (const VerbSpec& verb : verbs())
    if (!verb.examples.empty()) out += fmt::format("  {}\n", verb.examples.front().command);
  return out + fmt::format("\nexit codes: {}\n", exit_codes);
}

const VerbSpec& ui_command() { return declared("ui"); }

const VerbSpec* built_in_command(std::string_view name) {
  for (const char* declared_word : {"ui", "json", "mcp", "schema"})
    if (name == declared_word) return &declared(declared_word);
  return nullptr;
}

std::string verb_help(const VerbSpec& verb) {
  std::string out = fmt::format("assay {0}: {1}\n\nusage: assay {0}{2}{3}\n\n{4}\n", verb.name, verb.summary,
                                arguments_text(verb), verb.answer || !verb.options.empty() ? " [OPTIONS]" : "",
                                join(report::wrapped(verb.description, help_width), "\n"));
  if (!verb.arguments.empty()) {
    out += "\narguments:\n";
    for (const ArgumentSpec& argument : verb.arguments) out += explained(argument.name, argument.help);
  }
  for (const OptionGroup& group : option_groups(verb))
    out += fmt::format("\n{}:\n{}", group.heading, option_list(group.options));
  if (verb.answer) out += "\noptions of every command:\n" + option_list(common_options());
  if (!verb.examples.empty()) out += "\nexamples:\n";
  for (const auto& [command, shows] : verb.examples) out += fmt::format("  # {}\n  {}\n", shows, command);
  return out;
}

namespace {

/// Text as roff prints it: dashes that can be copied, and no line that looks like a request.
std::string roff(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (c == '\\')
      out += "\\e";
    else if (c == '-')
      out += "\\-";
    else
      out += c;
  }
  return out.starts_with('.') || out.starts_with('\'') ? "\\&" + out : out;
}

std::string entry(std::string_view word, std::string_view meaning) {
  return fmt::format(".TP\n\\fB{}\\fR\n{}\n", roff(word), roff(meaning));
}

std::string option_entries(std::span<const OptionSpec> options) {
  std::string out;
  for (const OptionSpec& option : options)
    out += entry(option_text(option), option_help(option) + (option.repeatable ? " (repeatable)" : ""));
  return out;
}

std::string title(std::string_view name, std::string_view summary) {
  return fmt::format(".TH \"{}\" 1 \"\" \"assay {}\" \"Assay\"\n.SH NAME\n{} \\- {}\n", roff(name), version, roff(name),
                     roff(summary));
}

std::string example(std::string_view command, std::string_view shows) {
  return fmt::format(".PP\n{}:\n.PP\n.nf\n.RS\n{}\n.RE\n.fi\n", roff(shows), roff(command));
}

std::string page_of_program() {
  std::string out = title("assay", what_assay_does);
  out += ".SH SYNOPSIS\n\\fBassay\\fR \\fICOMMAND\\fR [ARGUMENTS] [OPTIONS]\n.SH COMMANDS\n";
  for (const VerbSpec& verb : verbs())
    out += entry(verb.name, fmt::format("{}; see assay-{}(1)", verb.summary, verb.name));
  for (const auto& [name, summary] : built_in_words())
    out +=
        entry(name, built_in_command(name) ? fmt::format("{}; see assay-{}(1)", summary, name) : std::string(summary));
  out += ".SH OPTIONS\nEvery command takes these.\n" + option_entries(common_options());
  out += ".SH EXAMPLES\n";
  for (const VerbSpec& verb : verbs())
    if (!verb.examples.empty()) out += example(verb.examples.front().command, verb.examples.front().shows);
  out += fmt::format(".SH EXIT STATUS\n{}\n", roff(exit_codes));
  out += ".SH ENVIRONMENT\n" +
         entry("ASSAY_CATALOGUE", "a directory of files that overlay the catalogue, as --catalogue does") +
         entry("NO_COLOR", "no colours");
  return out;
}

std::string page_of(const VerbSpec& verb) {
  std::string out = title(fmt::format("assay-{}", verb.name), verb.summary);
  out += fmt::format(".SH SYNOPSIS\n\\fBassay {}\\fR{}{}\n.SH DESCRIPTION\n{}\n", verb.name, roff(arguments_text(verb)),
                     verb.answer || !verb.options.empty() ? " [OPTIONS]" : "", roff(verb.description));
  if (!verb.arguments.empty()) out += ".SH ARGUMENTS\n";
  for (const ArgumentSpec& argument : verb.arguments) out += entry(argument.name, argument.help);
  if (verb.answer || !verb.options.empty()) out += ".SH OPTIONS\n";
  for (const OptionGroup& group : option_groups(verb))
    out += (group.heading == "options" ? "" : fmt::format(".SS {}\n", group.heading)) + option_entries(group.options);
  if (verb.answer) out += ".SH OPTIONS OF EVERY COMMAND\n" + option_entries(common_options());
  if (!verb.examples.empty()) out += ".SH EXAMPLES\n";
  for (const auto& [command, shows] : verb.examples) out += example(command, shows);
  return out + fmt::format(".SH EXIT STATUS\n{}\n.SH SEE ALSO\n.BR assay (1)\n", roff(exit_codes));
}

}  // namespace

Result<std::string> man_page(std::string_view verb) {
  if (verb.empty()) return page_of_program();
  if (const VerbSpec* built_in = built_in_command(verb)) return page_of(*built_in);
  ASSAY_TRY(found, find_verb(verb));
  return page_of(*found);
}

}  // namespace assay::verbs

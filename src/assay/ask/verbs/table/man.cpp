// Man pages, made from the verb table.
#include <fmt/format.h>

#include "assay/ask/verbs/table/pages.h"
#include "assay/base/text.h"
#include "assay/base/version.h"

namespace assay::verbs {
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
  for (const auto& [name, summary] : built_in_words()) out += entry(name, summary);
  out += ".SH OPTIONS\nEvery command takes these.\n" + option_entries(common_options());
  out += ".SH EXAMPLES\n";
  for (const VerbSpec& verb : verbs())
    if (!verb.examples.empty()) out += example(verb.examples.front().first, verb.examples.front().second);
  out += fmt::format(".SH EXIT STATUS\n{}\n", roff(exit_codes));
  out += ".SH ENVIRONMENT\n" +
         entry("ASSAY_CATALOGUE", "a directory of files that overlay the catalogue, as --catalogue does") +
         entry("NO_COLOR", "no colours");
  return out;
}

std::string page_of(const VerbSpec& verb) {
  std::string out = title(fmt::format("assay-{}", verb.name), verb.summary);
  out += fmt::format(".SH SYNOPSIS\n\\fBassay {}\\fR{} [OPTIONS]\n.SH DESCRIPTION\n{}\n", verb.name,
                     roff(arguments_text(verb)), roff(verb.description));
  if (!verb.arguments.empty()) out += ".SH ARGUMENTS\n";
  for (const ArgumentSpec& argument : verb.arguments) out += entry(argument.name, argument.help);
  out += ".SH OPTIONS\n";
  for (const OptionGroup& group : option_groups(verb))
    out += (group.inputs.empty() ? "" : fmt::format(".SS For {}\n", group.inputs)) + option_entries(group.options);
  out += ".SH OPTIONS OF EVERY COMMAND\n" + option_entries(common_options());
  if (!verb.examples.empty()) out += ".SH EXAMPLES\n";
  for (const auto& [command, shows] : verb.examples) out += example(command, shows);
  return out + fmt::format(".SH EXIT STATUS\n{}\n.SH SEE ALSO\n.BR assay (1)\n", roff(exit_codes));
}

}  // namespace

Result<std::string> man_page(std::string_view verb) {
  if (verb.empty()) return page_of_program();
  ASSAY_TRY(found, find_verb(verb));
  return page_of(*found);
}

}  // namespace assay::verbs

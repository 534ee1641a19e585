// What help and man pages share.
#pragma once
#include <string>
#include <string_view>

#include "assay/ask/launch/target.h"
#include "assay/ask/verbs/request.h"
#include "assay/base/result.h"

namespace assay::verbs {

inline constexpr std::string_view what_assay_does =
    "predicts how long language models take to train and serve, what limits them, and why";
inline constexpr std::string_view exit_codes =
    "0 ok, 1 bad input, 2 usage, 3 infeasible, 4 check failed, 70 a bug in assay, 130 interrupted";

/// An option with its value, as one writes it: --tp N, --explain[=PATH].
std::string option_text(const OptionSpec& option);
/// `assay ui`, described as verbs are: it answers no request, but its help and completion come from here, too.
const VerbSpec& ui_command();

/// A command that answers no request, described as verbs are: `ui`, `json`, `mcp` or `schema`; null for other words.
const VerbSpec* built_in_command(std::string_view name);

/// What follows the name of a verb: MODEL [OP...].
std::string arguments_text(const VerbSpec& verb);

/// A verb's options by what they are for: the groups that its declaration names, then those for all of its inputs, then
/// those for some.
struct OptionGroup {
  std::string heading;  ///< "parallelism", "options for a training run or a serving run"
  std::vector<OptionSpec> options;
};
std::vector<OptionGroup> option_groups(const VerbSpec& verb);

/// The programs that --emit of a verb writes for.
std::vector<launch::Target> programs_of(const VerbSpec& verb);

/// The man page of a command, or of the program, in the language of man(7). Of an unknown verb: an error.
Result<std::string> man_page(std::string_view verb);

}  // namespace assay::verbs

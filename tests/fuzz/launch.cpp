// Files and command lines of other programs: any bytes as a script or as a file give options of one program and a plan,
// or an error; and quoted words are read back.
#include <string>
#include <string_view>

#include "assay/ask/launch/command.h"
#include "assay/ask/launch/plan.h"
#include "assay/ask/launch/shell.h"
#include "target.h"

namespace {

using namespace assay;
using fuzz::require;

constexpr launch::Relation relations[] = {{"chips", "dp * fsdp * tp * cp * pp"}, {"chips", "nodes * node_chips"}};

void check_script(std::string_view text, const hardware::Catalogue& catalogue) {
  for (const std::string_view verb : {"train", "serve"}) {
    const auto targets = launch::targets_of(catalogue, verb);
    const auto jobs = launch::jobs_of(catalogue);
    const auto found = launch::find_options_in({**targets, **jobs, {}, {}}, text, "fuzz");
    if (!found) {
      require(!found.error().what.empty());
      continue;
    }
    const auto reading = launch::read_lines(found->target, found->given, {}, relations);
    // Every option is used or named.
    if (reading) require(reading->used.size() + reading->unused.size() >= found->given.size());
  }
}

const fuzz::Target launch_target("launch", [](std::string_view text) {
  static const hardware::Catalogue catalogue = hardware::Catalogue::builtin();
  check_script(text, catalogue);
  for (const launch::Style style : {launch::Style::toml, launch::Style::yaml, launch::Style::json})
    if (const auto given = launch::read_document(style, text, "fuzz"); !given) require(!given.error().what.empty());
  if (text.find_first_of(std::string_view("\0\1\2", 3)) != std::string_view::npos) return;
  const auto words = launch::read_shell("run " + launch::shell_quoted(text), "fuzz");
  require(words && words->commands.size() == 1 && words->commands.front().size() == 2 &&
          words->commands.front()[1] == text);
});

}  // namespace

// Which options count for which kinds of input, by the verb table.
#include <fmt/format.h>

#include <algorithm>

#include "assay/ask/verbs/table/pages.h"
#include "assay/base/text.h"

namespace assay::verbs {
namespace {

const InputKind& input_kind(const VerbSpec& verb, std::string_view word) {
  const auto found =
      std::find_if(verb.inputs.begin(), verb.inputs.end(), [&](const InputKind& kind) { return kind.word == word; });
  if (found == verb.inputs.end()) throw InternalError(fmt::format("{} takes no input {}", verb.name, word));
  return *found;
}

std::vector<InputKind> kinds_of(const VerbSpec& verb, const OptionSpec& option) {
  std::vector<InputKind> out;
  if (option.inputs.empty()) return out;
  for (const std::string& word : split(option.inputs, '|')) out.push_back(input_kind(verb, word));
  return out;
}

}  // namespace

std::string inputs_text(const VerbSpec& verb, const OptionSpec& option) {
  std::vector<std::string> names;
  for (const InputKind& kind : kinds_of(verb, option)) names.emplace_back(kind.name);
  return join(names, " or ");
}

std::vector<OptionGroup> option_groups(const VerbSpec& verb) {
  std::vector<OptionGroup> out;
  for (const OptionNames& names : verb.groups) {
    OptionGroup& group = out.emplace_back(OptionGroup{names.heading, {}});
    for (const std::string& name : names.options) group.options.push_back(*find_option(verb, name));
  }
  const std::string all = out.empty() ? "options" : "other options";
  out.push_back({all, {}});
  for (const OptionSpec& option : verb.options) {
    const bool is_named = std::any_of(verb.groups.begin(), verb.groups.end(), [&](const OptionNames& names) {
      return std::find(names.options.begin(), names.options.end(), option.name) != names.options.end();
    });
    if (is_named) continue;
    const std::string inputs = inputs_text(verb, option);
    const std::string heading = inputs.empty() ? all : fmt::format("options for {}", inputs);
    auto group = std::find_if(out.begin(), out.end(), [&](const OptionGroup& one) { return one.heading == heading; });
    if (group == out.end()) group = out.insert(out.end(), {heading, {}});
    group->options.push_back(option);
  }
  std::erase_if(out, [](const OptionGroup& group) { return group.options.empty(); });
  return out;
}

Result<void> check_inputs(const Request& request, std::string_view kind) {
  const VerbSpec& verb = request.verb();
  const InputKind& given = input_kind(verb, kind);
  for (const OptionSpec& option : verb.options) {
    const std::vector<InputKind> kinds = kinds_of(verb, option);
    const bool counts = kinds.empty() ||
                        std::any_of(kinds.begin(), kinds.end(), [&](const InputKind& one) { return one.word == kind; });
    const auto& general = request.for_all_;
    if (counts || !request.has(option.name) || std::find(general.begin(), general.end(), option.name) != general.end())
      continue;
    return fail(fmt::format("--{}", option.name),
                fmt::format("this option is for {}, and has no effect on {}", inputs_text(verb, option), given.name),
                fmt::format("leave it out, or give it to {}: {}", kinds.front().name, kinds.front().example),
                Error::Kind::usage);
  }
  return {};
}

}  // namespace assay::verbs

#include "assay/ask/launch/plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "assay/ask/launch/conditions.h"
#include "assay/base/text.h"

namespace assay::launch {

std::string filled(std::string text, const Settings& plan) {
  for (std::size_t open = text.find('{'); open != std::string::npos; open = text.find('{', open + 1)) {
    const std::size_t close = text.find('}', open);
    if (close == std::string::npos) break;
    const auto found = plan.find(std::string_view(text).substr(open + 1, close - open - 1));
    if (found == plan.end()) continue;
    std::string value = found->second;
    std::replace_if(
        value.begin(), value.end(), [](char c) { return static_cast<unsigned char>(c) < 0x20; }, ' ');
    text.replace(open, close - open + 1, value);
    open += value.size() == 0 ? 0 : value.size() - 1;
  }
  return text;
}

namespace {

/// Fields that make a case hold, with their values; none where a value is not a single one.
Pairs changes_for(const Case& one, const Settings& plan) {
  Pairs out;
  for (const auto& condition : one.when) {
    if (hold({condition}, plan)) continue;
    const auto& [field, value] = condition;
    if (value.starts_with('>') || value.starts_with(equal_word)) return {};
    out.emplace_back(field, value.starts_with(within_word) ? value.substr(within_word.size()) : value);
  }
  return out;
}

/// A field as people give it: an option, or a fact that no option changes.
std::string field_text(std::string_view field) {
  constexpr std::string_view facts[] = {"adapters", "layers", "model", "network", "nodes"};
  const bool fact = std::find(std::begin(facts), std::end(facts), field) != std::end(facts);
  return fmt::format("{}{}", fact ? "" : "--", field);
}

std::string condition_text(const std::pair<std::string, std::string>& condition) {
  const auto& value = condition.second;
  const std::string field = field_text(condition.first);
  if (value.starts_with(within_word)) return fmt::format("{} {}", field, value.substr(within_word.size()));
  if (value.starts_with('>')) return fmt::format("{} above {}", field, value.substr(1));
  return fmt::format("{} {}", field, value);
}

/// What an option says of a plan; nothing where the plan leaves it open.
std::optional<std::string> value_of(const Option& option, const Settings& plan) {
  if (!option.pattern.empty()) return filled(option.pattern, plan);
  if (!option.field.empty()) {
    const auto found = plan.find(option.field);
    if (found == plan.end() || !found->second.ends_with(option.suffix)) return std::nullopt;
    return found->second.substr(0, found->second.size() - option.suffix.size());
  }
  const auto number = value_of(option.product, plan);
  return number ? std::optional(exact_number(*number)) : std::nullopt;
}

/// What sets the model apart and the program cannot run.
std::optional<Refusal> refusal_of_model(const Target& target, const Settings& plan) {
  const auto traits = plan.find("traits");
  if (!target.runs || traits == plan.end()) return std::nullopt;
  std::vector<std::string> missing;
  for (const std::string& trait : split(traits->second, ','))
    if (!trait.empty() && std::find(target.runs->begin(), target.runs->end(), trait) == target.runs->end())
      missing.push_back(trait);
  if (missing.empty()) return std::nullopt;
  const auto words = [](std::string list) {
    std::replace(list.begin(), list.end(), '-', ' ');
    return list;
  };
  const auto model = plan.find("model");
  return Refusal{fmt::format("{} {} has no option for what {} has: {}", target.name, target.version,
                             model == plan.end() ? "the model" : model->second, words(join(missing, ", "))),
                 fmt::format("beyond plain layers it can run {}; leave --emit out for the prediction alone",
                             words(join(*target.runs, ", "))),
                 {}};
}

}  // namespace

std::optional<Refusal> refusal_of(const Target& target, const Settings& plan) {
  if (auto refused = refusal_of_model(target, plan)) return refused;
  for (const Choice& choice : target.choices) {
    std::vector<const Case*> cases;
    for (const Case& one : choice.cases) cases.push_back(&one);
    const auto differs = [&](const Case* one) {
      return std::count_if(one->when.begin(), one->when.end(),
                           [&](const auto& condition) { return !hold({condition}, plan); });
    };
    std::stable_sort(cases.begin(), cases.end(), [&](const Case* a, const Case* b) { return differs(a) < differs(b); });
    if (differs(cases.front()) == 0) continue;
    std::vector<std::string> asked, change;
    for (const auto& condition : cases.front()->when) {
      const auto found = plan.find(condition.first);
      if (found != plan.end()) asked.push_back(fmt::format("{} {}", field_text(condition.first), found->second));
      if (!hold({condition}, plan)) change.push_back(condition_text(condition));
    }
    Refusal out{fmt::format("{} {} cannot run {}", target.name, target.version, join(asked, " ")),
                fmt::format("the nearest that it can run: {}", join(change, " ")),
                {},
                choice.about};
    for (const Case* one : cases)
      if (auto changes = changes_for(*one, plan); !changes.empty()) out.changes.push_back(std::move(changes));
    return out;
  }
  for (const Demand& demand : target.demands) {
    const auto value = hold(demand.when, plan) ? value_of(demand.product, plan) : std::nullopt;
    if (!value || *value == std::round(*value)) continue;
    return Refusal{
        fmt::format("{} {} cannot run this plan", target.name, target.version), filled(demand.text, plan), {}};
  }
  return std::nullopt;
}

bool has_layers_of(const Target& target, const Settings& shape) { return !refusal_of_model(target, shape); }

bool runs_model(const Target& target, const Settings& plan) {
  return !refusal_of_model(target, plan) &&
         std::all_of(target.choices.begin(), target.choices.end(), [&](const Choice& choice) {
           return (choice.about != "model" && choice.about != "network") ||
                  std::any_of(choice.cases.begin(), choice.cases.end(),
                              [&](const Case& one) { return hold(one.when, plan); });
         });
}

Result<std::vector<Line>> lines_of(const Target& target, const Settings& plan) {
  if (const auto refused = refusal_of(target, plan)) return fail("--emit " + target.id, refused->what, refused->hint);
  std::vector<Line> lines;
  for (const Option& option : target.options) {
    if (option.read_only || !hold(option.when, plan)) continue;
    if (!option.unless.empty() && hold(option.unless, plan)) continue;
    const auto value = value_of(option, plan);
    if (value && (option.first || *value != option.standard))
      lines.push_back({.name = option.name,
                       .value = *value,
                       .reason = filled(option.reason, plan),
                       .is_text = !option.field.empty() || !option.pattern.empty(),
                       .launcher = option.launcher,
                       .first = option.first});
  }
  for (const Choice& choice : target.choices) {
    const auto found =
        std::find_if(choice.cases.begin(), choice.cases.end(), [&](const Case& one) { return hold(one.when, plan); });
    for (const std::string& name : names_of(choice)) {
      const auto said =
          std::find_if(found->options.begin(), found->options.end(), [&](const auto& o) { return o.first == name; });
      const std::string standard(choice.standard(name).value_or("false"));
      const std::string& value = said == found->options.end() ? standard : said->second;
      const bool again = std::any_of(lines.begin(), lines.end(), [&](const Line& line) { return line.name == name; });
      if (again || value == "*" || (value == standard && !target.explicit_)) continue;
      const auto about = plan.find(choice.about);
      const std::string what = about == plan.end() ? choice.about : fmt::format("{} {}", choice.about, about->second);
      lines.push_back(
          {.name = name, .value = value, .reason = found->reason.empty() ? what : filled(found->reason, plan)});
    }
  }
  for (const Constant& constant : target.constants)
    if (hold(constant.when, plan))
      lines.push_back({.name = constant.name,
                       .value = constant.value,
                       .reason = constant.reason,
                       .environment = constant.environment});
  for (Line& line : lines)
    line.is_list = std::find(target.lists.begin(), target.lists.end(), line.name) != target.lists.end();
  return lines;
}

Result<void> check_accepted(const Target& target, const Settings& plan, std::span<const Line> lines) {
  const std::string where = "--emit " + target.id;
  for (const Line& line : lines)
    if (!line.first && !line.environment && !target.knows(line.name))
      return fail(where, fmt::format("{} {} has no option {}", target.name, target.version, line.name),
                  suggestion(line.name, target.known));
  for (const Required& one : target.required) {
    if (!hold(one.when, plan)) continue;
    const auto said = std::find_if(lines.begin(), lines.end(), [&](const Line& line) { return line.name == one.name; });
    if (said == lines.end() || (!one.value.empty() && said->value != one.value))
      return fail(where, fmt::format("{} {} needs {} {}", target.name, target.version, one.name, one.value),
                  "leave --emit out for the prediction alone");
  }
  return {};
}

std::optional<std::string> layer_places(const Settings& plan) {
  const auto split = plan.find("split");
  const auto layers = number_of(plan, "layers");
  if (split == plan.end() || !layers) return std::nullopt;
  const double ends = split->second == "ends"                                   ? 2.0
                      : split->second == "embedding" || split->second == "loss" ? 1.0
                                                                                : 0.0;
  return exact_number(*layers + ends);
}

std::string rendezvous_of(const Target& target, const Settings& plan) {
  const auto nodes = plan.find(plan.find("server_nodes") == plan.end() ? "nodes" : "server_nodes");
  if (nodes == plan.end() || nodes->second == "1") return "";
  const auto found = std::find_if(target.rendezvous.begin(), target.rendezvous.end(),
                                  [&](const Rendezvous& one) { return hold(one.when, plan); });
  return found == target.rendezvous.end() ? "" : filled(found->text, plan);
}

std::vector<std::string> open_options(const Target& target, const Settings& plan) {
  std::vector<std::string> out;
  for (const Option& option : target.options)
    if (option.asked && hold(option.when, plan) && !value_of(option, plan)) out.push_back(option.name);
  return out;
}

}  // namespace assay::launch

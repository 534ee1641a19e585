#include "assay/ask/sweep/plan.h"

#include <fmt/format.h>

#include <algorithm>

#include "assay/base/record_reader.h"
#include "assay/base/text.h"

namespace assay::sweep {
namespace {

constexpr std::string_view goal_example = "e.g. \"lowest step_time.estimate\" or \"highest mfu\"";

/// A value of a request; nothing where it cannot be one.
std::optional<report::Value> request_value(const Toml& node) {
  switch (node.kind) {
    case Toml::Kind::text:
      return report::Value(node.text);
    case Toml::Kind::integer:
      return report::Value(node.integer);
    case Toml::Kind::number:
      return report::Value(node.number);
    case Toml::Kind::boolean:
      return report::Value(node.boolean);
    case Toml::Kind::array: {
      report::Items items;
      for (const Toml& item : node.items) {
        auto value = request_value(item);
        if (!value || value->items()) return std::nullopt;
        items.push_back(std::move(*value));
      }
      return report::Value(std::move(items));
    }
    default:
      return std::nullopt;
  }
}

void read_arguments(RecordReader& root, Plan& plan) {
  root.each_key("arguments", [&](const std::string& name, RecordReader& arguments) {
    const Toml& node = *arguments.find(name);
    if (auto value = request_value(node))
      plan.arguments.emplace_back(name, std::move(*value));
    else
      arguments.fault_at(node, name, "expected text, a number, true, false or a list of texts");
  });
}

void read_grid(RecordReader& root, Plan& plan) {
  root.each_key("grid", [&](const std::string& name, RecordReader& grid) {
    const Toml& node = *grid.find(name);
    auto values = node.kind == Toml::Kind::array ? request_value(node) : std::nullopt;
    if (!values || values->items()->empty())
      return grid.fault_at(node, name, "expected a list of values", "e.g. batch = [\"1Mi\", \"4Mi\"]");
    plan.axes.push_back({name, *values->items()});
    const bool shared = std::any_of(plan.arguments.begin(), plan.arguments.end(),
                                    [&](const auto& argument) { return argument.first == name; });
    if (shared) grid.fault_at(node, name, "[arguments] gives it as well", "keep one of them");
  });
}

std::optional<Goal> goal_of(std::string_view text) {
  const std::size_t blank = text.find(' ');
  const std::string_view word = text.substr(0, blank);
  if (blank == std::string_view::npos || (word != "lowest" && word != "highest")) return std::nullopt;
  return Goal{std::string(text), std::string(trim(text.substr(blank))), word == "highest"};
}

/// One text, or a list of them.
void read_names(RecordReader& summary, std::string_view key, std::vector<std::string>& names) {
  const Toml* node = summary.find(key);
  if (node && node->kind == Toml::Kind::text)
    names.push_back(node->text);
  else if (node)
    summary.texts(key, names);
}

void read_goals(RecordReader& summary, std::string_view file, std::string_view key, std::vector<Goal>& goals) {
  std::vector<std::string> texts;
  read_names(summary, key, texts);
  for (const std::string& text : texts) {
    if (auto goal = goal_of(text)) {
      const Toml* node = summary.find(key);
      goal->place = fmt::format("{}:{}:{}: summary.{}", file, node->line, node->column, key);
      goals.push_back(std::move(*goal));
    } else {
      summary.fault(key, fmt::format("{} does not say what is best", in_quotes(text)), std::string(goal_example));
    }
  }
}

/// The axes of the grid that have more than one value, those of for_each last.
std::vector<std::string> varied_axes(const Plan& plan) {
  std::vector<std::string> out, last;
  for (const Axis& axis : plan.axes) {
    const bool apart = std::find(plan.for_each.begin(), plan.for_each.end(), axis.name) != plan.for_each.end();
    if (axis.values.size() > 1) (apart ? last : out).push_back(axis.name);
  }
  if (out.size() < 2) out.insert(out.begin(), last.begin(), last.end());
  out.resize(std::max<std::size_t>(2, out.size()));
  return out;
}

void read_summary(RecordReader& summary, std::string_view file, Plan& plan) {
  read_goals(summary, file, "best", plan.best);
  read_names(summary, "for_each", plan.for_each);
  read_goals(summary, file, "front", plan.front);
  if (!plan.front.empty() && plan.front.size() != 2)
    summary.fault("front", "a front weighs two results against each other",
                  "e.g. front = [\"lowest step_time.estimate\", \"lowest cost\"]");
  if (!summary.has("heat_map")) return;
  const std::vector<std::string> axes = varied_axes(plan);
  HeatMap map{{}, axes[1], axes[0]};
  std::vector<Goal> goals;
  read_goals(summary, file, "heat_map", goals);
  if (goals.size() > 1) summary.fault("heat_map", "a heat map shows one result", std::string(goal_example));
  if (!goals.empty()) map.goal = std::move(goals.front());
  if (summary.has("across")) summary.text("across", map.across);
  if (summary.has("down")) summary.text("down", map.down);
  if (map.across.empty() || map.down.empty() || map.across == map.down)
    summary.fault("heat_map", "a heat map needs two arguments that vary",
                  "name them: across = \"batch\", down = \"on\"");
  plan.heat_map = std::move(map);
}

}  // namespace

std::size_t Plan::grid_size() const {
  if (verb.empty()) return 0;
  std::size_t size = 1;
  for (const Axis& axis : axes) {
    size *= axis.values.size();
    if (size > most_requests) return most_requests + 1;
  }
  return size;
}

report::Value Plan::grid_request(std::size_t number) const {
  report::Members all = arguments;
  for (std::size_t i = axes.size(); i-- > 0;) {
    all.emplace_back(axes[i].name, axes[i].values[number % axes[i].values.size()]);
    number /= axes[i].values.size();
  }
  return report::Members{{"verb", verb}, {"arguments", std::move(all)}};
}

Result<Plan> read_plan(std::string_view document, std::string_view file) {
  RecordFile record{std::string(file), "docs/sweep.md lists the keys", false, true};
  Plan plan;
  ASSAY_CHECK(read_record(document, record, [&](RecordReader& root) {
    if (root.has("verb")) root.text("verb", plan.verb);
    read_arguments(root, plan);
    read_grid(root, plan);
    if (root.has("requests")) root.texts("requests", plan.commands);
    if (plan.verb.empty() && (!plan.axes.empty() || !plan.arguments.empty()))
      root.fault("verb", "a grid is of one verb", "e.g. verb = \"train\"");
    if (plan.verb.empty() && plan.commands.empty())
      root.fault("requests", "the file asks nothing",
                 "give verb and [grid], or requests = [\"train llama-3-8b --on h100-sxm:8\"]");
    root.optional_table("summary", [&](RecordReader& summary) { read_summary(summary, file, plan); });
  }));
  if (plan.grid_size() + plan.commands.size() > most_requests)
    return fail(std::string(file), fmt::format("a sweep has at most {} requests", human_count(most_requests)),
                "split the grid into several files");
  return plan;
}

}  // namespace assay::sweep

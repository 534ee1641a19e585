#include "assay/ask/sweep/summary.h"

#include <fmt/format.h>

#include <algorithm>

#include "assay/base/text.h"

namespace assay::sweep {
namespace {

const report::Value* result(const Row& row, std::string_view path) {
  for (const auto& [key, value] : row.results)
    if (key == path) return &value;
  return nullptr;
}

/// Lower is better.
std::optional<double> rank_of(const Row& row, const Goal& goal) {
  const auto number = row.number(goal.path);
  if (!number) return std::nullopt;
  return goal.highest ? -*number : *number;
}

Pick pick_of(const Row& row, std::string among, std::span<const Goal> goals) {
  std::vector<std::string> texts;
  Pick pick{{}, std::move(among), row.arguments, row.headline, {}};
  for (const Goal& goal : goals) {
    texts.push_back(goal.text);
    const report::Value* value = result(row, goal.path);
    pick.values.push_back(value ? *value : report::Value());
  }
  pick.goal = join(texts, ", ");
  return pick;
}

std::size_t place_of(std::vector<std::string>& names, const std::string& name) {
  const auto found = std::find(names.begin(), names.end(), name);
  if (found != names.end()) return static_cast<std::size_t>(found - names.begin());
  names.push_back(name);
  return names.size() - 1;
}

}  // namespace

Summary::Summary(const Plan& plan) : plan_(plan) {
  if (!plan.heat_map) return;
  table_ = HeatTable{*plan.heat_map, {}, {}, {}, {}, {}};
  for (const std::string& name : plan.for_each)
    if (name != plan.heat_map->across && name != plan.heat_map->down) maps_for_.push_back(name);
}

std::string Summary::among(const Row& row, const std::vector<std::string>& names) {
  std::vector<std::string> parts;
  for (const std::string& name : names) parts.push_back(fmt::format("{} {}", name, row.argument(name)));
  return join(parts, ", ");
}

void Summary::add_best(const Row& row) {
  const std::string group = among(row, plan_.for_each);
  for (const Goal& goal : plan_.best) {
    const auto value = rank_of(row, goal);
    if (!value) continue;
    const std::string key = goal.text + "\n" + group;
    auto found = std::find_if(best_.begin(), best_.end(), [&](const auto& entry) { return entry.first == key; });
    if (found == best_.end())
      best_.push_back({key, {*value, pick_of(row, group, {&goal, 1})}});
    else if (*value < found->second.value)
      found->second = {*value, pick_of(row, group, {&goal, 1})};
  }
}

void Summary::add_to_front(const Row& row) {
  const auto x = rank_of(row, plan_.front[0]), y = rank_of(row, plan_.front[1]);
  if (!x || !y) return;
  const std::string group = among(row, plan_.for_each);
  for (const auto& [at, pick] : front_)
    if (pick.among == group && at.x <= *x && at.y <= *y) return;
  std::erase_if(front_, [&](const auto& entry) {
    return entry.second.among == group && *x <= entry.first.x && *y <= entry.first.y;
  });
  front_.push_back({{*x, *y}, pick_of(row, group, plan_.front)});
}

void Summary::add_to_table(const Row& row, HeatTable& table) {
  const report::Value* value = row.outcome == "ok" ? result(row, table.map.goal.path) : nullptr;
  const std::string across = row.argument(table.map.across), down = row.argument(table.map.down);
  if (across.empty() || down.empty()) return;
  const std::size_t column = place_of(table.columns, across), line = place_of(table.rows, down);
  table.cells.resize(table.rows.size());
  auto& cells = table.cells[line];
  if (cells.size() <= column) cells.resize(column + 1);
  const auto number = value ? report::numeric(*value) : std::nullopt;
  if (!number || (cells[column] && (table.map.goal.highest ? *number <= *cells[column] : *number >= *cells[column])))
    return;
  cells[column] = number;
  if (const auto* quantity = std::get_if<report::QuantityValue>(&value->data()))
    table.unit = base_unit(quantity->quantity.dim);
}

void Summary::add(const Row& row) {
  constexpr std::size_t most_faults = 10;
  if (!row.is_answered()) {
    ++failed;
    const auto known =
        std::find_if(faults.begin(), faults.end(), [&](const Fault& fault) { return fault.error == row.error; });
    if (known != faults.end())
      ++known->count;
    else if (faults.size() < most_faults)
      faults.push_back({row.error, row.request, 1});
  } else if (row.outcome == "infeasible") {
    ++infeasible;
  } else {
    ++answered;
    for (const auto& [path, value] : row.results)
      if (report::numeric(value)) known_.insert(path);
    add_best(row);
    if (plan_.front.size() == 2) add_to_front(row);
  }
  if (!table_) return;
  add_to_table(row, *table_);
  if (maps_for_.empty()) return;
  const std::string group = among(row, maps_for_);
  auto own = std::find_if(tables_.begin(), tables_.end(), [&](const HeatTable& one) { return one.among == group; });
  if (own == tables_.end()) own = tables_.insert(tables_.end(), {*plan_.heat_map, group, {}, {}, {}, {}});
  add_to_table(row, *own);
}

std::vector<Pick> Summary::best() const {
  std::vector<Pick> out;
  for (const Goal& goal : plan_.best)
    for (const auto& [key, entry] : best_)
      if (entry.pick.goal == goal.text) out.push_back(entry.pick);
  return out;
}

std::vector<Pick> Summary::front() const {
  std::vector<std::string> groups;
  for (const auto& [at, pick] : front_) place_of(groups, pick.among);
  std::vector<Pick> out;
  for (const std::string& group : groups) {
    std::vector<search::FrontPoint> points;
    std::vector<const Pick*> picks;
    for (const auto& [at, pick] : front_)
      if (pick.among == group) {
        points.push_back(at);
        picks.push_back(&pick);
      }
    for (const std::size_t i : search::pareto_front(points)) out.push_back(*picks[i]);
  }
  return out;
}

Result<void> Summary::check() const {
  if (answered == 0) return {};
  std::vector<Goal> wanted = plan_.best;
  wanted.insert(wanted.end(), plan_.front.begin(), plan_.front.end());
  if (plan_.heat_map) wanted.push_back(plan_.heat_map->goal);
  for (const Goal& goal : wanted)
    if (!known_.contains(goal.path))
      return fail(goal.place, fmt::format("no answer has a number {}; the rows are kept", in_quotes(goal.path)),
                  suggestion(goal.path, std::vector<std::string>(known_.begin(), known_.end())));
  return {};
}

}  // namespace assay::sweep

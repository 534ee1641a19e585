// assay sweep: many requests, answered on all cores, and what is best among them.
#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>

#include "assay/ask/draw/heat_map.h"
#include "assay/ask/draw/stacked.h"
#include "assay/ask/sweep/summary.h"
#include "assay/ask/sweep/tables.h"
#include "assay/ask/verbs/option_values.h"
#include "assay/ask/verbs/sweep/run.h"
#include "assay/ask/verbs/verbs.h"
#include "assay/base/parallel.h"
#include "assay/base/progress.h"
#include "assay/base/text.h"

namespace assay::verbs::sweep_verb {
namespace {

using sweep::HeatTable;
using sweep::Pick;
using sweep::Plan;
using sweep::Store;
using sweep::Summary;

report::Items pick_items(const std::vector<Pick>& picks) {
  return report::rows_of(picks, [&](const Pick& pick) {
    report::Members item{{"goal", pick.goal}};
    if (!pick.among.empty()) item.emplace_back("among", pick.among);
    report::Items values;
    for (const report::Value& value : pick.values) values.push_back(value);
    item.emplace_back("values", std::move(values));
    item.emplace_back("verb", pick.arguments.front().second);
    item.emplace_back("arguments", report::Members(pick.arguments.begin() + 1, pick.arguments.end()));
    item.emplace_back("headline", pick.headline);
    return item;
  });
}

report::Members heat_members(const HeatTable& table) {
  report::Items rows;
  for (std::size_t i = 0; i < table.rows.size(); ++i) {
    report::Items values;
    for (std::size_t k = 0; k < table.columns.size(); ++k)
      values.push_back(k < table.cells[i].size() && table.cells[i][k] ? report::Value(*table.cells[i][k])
                                                                      : report::Value());
    rows.emplace_back(report::Members{{"name", table.rows[i]}, {"values", std::move(values)}});
  }
  report::Members out{{"goal", table.map.goal.text}};
  if (!table.among.empty()) out.emplace_back("among", table.among);
  out.emplace_back("unit", table.unit);
  out.emplace_back("across", table.map.across);
  out.emplace_back("down", table.map.down);
  out.emplace_back("columns", report::Items(table.columns.begin(), table.columns.end()));
  out.emplace_back("rows", std::move(rows));
  return out;
}

/// A number of that unit as people read it.
std::string shown(double value, const std::string& unit) {
  if (unit.empty()) return human_number(value);
  const auto one = parse_quantity("1 " + unit, "");
  return one ? human(AnyQuantity(value, one->dim)) : fmt::format("{} {}", human_number(value), unit);
}

draw::Scene heat_picture(const HeatTable& table) {
  draw::HeatMapInput input{fmt::format("{} for each {} and {}{}", table.map.goal.text, table.map.down, table.map.across,
                                       table.among.empty() ? "" : fmt::format(" ({})", table.among)),
                           "the deeper the colour, the larger the value",
                           table.map.across,
                           table.map.down,
                           table.columns,
                           table.rows,
                           {}};
  for (std::size_t i = 0; i < table.rows.size(); ++i) {
    auto& row = input.cells.emplace_back();
    for (std::size_t k = 0; k < table.cells[i].size(); ++k) {
      auto& cell = row.emplace_back();
      if (const auto& value = table.cells[i][k])
        cell = draw::HeatMapCell{*value, shown(*value, table.unit),
                                 fmt::format("{} {}, {} {}: {}", table.map.down, table.rows[i], table.map.across,
                                             table.columns[k], shown(*value, table.unit))};
    }
  }
  return draw_heat_map(input);
}

/// The maps of each value of for_each, or the one of all requests.
std::vector<HeatTable> shown_tables(const Summary& summary) {
  if (!summary.heat_tables().empty()) return summary.heat_tables();
  const auto table = summary.heat_table();
  return table ? std::vector{*table} : std::vector<HeatTable>{};
}

draw::Scene heat_pictures(const Summary& summary) {
  const std::vector<HeatTable> tables = shown_tables(summary);
  draw::Scene out = heat_picture(tables.front());
  for (std::size_t i = 1; i < tables.size(); ++i) out = draw::stacked(std::move(out), heat_picture(tables[i]));
  return out;
}

/// What tells requests apart: the names of the grid that vary.
std::vector<std::string> varied_names(const Plan& plan) {
  std::vector<std::string> names;
  for (const sweep::Axis& axis : plan.axes)
    if (axis.values.size() > 1) names.push_back(axis.name);
  return names;
}

std::string argument_text(const Pick& pick, std::string_view name) {
  for (const auto& [key, value] : pick.arguments)
    if (key == name) return report::scalar_text(value);
  return {};
}

/// The arguments of each pick in columns; requests that a list gives have their headline instead.
void add_picks(report::ScreenTable& table, const std::vector<Pick>& picks, const std::vector<std::string>& names) {
  constexpr std::size_t most = 12;
  for (const Pick& pick : picks) {
    if (table.rows.size() == most) {
      table.more = fmt::format("and {} more", human_count(static_cast<std::int64_t>(picks.size() - most)));
      break;
    }
    std::vector<std::string>& row = table.rows.emplace_back();
    for (const report::Value& value : pick.values) row.push_back(report::scalar_text(value));
    for (const std::string& name : names) row.push_back(argument_text(pick, name));
    if (names.empty()) row.push_back(pick.headline);
  }
}

report::ScreenTable pick_table(std::string label, std::span<const sweep::Goal> goals, const std::vector<Pick>& picks,
                               const Plan& plan) {
  report::ScreenTable table{std::move(label), {}, {}};
  for (const sweep::Goal& goal : goals) table.head.push_back(goal.text);
  const std::vector<std::string> names = varied_names(plan);
  table.head.insert(table.head.end(), names.begin(), names.end());
  if (names.empty()) table.head.emplace_back("request");
  add_picks(table, picks, names);
  return table;
}

report::ScreenTable heat_screen(const HeatTable& table) {
  report::ScreenTable out{
      table.among.empty() ? "map" : table.among, {fmt::format("{} by {}", table.map.down, table.map.across)}, {}};
  out.head.insert(out.head.end(), table.columns.begin(), table.columns.end());
  for (std::size_t i = 0; i < table.rows.size(); ++i) {
    std::vector<std::string> row{table.rows[i]};
    for (std::size_t k = 0; k < table.columns.size(); ++k)
      row.push_back(k < table.cells[i].size() && table.cells[i][k] ? shown(*table.cells[i][k], table.unit) : "");
    out.rows.push_back(std::move(row));
  }
  return out;
}

report::Screen screen_of(const Summary& summary, const Plan& plan, const report::Response& response) {
  report::Screen screen;
  screen.headline.push_back({response.headline, summary.failed > 0 ? report::Tone::warning : report::Tone::strong});
  const auto add = [&](report::ScreenTable table) {
    if (table.rows.empty()) return;
    if (!screen.blocks.empty()) screen.blocks.emplace_back(report::Gap{});
    screen.blocks.emplace_back(std::move(table));
  };
  for (const sweep::Goal& goal : plan.best) {
    std::vector<Pick> picks = summary.best();
    std::erase_if(picks, [&](const Pick& pick) { return pick.goal != goal.text; });
    add(pick_table("best", {&goal, 1}, picks, plan));
  }
  if (plan.front.size() == 2) add(pick_table("front", plan.front, summary.front(), plan));
  for (const HeatTable& table : shown_tables(summary)) add(heat_screen(table));
  report::ScreenTable faults{"errors", {}, {}};
  for (const Summary::Fault& fault : summary.faults)
    faults.rows.push_back(
        {fmt::format("{} request{}", human_count(static_cast<std::int64_t>(fault.count)), fault.count == 1 ? "" : "s"),
         fault.error});
  add(std::move(faults));
  screen.notes = response.important;
  return screen;
}

std::string results_directory(const Request& request) {
  if (const auto given = request.value("results")) return *given;
  const std::filesystem::path file(request.arguments().front());
  return file.stem().string() + ".sweep";
}

/// Adds up the stored rows of the plan, in order.
Result<void> sum_up(const std::vector<std::string>& requests, const Store& store, Summary& summary,
                    sweep::Columns& columns) {
  for (const std::string& request : requests) {
    if (!store.has(request)) continue;
    ASSAY_TRY(row, store.row(request));
    summary.add(row);
    columns.add(row);
  }
  return {};
}

/// `before`: how many rows were there before anything was asked; `asked`: how many this process has answered.
report::Response response_of(const Summary& summary, const Plan& plan, std::size_t requests, std::size_t before,
                             std::size_t asked) {
  report::Response response;
  const auto counted = [](std::size_t n) { return static_cast<std::int64_t>(n); };
  std::string headline =
      fmt::format("{} of {} requests answered", human_count(counted(summary.answered)), human_count(counted(requests)));
  if (summary.infeasible > 0) headline += fmt::format(", {} infeasible", human_count(counted(summary.infeasible)));
  if (summary.failed > 0) headline += fmt::format(", {} failed", human_count(counted(summary.failed)));
  if (before > 0) headline += fmt::format(" ({} were there already)", human_count(counted(before)));
  response.headline = std::move(headline);
  if (summary.answered == 0 && requests > 0)
    response.outcome = summary.failed > 0 ? report::Outcome::check_failed : report::Outcome::infeasible;
  response.results = {{"requests", counted(requests)},
                      {"answered", counted(summary.answered)},
                      {"infeasible", counted(summary.infeasible)},
                      {"failed", counted(summary.failed)},
                      {"asked_now", counted(asked)}};
  if (!plan.best.empty()) response.results.emplace_back("best", pick_items(summary.best()));
  if (!plan.front.empty()) response.results.emplace_back("front", pick_items(summary.front()));
  if (const auto table = summary.heat_table()) response.results.emplace_back("heat_map", heat_members(*table));
  report::Items maps;
  for (const HeatTable& table : summary.heat_tables()) maps.emplace_back(heat_members(table));
  if (!maps.empty()) response.results.emplace_back("heat_maps", std::move(maps));
  report::Items faults;
  for (const Summary::Fault& fault : summary.faults)
    faults.emplace_back(report::Members{
        {"error", fault.error}, {"requests", static_cast<std::int64_t>(fault.count)}, {"first", fault.first}});
  if (!faults.empty()) response.results.emplace_back("faults", std::move(faults));
  return response;
}

void note(report::Response& response, std::string text) {
  response.important.push_back(text);
  response.notes.push_back(std::move(text));
}

}  // namespace

Result<report::Response> answer(const Request& request, const Context& context) {
  const std::string& file = request.arguments().front();
  ASSAY_TRY(document, hardware::read_file(file, "sweep"));
  ASSAY_TRY(plan, sweep::read_plan(document, file));
  if (request.picture() && !plan.heat_map)
    return fail("--format svg", "the picture of a sweep is its heat map",
                "name a result in the file: [summary] heat_map = \"highest mfu\"", Error::Kind::usage);
  ASSAY_TRY(requests, requests_of(plan, file));
  std::optional<std::int64_t> threads;
  ASSAY_CHECK(read_count(request, "threads", threads));
  const std::string directory = results_directory(request);
  const sweep::Ranks& ranks = context.surroundings.ranks;
  ASSAY_TRY(store, Store::open(directory, answered_by(context), ranks.rank));
  const auto before = static_cast<std::size_t>(
      std::count_if(requests.begin(), requests.end(), [&](const std::string& text) { return store->has(text); }));
  const std::size_t cores = threads ? static_cast<std::size_t>(*threads) : core_count();
  ASSAY_TRY(asked, ask_missing(requests, *store, cores, context));
  if (ranks.rank != 0) {
    report::Response response;
    response.headline = fmt::format("rank {} of {}: {} requests answered", ranks.rank, ranks.count,
                                    human_count(static_cast<std::int64_t>(asked)));
    response.results = {{"rank", ranks.rank}, {"asked_now", static_cast<std::int64_t>(asked)}};
    response.screen = report::Screen{{{response.headline}}, {}, {}, {}, {}};
    return response;
  }
  if (!progress.is_stopped() || ranks.count == 1) ASSAY_CHECK(store->finish(requests));
  Summary summary(plan);
  sweep::Columns columns;
  ASSAY_CHECK(sum_up(requests, *store, summary, columns));
  const std::string csv = directory + "/rows.csv", database = directory + "/rows.sqlite", draft = directory + "/draft";
  ASSAY_CHECK(sweep::write_csv(draft, *store, requests, columns));
  std::rename(draft.c_str(), csv.c_str());
  ASSAY_CHECK(sweep::write_database(draft, *store, requests, columns));
  std::rename(draft.c_str(), database.c_str());
  ASSAY_CHECK(summary.check());
  report::Response response = response_of(summary, plan, requests.size(), before, asked);
  response.results.emplace_back("files", report::Items{directory + "/rows.jsonl", csv, database});
  note(response, fmt::format("rows: {0}/rows.jsonl, {0}/rows.csv, {0}/rows.sqlite", directory));
  if (progress.is_stopped()) note(response, "interrupted: the same command goes on where this one stopped");
  if (plan.best.empty() && plan.front.empty() && !plan.heat_map)
    note(response, "[summary] in the file says what is best: best = \"lowest step_time.estimate\"");
  response.screen = screen_of(summary, plan, response);
  if (request.picture()) response.picture = heat_pictures(summary);
  return response;
}

}  // namespace assay::verbs::sweep_verb

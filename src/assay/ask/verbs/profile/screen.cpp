#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "assay/ask/report/patterns.h"
#include "assay/ask/verbs/profile/against.h"
#include "assay/ask/verbs/profile/hlo.h"
#include "assay/ask/verbs/profile/sections.h"

namespace assay::verbs::profile {
namespace {

using report::Reader;
using report::Tone;

void add_bar(report::Screen& screen, std::string label, std::vector<report::BarPart> parts, AnyQuantity whole,
             std::string text) {
  parts.erase(
      std::remove_if(parts.begin(), parts.end(), [](const report::BarPart& part) { return !(part.size > 0.0); }),
      parts.end());
  if (parts.empty()) return;
  screen.blocks.emplace_back(
      report::StackedBar{std::move(label), std::move(parts), report::shared_unit(whole), std::move(text)});
}

/// The time of every category, all kinds of it together.
std::vector<report::BarPart> category_parts(const Reader& results) {
  std::vector<report::BarPart> parts;
  for (const report::Value& row : results.rows("categories")) {
    const Reader reader(*row.members());
    const std::string name = reader.text("category");
    const auto known =
        std::find_if(parts.begin(), parts.end(), [&](const report::BarPart& part) { return part.name == name; });
    if (known == parts.end())
      parts.push_back({name, reader.number("time")});
    else
      known->size += reader.number("time");
  }
  return parts;
}

std::vector<report::Phrase> collective_phrases(const Reader& results) {
  std::vector<report::Phrase> out;
  for (const report::Value& row : results.rows("categories")) {
    const Reader reader(*row.members());
    if (reader.text("category") != "collective") continue;
    for (report::Phrase& phrase :
         report::phrases(reader, {reader.has("kind") ? "{count} {kind} {time}" : "{count} others {time}"}))
      out.push_back(std::move(phrase));
  }
  for (report::Phrase& phrase : report::phrases(results, {"{hidden_communication%} hidden"}))
    out.push_back(std::move(phrase));
  return out;
}

std::vector<report::Phrase> idle_phrases(const Reader& results) {
  if (!(results.number("idle_time") > 0.0)) return {};
  std::vector<report::Phrase> out = report::phrases(results, {"{host_bound_time} waiting for the host"});
  if (!results.rows("gaps").empty()) {
    const Reader longest(*results.rows("gaps").front().members());
    for (report::Phrase& phrase : report::phrases(longest, {"longest gap {time}, before {before}"}))
      out.push_back(std::move(phrase));
  }
  return out;
}

/// The operations that took longest, each with the ceiling that it is nearest to.
report::ScreenTable slowest(const Reader& results) {
  constexpr std::size_t most = 6;
  const report::Items& all = results.rows("operations");
  report::ScreenTable table{"Slowest", {"operation", "shapes", "calls", "time", "share", "reaches"}, {}, {}};
  for (std::size_t i = 0; i < std::min(most, all.size()); ++i) {
    const Reader row(*all[i].members());
    const bool memory = row.number("bandwidth_share") > row.number("peak_share");
    const auto reaches = filled(row, memory ? "{bandwidth_share%} of HBM" : "{peak_share%} of peak");
    constexpr std::size_t widest = 27;
    std::string label = row.text("label"), shapes = row.text("shapes");
    if (label.size() > widest) label = label.substr(0, widest - 2) + "..";
    if (shapes.size() > widest) shapes = shapes.substr(0, widest - 2) + "..";
    table.rows.push_back({std::move(label), std::move(shapes), row.text("calls"), row.text("time"),
                          filled(row, "{share%}").value_or(""), reaches.value_or("")});
  }
  if (all.size() > most) table.more = fmt::format("and {} more: --all", all.size() - most);
  return table;
}

report::Screen comparing(const report::Response& answer) {
  const Reader results(answer.results);
  report::Screen screen;
  screen.headline = {{answer.headline, Tone::strong}};
  for (const char* side : {"before", "after"}) {
    const auto part = [&](const char* key) { return results.number(fmt::format("comparison.{}.{}", side, key)); };
    const std::string time = fmt::format("comparison.{}.time", side);
    add_bar(screen, side[0] == 'b' ? "Before" : "After",
            {{"computation", part("computation_time")},
             {"exposed communication", part("exposed_communication_time")},
             {"exposed copies", part("exposed_copy_time")},
             {"idle", part("idle_time")}},
            *results.quantity(time), results.text(time));
  }
  add_blocks(screen, results, R"(
Categories: 6 rows of comparison.categories: category = {category} | kind = {kind} | before = {before} |
  after = {after} | change = {change}
Operations: 8 rows of comparison.operations: operation = {label} | shapes = {shapes} | calls = {calls_before} |
  then = {calls_after} | before = {before} | after = {after} | change = {change})");
  screen.notes = answer.notes;
  return screen;
}

}  // namespace

std::optional<report::Screen> screen_of(const Request&, const report::Response& answer) {
  const Reader results(answer.results);
  if (results.has("layout")) return layout_screen(answer);
  if (results.has("program")) return program_screen(answer);
  if (results.has("gap")) return against_screen(answer);
  if (results.has("comparison")) return comparing(answer);
  report::Screen screen;
  screen.headline = {{answer.headline, Tone::strong}};
  const auto total = results.quantity("total_time");
  if (!total) return std::nullopt;
  add_bar(screen, "Time",
          {{"computation", results.number("computation_time")},
           {"exposed communication", results.number("exposed_communication_time")},
           {"exposed copies", results.number("exposed_copy_time")},
           {"idle", results.number("idle_time")}},
          *total, results.text("total_time"));
  add_bar(screen, "Kernels", report::largest_parts(category_parts(results), 7), *results.quantity("kernel_time"),
          results.text("kernel_time"));
  if (results.number("communication_time") > 0.0) add_line(screen, "Collectives", collective_phrases(results));
  add_line(screen, "Idle", idle_phrases(results));
  add_line(screen, "Steps",
           results.number("step_time.count") > 1.0
               ? report::phrases(results, {"{step_time.count} found", "median {step_time.median}",
                                           "{step_time.shortest} to {step_time.longest}"})
               : report::phrases(results, {"one found, {step_time.median}"}));
  add_line(screen, "Products",
           report::phrases(results, {"{products.flops}", "{products.achieved} over the whole time",
                                     "{products.while_running} while they run", "{products.peak_share%} of the peak"}));
  add_table(screen, slowest(results));
  add_line(screen, "Request", report::phrases(results, {"{recovered.command}"}));
  if (results.rows("ranks").size() > 1) {
    add_blocks(screen, results, R"(
Ranks: 8 rows of ranks: rank = {rank} | device = {device} | total = {total_time} | computation = {computation_time} |
  exposed comm. = {exposed_communication_time} | idle = {idle_time}
Straggler: rank {straggler.rank} | computes {straggler.extra_time} longer than the median)");
  }
  screen.notes = answer.notes;
  return screen;
}

namespace {

/// Lines of the program with the largest differences.
report::ScreenTable step_table(const report::Reader& results, const report::SharedUnit& unit) {
  struct Row {
    double by;
    std::vector<std::string> cells;
  };
  std::vector<Row> rows;
  for (const report::Value& value : results.rows("gap_steps")) {
    const report::Reader row(*value.members());
    const double predicted = row.number("predicted"), measured = row.number("measured") + row.number("around");
    const auto cell = [&](double time) { return fmt::format("{:.2f} {}", time / unit.scale, unit.unit); };
    rows.push_back({std::abs(measured - predicted),
                    {row.text("block"), row.text("step"), cell(predicted), cell(measured), row.text("kernel")}});
  }
  std::stable_sort(rows.begin(), rows.end(), [](const Row& a, const Row& b) { return a.by > b.by; });
  report::ScreenTable table{"Steps", {"block", "step", "predicted", "measured", "kernel"}, {}, {}};
  constexpr std::size_t most = 5;
  for (std::size_t i = 0; i < std::min(most, rows.size()); ++i) table.rows.push_back(std::move(rows[i].cells));
  if (rows.size() > most) table.more = fmt::format("and {} more: --all", rows.size() - most);
  return table;
}

}  // namespace

report::Screen against_screen(const report::Response& answer) {
  const report::Reader results(answer.results);
  report::Screen screen;
  screen.headline = {{answer.headline, report::Tone::strong}};
  const report::SharedUnit unit = report::shared_unit(results.quantity("measured_time").value_or(AnyQuantity()));
  report::ScreenTable gap{"Gap", {"class", "predicted", "measured", "difference", "kernels"}, {}, {}};
  constexpr std::size_t most_items = 12;
  const report::Items& items = results.rows("gap");
  for (std::size_t i = 0; i < std::min(most_items, items.size()); ++i) {
    const report::Reader row(*items[i].members());
    const auto cell = [&](const char* key) {
      const double value = row.number(key);
      return value == 0.0 ? std::string("-") : fmt::format("{:.2f} {}", value / unit.scale, unit.unit);
    };
    const double kernels = row.number("kernels");
    gap.rows.push_back({row.text("class"), cell("predicted"), cell("measured"), cell("difference"),
                        kernels > 0.0 ? fmt::format("{:.0f}", kernels) : "-"});
  }
  if (items.size() > most_items) gap.more = fmt::format("and {} smaller: --all", items.size() - most_items);
  report::add_table(screen, std::move(gap));
  report::add_table(screen, step_table(results, unit));
  report::ScreenTable advice{"Advice", {}, {}, {}};
  constexpr std::size_t most = 6;
  for (const report::Value& row : results.rows("gap")) {
    const report::Reader reader(*row.members());
    if (!reader.has("remedy") || advice.rows.size() == most) continue;
    advice.rows.push_back({reader.text("class"), reader.text("remedy")});
  }
  report::add_table(screen, std::move(advice));
  report::add_line(screen, "Sum",
                   report::phrases(results, {"{predicted_time} predicted", "{measured_time} measured",
                                             "{matched_share%} of kernel time matched", "{residual_share%} residual"}));
  report::add_line(screen, "Request", report::phrases(results, {"{prediction.command}"}));
  screen.notes = answer.notes;
  return screen;
}

}  // namespace assay::verbs::profile

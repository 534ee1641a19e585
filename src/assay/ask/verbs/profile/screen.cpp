#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "assay/ask/report/patterns.h"
#include "assay/ask/verbs/profile/hlo.h"
#include "assay/ask/verbs/profile/profile.h"

namespace assay::verbs::profile {
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
  report::add_blocks(screen, results, declared_text("screens/profile_advice.txt"));
  report::add_line(screen, "Sum",
                   report::phrases(results, {"{predicted_time} predicted", "{measured_time} measured",
                                             "{matched_share%} of kernel time matched", "{residual_share%} residual"}));
  report::add_line(screen, "Request", report::phrases(results, {"{prediction.command}"}));
  screen.notes = answer.notes;
  return screen;
}

std::optional<report::Screen> screen_of(const Request&, const report::Response& answer) {
  const report::Reader results(answer.results);
  if (results.has("program")) return program_screen(answer);
  if (results.has("gap")) return against_screen(answer);
  const std::string_view file = results.has("layout")        ? "layout"
                                : results.has("regressions") ? "runs"
                                : results.has("comparison")  ? "comparison"
                                                             : "time";
  return report::described_screen(declared_text(fmt::format("screens/profile_{}.txt", file)), answer);
}

}  // namespace assay::verbs::profile

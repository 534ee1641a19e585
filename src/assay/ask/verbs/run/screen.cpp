#include <fmt/format.h>

#include "assay/ask/report/patterns.h"
#include "assay/ask/verbs/run/run.h"
#include "assay/base/text.h"

namespace assay::verbs::run {
namespace {

using report::Reader;
using report::Tone;

constexpr std::size_t most_steps = 8;

/// "[[0, 1], [2, 3]]"
std::string array_text(const report::Value& value) {
  if (const report::Items* items = value.items()) {
    std::string text;
    for (const report::Value& item : *items) text += (text.empty() ? "" : ", ") + array_text(item);
    return "[" + text + "]";
  }
  if (const double* number = std::get_if<double>(&value.data())) return human_number(*number);
  return "";
}

std::string text_at(const report::Value& of, std::string_view key) {
  const report::Value* found = of.find(key);
  const std::string* text = found ? std::get_if<std::string>(&found->data()) : nullptr;
  return text ? *text : "";
}

void add_values(report::Screen& screen, const Reader& results, std::string_view path, std::string label) {
  const report::Value* list = results.at(path);
  if (!list || !list->items()) return;
  report::ScreenTable table{std::move(label), {}, {}};
  for (const report::Value& row : *list->items()) {
    const report::Value* values = row.find("values");
    const bool has_values = values && !values->is_null();
    table.rows.push_back({text_at(row, "tensor"), text_at(row, "type"), has_values ? array_text(*values) : ""});
  }
  add_table(screen, std::move(table));
}

void add_shown(report::Screen& screen, const Reader& results) {
  const report::Value* list = results.at("shown");
  if (!list || !list->items()) return;
  for (const report::Value& row : *list->items()) {
    const bool given = text_at(row, "after") == "given";
    screen.blocks.emplace_back(report::Gap{});
    add_line(screen, given ? "Given" : "After", {{text_at(row, given ? "tensor" : "after")}});
    report::ScreenTable table{"", {}, {}};
    if (const report::Value* devices = row.find("devices"); devices && devices->items())
      for (const report::Value& device : *devices->items())
        table.rows.push_back({text_at(device, "device"), array_text(*device.find("values"))});
    add_table(screen, std::move(table));
  }
}

}  // namespace

std::optional<report::Screen> screen_of(const Request& request, const report::Response& answer) {
  const Reader results(answer.results);
  report::Screen screen;
  screen.headline = {{answer.headline, answer.outcome == report::Outcome::ok ? Tone::strong : Tone::bad}};
  screen.notes = answer.notes;
  add_line(screen, "Program",
           phrases(results, {"{program}", "mode {mode}", "mesh {mesh}", "{flops_per_device} per device"}));
  add_values(screen, results, "outputs", "Results");
  add_values(screen, results, "gradients", "Gradients");
  add_line(screen, "Times", phrases(results, {"compute {compute_time}", "collectives {collective_time}"}));
  const std::size_t most = request.has("list") ? 100000 : most_steps;
  add_table(screen, table_of(results, "steps", "Steps",
                             {{"line", "{line}"},
                              {"step", "{text}"},
                              {"received", "{received}"},
                              {"time", "{time}"},
                              {"measured", "{measured}"}},
                             most));
  add_shown(screen, results);
  return screen;
}

}  // namespace assay::verbs::run

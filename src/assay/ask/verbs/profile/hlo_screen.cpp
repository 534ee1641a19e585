#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "assay/ask/report/figures.h"
#include "assay/ask/report/patterns.h"
#include "assay/ask/verbs/profile/hlo.h"

namespace assay::verbs::profile {
namespace {

using report::Reader;

std::string fitted(std::string text, std::size_t widest) {
  return text.size() > widest ? text.substr(0, widest - 2) + ".." : text;
}

void add_classes(const Reader& results, report::Screen& screen) {
  std::vector<report::BarPart> parts;
  Seconds all(0);
  for (const report::Value& row : results.rows("program.classes")) {
    const Reader reader(*row.members());
    if (!reader.has("estimate")) return;
    parts.push_back({reader.text("class"), reader.number("estimate")});
    all += Seconds(reader.number("estimate"));
  }
  if (!(all > Seconds(0))) return;
  screen.blocks.emplace_back(report::StackedBar{"Kernels", report::largest_parts(std::move(parts), 6),
                                                report::shared_unit(all), report::short_quantity(all)});
}

/// Kernels of one operation and shape, all of their places in the program together.
struct KernelRow {
  std::string operation, shapes, bound;
  double calls = 0.0, flops = 0.0, bytes = 0.0, time = 0.0, share = 0.0;
};

std::vector<KernelRow> kernels_together(const Reader& results, bool timed) {
  std::vector<KernelRow> all;
  std::map<std::pair<std::string, std::string>, std::size_t> places;
  for (const report::Value& value : results.rows("kernels")) {
    const Reader row(*value.members());
    const auto [place, is_new] = places.try_emplace({row.text("operation"), row.text("shapes")}, all.size());
    if (is_new) all.push_back({place->first.first, place->first.second, timed ? row.text("bound") : ""});
    KernelRow& one = all[place->second];
    const double calls = row.number("calls");
    one.calls += calls;
    one.flops += calls * row.number("flops");
    one.bytes += calls * row.number("bytes");
    one.time += row.number("time");
    one.share += row.number("share");
  }
  std::stable_sort(all.begin(), all.end(), [&](const KernelRow& a, const KernelRow& b) {
    return timed ? a.time > b.time : a.flops + a.bytes > b.flops + b.bytes;
  });
  return all;
}

report::ScreenTable costliest(const Reader& results) {
  constexpr std::size_t most = 8, widest = 27;
  const bool timed = results.has("program.estimate");
  const std::vector<KernelRow> all = kernels_together(results, timed);
  report::ScreenTable table{"Costliest", {"operation", "shapes", "calls"}, {}, {}};
  if (timed)
    table.head.insert(table.head.end(), {"time", "share", "bound"});
  else
    table.head.insert(table.head.end(), {"FLOP", "bytes"});
  for (std::size_t i = 0; i < std::min(most, all.size()); ++i) {
    const KernelRow& row = all[i];
    std::vector<std::string> cells{fitted(row.operation, widest), fitted(row.shapes, widest),
                                   report::short_number(row.calls)};
    if (timed)
      cells.insert(cells.end(), {report::short_quantity(Seconds(row.time)), report::percent(row.share), row.bound});
    else
      cells.insert(cells.end(), {row.flops > 0.0 ? report::short_quantity(Flops(row.flops)) : "",
                                 report::short_quantity(Bytes(row.bytes))});
    table.rows.push_back(std::move(cells));
  }
  if (all.size() > most) table.more = fmt::format("and {} more: --all", all.size() - most);
  return table;
}

report::ScreenTable collective_table(const Reader& results) {
  report::ScreenTable table{"Network", {"collective", "devices", "calls", "held before", "received"}, {}, {}};
  for (const report::Value& value : results.rows("program.collectives")) {
    const Reader row(*value.members());
    table.rows.push_back(
        {row.has("becomes") ? fmt::format("{} to {}", row.text("kind"), row.text("becomes")) : row.text("kind"),
         row.text("devices"), row.text("calls"), row.text("operand"), row.text("received")});
  }
  return table;
}

report::ScreenTable change_table(const Reader& results) {
  report::ScreenTable table{
      "Changes", {"since " + results.text("changes.before"), "before", "after", "change"}, {}, {}};
  for (const report::Value& value : results.rows("changes.rows")) {
    const Reader row(*value.members());
    table.rows.push_back({row.text("what"), row.text("before"), row.text("after"),
                          row.has("relative_change") ? report::signed_percent(row.number("relative_change")) : ""});
  }
  return table;
}

std::vector<report::Phrase> mesh_phrases(const Reader& results) {
  std::vector<report::Phrase> out;
  for (const report::Value& row : results.rows("mesh")) {
    const Reader axis(*row.members());
    for (report::Phrase& phrase :
         report::phrases(axis, {axis.has("role") ? "{axis} = {size} ({role})" : "{axis} = {size}"}))
      out.push_back(std::move(phrase));
  }
  return out;
}

}  // namespace

std::optional<report::Screen> program_screen(const report::Response& answer) {
  const Reader results(answer.results);
  report::Screen screen;
  screen.headline = {{answer.headline, report::Tone::strong}};
  const bool waits = results.number("program.exposed_communication_time") > 0.0;
  add_line(screen, "Time",
           report::phrases(results,
                           {"{program.estimate}", "{program.bounds.lower} to {program.bounds.upper} on ideal hardware",
                            waits ? "{program.exposed_communication_time} waiting for the network" : "{no}",
                            "{program.peak_share%} of the peak"}));
  add_classes(results, screen);
  if (!results.rows("kernels").empty())
    add_line(screen, "Work",
             report::phrases(results, {"{program.flops} in products", "{program.element_wise_flops} element-wise",
                                       "{program.bytes} through memory"}));
  add_table(screen, collective_table(results));
  const bool more = results.number("program.memory.outputs") > 0.0;
  add_line(screen, "Memory",
           report::phrases(results, {"{program.memory.peak} at the peak", "{program.memory.arguments} arguments",
                                     "{program.memory.temporaries} temporaries",
                                     more ? "{program.memory.outputs} other results" : "{no}"}));
  add_line(screen, "Model",
           report::phrases(
               results, {"{model.parameters} parameters", "{model.layers} layers", "width {model.hidden}",
                         "feed-forward {model.feed_forward}", "{model.experts} experts of {model.expert_feed_forward}",
                         "{model.heads} heads of {model.head_dim}", "{model.kv_heads} kv heads",
                         "vocabulary {model.vocabulary}"}));
  add_line(screen, "Step",
           report::phrases(results, {"{model.batch} sequences of {model.sequence}",
                                     "{model.copies} copies of the weights", "recompute {model.recompute}"}));
  add_line(screen, "Mesh", mesh_phrases(results));
  add_line(screen, "Request", report::phrases(results, {"{command}"}));
  if (results.has("changes")) add_table(screen, change_table(results));
  if (!results.rows("kernels").empty()) add_table(screen, costliest(results));
  screen.notes = answer.notes;
  return screen;
}

}  // namespace assay::verbs::profile

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

}  // namespace

std::optional<report::Screen> program_screen(const report::Response& answer) {
  const Reader results(answer.results);
  auto screen = report::described_screen(declared_text("screens/profile_program.txt"), answer);
  if (!results.rows("kernels").empty()) add_table(*screen, costliest(results));
  return screen;
}

}  // namespace assay::verbs::profile

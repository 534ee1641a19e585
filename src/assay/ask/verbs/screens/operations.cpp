#include <fmt/format.h>

#include <algorithm>

#include "assay/ask/report/patterns.h"
#include "assay/ask/verbs/screens/screens.h"

namespace assay::verbs::screens {
namespace {

using report::Reader;
using report::Tone;

constexpr std::size_t most_rows = 12;

/// The answer in a sentence, and how sure its time is.
report::Screen titled(const Answer& answer) {
  report::Screen screen;
  screen.headline = {{answer.headline, answer.outcome == report::Outcome::ok ? Tone::strong : Tone::bad}};
  const Reader results(answer.results);
  if (const auto time = filled(results, "{time.estimate} estimated"))
    screen.beneath = {fmt::format("{}; {}", *time, report::range_words(results, "time"))};
  screen.notes = answer.notes;
  return screen;
}

/// Times as bars beside each other, the longest as long as there is room.
void add_times(report::Screen& screen, const Reader& results,
               std::initializer_list<std::pair<const char*, const char*>> times) {
  AnyQuantity longest;
  for (const auto& [label, path] : times)
    if (const auto time = results.quantity(path); time && time->value > longest.value) longest = *time;
  if (longest.value == 0.0) return;
  const report::SharedUnit unit = report::shared_unit(longest);
  for (const auto& [label, path] : times)
    if (const auto time = results.quantity(path); time && time->value > 0.0)
      screen.blocks.emplace_back(
          report::FillBar{label, time->value, 0.0, longest.value, {}, unit, {{unit.text(time->value)}}});
}

}  // namespace

std::optional<report::Screen> roofline(const Request&, const Answer& answer) {
  const Reader results(answer.results);
  report::Screen screen = titled(answer);
  const bool sweeps = results.has("sweep"), compares = results.has("operations");
  add_line(screen, "Operation", phrases(results, {"{operation}"}));
  add_line(screen, "At", phrases(results, {"{at.name} = {at.value}"}));
  if (!sweeps)
    add_times(screen, results, {{"Compute", "compute_time"}, {"Memory", "memory_time"}, {"Network", "network_time"}});
  add_blocks(screen, results, R"(
Work: {flops} | {bytes} | {intensity} | critical {critical_intensity}
Hardware: {peak} ({unit}) | {bandwidth} ({memory})
Ideally: {achieved} | {peak_share%} of the peak
Padding: {padding.utilisation%} useful | padded to {padding.m} x {padding.k} x {padding.n} (m, k, n)
Critical: compute-bound from {critical_size.name} = {critical_size.whole})");
  if (sweeps) {
    const report::Value& first = results.rows("sweep").front();
    const std::string name = first.members()->front().first, path = fmt::format("{{{}}}", name);
    add_table(screen, table_of(results, "sweep", "Sweep",
                               {{name, path},
                                {"intensity", "{intensity}"},
                                {"compute", "{compute_time}"},
                                {"memory", "{memory_time}"},
                                {"estimate", "{time.estimate}"},
                                {"achieved", "{achieved}"},
                                {"limiter", "{limiter}"}},
                               most_rows));
  }
  if (compares)
    add_table(screen, table_of(results, "operations", "Compared",
                               {{"operation", "{operation}"},
                                {"intensity", "{intensity}"},
                                {"compute", "{compute_time}"},
                                {"memory", "{memory_time}"},
                                {"estimate", "{time.estimate}"},
                                {"limiter", "{limiter}"}},
                               most_rows));
  return screen;
}

std::optional<report::Screen> systolic(const Request&, const Answer& answer) {
  const Reader results(answer.results);
  report::Screen screen = titled(answer);
  report::StackedBar cycles{
      "Cycles", {}, report::shared_unit(*results.quantity("flops")), results.text("cycles.total")};
  cycles.unit = {"", 1.0, 0};
  for (const char* part : {"load", "fill", "steady", "stall", "drain"})
    if (const double size = results.number(fmt::format("cycles.{}", part)); size > 0.0)
      cycles.parts.push_back({part, size});
  screen.blocks.emplace_back(std::move(cycles));
  add_line(screen, "Array",
           phrases(results, {"{array}", results.number("tiles") > 1.0 ? "{tiles} tiles" : "one tile",
                             "{steady_cycles_per_tile} cycles per tile", "{flops_per_cycle_peak} per cycle"}));
  add_line(screen, "Useful",
           phrases(results, {"{utilisation%} of the array", "{padding_waste%} lost to padding", "{idle_share%} idle"}));
  add_line(screen, "Time", phrases(results, {"{time}", "{time.estimate}", "{rate}"}));
  add_line(
      screen, "Simulated",
      {{results.truth("simulated.equals_closed_form") ? "cycle by cycle, with the same result" : "with another result",
        results.truth("simulated.equals_closed_form") ? Tone::plain : Tone::bad}});
  return screen;
}

std::optional<report::Screen> transfer(const Request&, const Answer& answer) {
  const Reader results(answer.results);
  report::Screen screen = titled(answer);
  add_blocks(screen, results, R"(
Bytes: {bytes} | {hosts} hosts with {bytes_per_host} each
Path: {hops} hops | first byte after {first_byte} | {bandwidth} | {ports.disjoint_paths} disjoint paths
Stages: 12 rows of stages: stage = {name} | bytes = {bytes} | lanes = {lanes} | bandwidth = {bandwidth} |
  hops = {hops} | time = {time}
Limit!: {limiter}
Stream: {stream.time} in {stream.tiles} tiles of {stream.tile} | {stream.buffers} buffers |
  {stream.limiter} at work {stream.busy%} of the time)");
  if (results.has("residency"))
    add_line(screen, "On chip",
             phrases(results, {"{residency.bytes_per_chip} of {residency.capacity}",
                               results.truth("residency.fits") ? "it fits" : "it does not fit"}));
  if (results.has("meanwhile"))
    add_line(screen, "While",
             phrases(results, {"{meanwhile.time} of other work",
                               results.truth("meanwhile.hidden") ? "hidden" : "{meanwhile.exposed} exposed"}));
  return screen;
}

std::optional<report::Screen> collective(const Request&, const Answer& answer) {
  const Reader results(answer.results);
  report::Screen screen = titled(answer);
  add_line(screen, "Algorithm", phrases(results, {"{algorithm}", "{devices} devices", "{hops} hops"}));
  add_times(screen, results,
            {{"Bandwidth", "bandwidth_time"}, {"Latency", "latency_time"}, {"Simulated", "simulated_time"}});
  add_blocks(screen, results, R"(
Bytes: {bytes} | shards of {shard_bytes} | {bytes_per_link} over each link
Reaches: {algorithm_bandwidth} algorithm bandwidth, ideal | latency-bound below {latency_bound_below}
Levels: 6 rows of levels: level = {name} | groups = {groups} | bandwidth = {bandwidth} | bytes in = {bytes_into_child} |
  time = {time} | reduces in network = {in_network_reduction}
Limit!: {limiter} | slowest level: {bottleneck}
Also: {with_idle_axes.time} with idle axes {with_idle_axes.axes} too |
  {without_in_network_reduction.time} without in-network reduction)");
  return screen;
}

std::optional<report::Screen> solve(const Request&, const Answer& answer) {
  const Reader results(answer.results);
  report::Screen screen;
  screen.headline = {{answer.headline, answer.outcome == report::Outcome::ok ? Tone::strong : Tone::bad}};
  add_line(screen, "Value", phrases(results, {"{value}", "{nearest_that_fails} fails"}, Tone::strong));
  add_line(screen, "Request", phrases(results, {"{request}"}));
  add_line(screen, "Tried", {{fmt::format("{} values", results.rows("tried").size())}});
  screen.notes = answer.notes;
  return screen;
}

}  // namespace assay::verbs::screens

#include <fmt/format.h>

#include "assay/ask/report/patterns.h"
#include "assay/ask/verbs/screens/screens.h"

namespace assay::verbs::screens {
namespace {

using report::Phrase;
using report::Reader;
using report::Tone;

/// Memories on the chip, "l2 47.7 MiB at 5.5 TB/s": all in binary units, whatever their sources use.
std::vector<Phrase> on_chip_memory(const Reader& results) {
  std::vector<Phrase> out;
  const report::Value* memory = results.at("memory");
  if (!memory || !memory->members()) return out;
  for (const auto& [name, level] : *memory->members()) {
    if (name == "hbm") continue;
    const Reader reader(*level.members());
    std::string text = fmt::format("{} {}", name, report::short_binary(Bytes(reader.number("capacity"))));
    if (const auto rate = filled(reader, " at {bandwidth}")) text += *rate;
    if (reader.text("per") == "core") text += " per core";
    out.push_back({std::move(text)});
  }
  return out;
}

std::vector<Phrase> prices(const Reader& results) {
  std::vector<Phrase> out;
  for (const report::Value& row : results.rows("price"))
    for (Phrase& phrase : report::phrases(Reader(*row.members()), {"{value} ({provider}, {kind}, {date})"}))
      out.push_back(std::move(phrase));
  return out;
}

/// A column for each chip.
report::ScreenTable compared(const Reader& results) {
  report::ScreenTable table;
  for (const report::Value& row : results.rows("side_by_side")) {
    const report::Members& cells = *row.members();
    std::vector<std::string>& texts = table.rows.emplace_back();
    for (const auto& [key, value] : cells) {
      if (table.rows.size() == 1) table.head.push_back(key == "part" ? "" : key);
      texts.push_back(value.is_null() ? "-" : report::short_text(value));
    }
  }
  return table;
}

}  // namespace

std::optional<report::Screen> chips(const Request&, const Answer& answer) {
  const Reader results(answer.results);
  report::Screen screen;
  if (results.has("side_by_side")) {
    screen.headline = report::phrases(results, {"{name}, part by part beside others"}, Tone::strong);
    add_table(screen, compared(results));
    return screen;
  }
  if (results.has("chips")) {
    screen.headline = {{answer.headline, Tone::strong}};
    add_blocks(screen, results, R"(
: all rows of chips: id = {id} | peak = {peak} | dtype = {dtype} | memory = {memory} | bandwidth = {bandwidth} |
  critical = {critical_intensity} | scale-up = {scale_up} | price = {price})");
    screen.notes = {
        "peaks are dense; critical intensity is peak over HBM bandwidth; prices are the newest list prices"};
    return screen;
  }
  const char* dtype = results.has("peak.bf16") ? "bf16" : "fp16";
  screen.headline = report::phrases(results, {"{name}"}, Tone::strong);
  for (const std::string& pattern :
       {fmt::format("{{peak.{}}} {}", dtype, dtype), std::string("{memory.hbm.capacity} at {memory.hbm.bandwidth}"),
        fmt::format("critical intensity {{derived.critical_intensity.hbm.{}}}", dtype)})
    if (const auto text = filled(results, pattern)) screen.headline.push_back({*text, Tone::strong});
  add_line(screen, "Peak", each_of(results, "peak"));
  add_line(screen, "Sparse", each_of(results, "peak_sparse"));
  add_line(screen, "HBM", phrases(results, {"{memory.hbm.capacity}", "{memory.hbm.bandwidth}"}));
  add_line(screen, "On chip", on_chip_memory(results));
  add_blocks(screen, results, R"(
Cores: {cores.count} {cores.kind} | {cores.base_clock} base | {cores.boost_clock} boost | {cores.warps} warps |
  {cores.registers_per_thread} registers per thread
Matrix: {matrix_unit.count} units per core | {matrix_unit.rows} x {matrix_unit.columns} |
  {matrix_unit.flops_per_cycle} per cycle | {matrix_unit.clock} |
  tiles of {matrix_unit.tile_m} x {matrix_unit.tile_k} x {matrix_unit.tile_n} (m, k, n)
Vector: {derived.vector_alus} ALUs | {derived.vector_rate} | {vector_unit.clock} |
  matrix unit {derived.matrix_over_vector} times as fast
Scale-up: {network.scale_up.technology} | {network.scale_up.links} links of {network.scale_up.link_bandwidth} each way |
  {derived.scale_up_egress} per chip | {network.scale_up.domain} chips | pods of {network.scale_up.pod}
Scale-out: {network.scale_out.technology} | {network.scale_out.bandwidth} per chip
Host: {host.chips} chips | {host.memory} at {host.memory_bandwidth} | PCIe {host.pcie}
Power: {power.chip} per chip | {power.system} with its share of the system
Reaches: {efficiency.matrix%} of the peak | {efficiency.memory%} of the memory bandwidth |
  {efficiency.network%} of the links, where there is no calibration)");
  add_line(screen, "Price", prices(results));
  add_blocks(screen, results, R"(
Value: {derived.flops_per_dollar} | {derived.bytes_per_dollar} from memory at the newest price)");
  screen.notes = {"--all shows the source of every figure, what other sources say, and derived quantities"};
  return screen;
}

std::optional<report::Screen> clusters(const Request&, const Answer& answer) {
  const Reader results(answer.results);
  report::Screen screen;
  screen.headline = report::phrases(results,
                                    {"{cluster}",
                                     results.number("chips") == 1.0   ? "one chip"
                                     : results.number("hosts") == 1.0 ? "{chips} chips on one host"
                                                                      : "{chips} chips on {hosts} hosts",
                                     "{flops_per_second}", "{memory} of memory"},
                                    Tone::strong);
  add_line(screen, "Peak", each_of(results, "flops_per_second_by_dtype"));
  add_line(screen, "Memory", phrases(results, {"{memory}", "{memory_bandwidth}"}));
  add_line(screen, "Layout",
           phrases(results, {results.number("slices") > 1.0 ? "{slices} slices" : "one slice",
                             "{chips_per_node} chips per node", "{cores} cores"}));
  add_blocks(screen, results, R"(
Axes: 6 rows of axes: axis = {name} | chips = {size} | ring = {ring} | one way = {bandwidth} |
  both ways = {bandwidth_both_ways}
Levels: 6 rows of levels: level = {name} | chips = {chips} | per chip = {bandwidth_per_chip} |
  per node = {bandwidth_per_node} | of the level = {bandwidth_per_unit} | switches = {switches} |
  reduces in network = {in_network_reduction})");
  add_line(screen, "Network",
           phrases(results, {"{links} links", results.number("switches") > 0.0 ? "{switches} switches" : "no switches",
                             "diameter {diameter}", "mean distance {mean_distance}",
                             "bisection {bisection_bandwidth} one way"}));
  add_line(screen, "Scale-up", phrases(results, {"{egress_per_chip} per chip"}));
  add_line(screen, "Scale-out",
           phrases(results, {"{scale_out_per_chip} per chip", "{scale_out_per_host} per host", "{scale_out} in all"}));
  add_line(screen, "Power", phrases(results, {"{power}"}));
  add_line(screen, "Price", phrases(results, {"{price}"}));
  screen.notes = answer.notes;
  return screen;
}

}  // namespace assay::verbs::screens

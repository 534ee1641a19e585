// assay chips: the catalogue, and everything it knows about one chip.
#include <fmt/format.h>

#include "assay/ask/draw/chart/roofline_chart.h"
#include "assay/ask/draw/chip_scene.h"
#include "assay/ask/verbs/prices.h"
#include "assay/ask/verbs/side_by_side.h"
#include "assay/ask/verbs/verbs.h"
#include "assay/base/text.h"
#include "assay/hardware/chip_figures.h"

namespace assay::verbs::chips {
namespace {

/// Writes the fields of a chip as members, in the order and under the keys of its file.
class Writer {
 public:
  void text(std::string_view key, const std::string& value) { out_.emplace_back(key, value); }
  void text(std::string_view key, const std::optional<std::string>& value) {
    if (value) out_.emplace_back(key, *value);
  }
  void date(std::string_view key, const std::string& value) { text(key, value); }
  template <class T>
  void number(std::string_view key, const Sourced<T>& value) {
    write(key, value);
  }
  template <class T>
  void number(std::string_view key, const hardware::Maybe<T>& value) {
    if (value) write(key, *value);
  }
  template <class T, class F>
  void table(std::string_view key, const T& value, F visit) {
    Writer inner;
    visit(value, inner);
    if (!inner.out_.empty()) out_.emplace_back(key, std::move(inner.out_));
  }
  template <class T, class F>
  void optional_table(std::string_view key, const T& value, F visit) {
    table(key, value, visit);
  }
  template <class T, class F>
  void optional_table(std::string_view key, const std::optional<T>& value, F visit) {
    if (value) table(key, *value, visit);
  }
  template <class T, class F>
  void items(std::string_view key, const std::vector<T>& values, F visit) {
    report::Items list;
    for (const T& value : values) {
      Writer inner;
      visit(value, inner);
      list.emplace_back(std::move(inner.out_));
    }
    if (!list.empty()) out_.emplace_back(key, std::move(list));
  }
  template <class T, class F>
  void named_tables(std::string_view key, const std::vector<T>& values, std::span<const std::string_view>, F visit) {
    Writer group;
    for (const T& value : values) group.table(value.name, value, visit);
    out_.emplace_back(key, std::move(group.out_));
  }
  report::Members take() { return std::move(out_); }

 private:
  template <class T>
  void write(std::string_view key, const Sourced<T>& value) {
    out_.emplace_back(key, report::Value(value));
  }
  void write(std::string_view key, const Sourced<bool>& value) { out_.emplace_back(key, value.value); }
  void write(std::string_view key, const Sourced<hardware::Shape>& value) {
    out_.emplace_back(key, hardware::shape_text(value.value));
  }
  void write(std::string_view key, const Sourced<std::vector<hardware::Shape>>& value) {
    out_.emplace_back(
        key, report::rows_of(value.value, [&](const hardware::Shape& shape) { return hardware::shape_text(shape); }));
  }

  report::Members out_;
};

template <class T>
void add_known(report::Members& out, std::string key, const std::optional<T>& value) {
  if (value) out.emplace_back(std::move(key), *value);
}

void add_units(const hardware::Chip& chip, report::Members& out) {
  const hardware::MatrixFigures matrix = hardware::matrix_figures(chip);
  add_known(out, "matrix_unit_flops_per_cycle", matrix.flops_per_cycle);
  add_known(out, "matrix_unit_cells", matrix.cells);
  add_known(out, "matrix_unit_rate", matrix.unit_rate);
  add_known(out, "matrix_rate_from_units", matrix.rate_from_units);
  add_known(out, "flops_per_cycle_from_peak", matrix.flops_per_cycle_from_peak);
  add_known(out, "matrix_rate_per_core", matrix.rate_per_core);
  const hardware::VectorFigures vector = hardware::vector_figures(chip);
  out.emplace_back("vector_alus", vector.alus);
  out.emplace_back("vector_alus_per_core", vector.alus_per_core);
  out.emplace_back("vector_rate", vector.rate);
  out.emplace_back("vector_rate_per_core", vector.rate_per_core);
  out.emplace_back("vector_fma_rate", vector.fma_rate);
  add_known(out, "vector_rate_at_base_clock", vector.rate_at_base_clock);
  add_known(out, "matrix_over_vector", matrix.over_vector);
  report::Members speedups;
  for (const auto& [dtype, ratio] : matrix.speedups) speedups.emplace_back(name(dtype), ratio);
  if (!speedups.empty())
    out.emplace_back("speedup_over_" + std::string(name(hardware::reference_dtype(chip))), std::move(speedups));
  add_known(out, "threads_per_core_at_most_registers", vector.threads_per_core);
  out.emplace_back("lane_reduction_steps", vector.lane_steps);
  add_known(out, "sublane_reduction_steps", vector.sublane_steps);
  add_known(out, "sublane_reduction_cycles", vector.sublane_cycles);
}

void add_memories(const hardware::Chip& chip, report::Members& out) {
  report::Members totals;
  Bytes in_cores;
  for (const auto& [level, capacity] : hardware::core_memory(chip)) {
    totals.emplace_back(level, capacity);
    in_cores += capacity;
  }
  if (totals.size() > 1) totals.emplace_back("total", in_cores);
  if (!totals.empty()) out.emplace_back("capacity_per_chip", std::move(totals));
  report::Members ratios, critical;
  for (const hardware::CriticalIntensity& each : hardware::critical_intensities(chip)) {
    if (each.memory != "hbm") ratios.emplace_back(each.memory, each.over_hbm);
    report::Members by_dtype;
    for (const auto& [dtype, intensity] : each.by_dtype) by_dtype.emplace_back(name(dtype), intensity);
    by_dtype.emplace_back("vector", each.vector);
    critical.emplace_back(each.memory, std::move(by_dtype));
    if (each.ring)
      critical.emplace_back("ici_ring",
                            report::Members{{std::string(name(hardware::reference_dtype(chip))), *each.ring}});
  }
  out.emplace_back("bandwidth_over_hbm", std::move(ratios));
  out.emplace_back("critical_intensity", std::move(critical));
}

void add_prices(const hardware::Chip& chip, report::Members& out) {
  report::Items by_price;
  for (const hardware::Price& price : chip.prices)
    if (const auto flops = hardware::flops_per_dollar(chip, price); flops && price.kind == "on-demand")
      by_price.emplace_back(report::Members{{"provider", price.provider},
                                            {"date", price.date},
                                            {"flops_per_dollar", *flops},
                                            {"bytes_per_dollar", chip.hbm().bandwidth->value / price.value.value}});
  if (const hardware::Price* price = hardware::newest_price(chip)) {
    add_known(out, "flops_per_dollar", hardware::flops_per_dollar(chip, *price));
    out.emplace_back("bytes_per_dollar", chip.hbm().bandwidth->value / price->value.value);
    out.emplace_back("memory_per_dollar", chip.hbm().capacity.value / price->value.value);
  }
  if (!by_price.empty()) out.emplace_back("by_price", std::move(by_price));
}

/// What follows from the file's numbers.
report::Members derived(const hardware::Chip& chip) {
  report::Members out;
  add_units(chip, out);
  add_memories(chip, out);
  if (const auto up = hardware::scale_up_figures(chip)) {
    out.emplace_back("link_bandwidth_both_ways", up->link_both_ways);
    out.emplace_back("scale_up_egress", up->egress);
    add_known(out, "pod_chips", up->pod_chips);
    add_known(out, "switch_capacity", up->switch_capacity);
    add_known(out, "scale_out_switch_over_scale_up_switch", up->scale_out_switch_over_scale_up_switch);
    add_known(out, "node_egress", up->node_egress);
  }
  if (chip.host.trays)
    out.emplace_back("chips_per_tray",
                     static_cast<double>(chip.host.chips.value) / static_cast<double>(chip.host.trays->value));
  add_prices(chip, out);
  return out;
}

report::Value price_value(const hardware::Chip& chip) {
  if (const hardware::Price* price = hardware::newest_price(chip)) return price->value.value;
  return {};
}

Result<report::Response> list_chips(const hardware::Catalogue& catalogue) {
  report::Response response;
  report::Items rows;
  for (const std::string& id : catalogue.chip_ids()) {
    ASSAY_TRY(chip, catalogue.chip(id, "catalogue"));
    const Dtype dtype = hardware::reference_dtype(chip);
    const auto& peak = chip.peak[static_cast<std::size_t>(dtype)];
    const auto& up = chip.network.scale_up;
    const bool apart = !up || (up->domain && up->domain->value == 1);
    std::string joined = apart                 ? "pcie"
                         : up->kind == "torus" ? fmt::format("torus {}", hardware::shape_text(up->pod->value))
                                               : fmt::format("{} {}", up->kind, up->domain->value);
    rows.emplace_back(report::Members{{"id", id},
                                      {"name", chip.name},
                                      {"dtype", name(dtype)},
                                      {"peak", peak->value},
                                      {"memory", chip.hbm().capacity.value},
                                      {"bandwidth", chip.hbm().bandwidth->value},
                                      {"critical_intensity", peak->value / chip.hbm().bandwidth->value},
                                      {"scale_up", joined},
                                      {"price", price_value(chip)}});
  }
  response.headline =
      fmt::format("{} chips; `assay chips ID` shows one with all its figures and their sources", rows.size());
  response.results.emplace_back("chips", std::move(rows));
  response.table_key = "chips";
  response.notes.emplace_back(
      "peaks are dense; critical intensity is peak over HBM bandwidth, FLOP/B; prices are the newest list prices per "
      "chip-hour");
  return response;
}

/// The chip and those of --compare.
Result<std::vector<hardware::Chip>> compared_chips(const Request& request, const Context& context,
                                                   const hardware::Chip& chip) {
  std::vector<hardware::Chip> chips{chip};
  for (const std::string& id : request.values("compare")) {
    ASSAY_TRY(other, hardware::parse_cluster(id, context.catalogue, "--compare", {}));
    chips.push_back(std::move(other.chip));
  }
  return chips;
}

}  // namespace

Result<report::Response> answer(const Request& request, const Context& context) {
  if (request.arguments().empty()) {
    if (request.picture())
      return fail("--format svg", "a picture shows one chip", "name it: assay chips tpu-v5e --format svg",
                  Error::Kind::usage);
    if (request.has("compare"))
      return fail("--compare", "this needs a chip to start with", "name it: assay chips tpu-v5e", Error::Kind::usage);
    if (request.has("set"))
      return fail("--set", "this needs one chip to change", "name it: assay chips tpu-v5e --set ...",
                  Error::Kind::usage);
    return list_chips(context.catalogue);
  }
  ASSAY_TRY(overrides, overrides_of(request));
  ASSAY_TRY(cluster, hardware::parse_cluster(request.arguments().front(), context.catalogue, "chips", overrides));
  const hardware::Chip& chip = cluster.chip;
  report::Response response;
  response.notes = cluster.notes;
  Writer writer;
  hardware::visit_chip(chip, writer);
  response.results = writer.take();
  response.results.emplace_back("derived", derived(chip));
  report::Items sources;
  for (const hardware::SourceEntry& source : chip.sources)
    sources.emplace_back(report::Members{{"key", source.key},
                                         {"title", source.title},
                                         {"accessed", source.accessed},
                                         {"url", source.url.empty() ? source.command : source.url}});
  response.results.emplace_back("sources", std::move(sources));
  const Dtype dtype = hardware::reference_dtype(chip);
  const auto& peak = *chip.peak[static_cast<std::size_t>(dtype)];
  response.headline = fmt::format("{}: {} {}, {} at {}, critical intensity {}", chip.name, human(peak.value),
                                  name(dtype), human(chip.hbm().capacity.value), human(chip.hbm().bandwidth->value),
                                  human(peak.value / chip.hbm().bandwidth->value));
  ASSAY_TRY(chips, compared_chips(request, context, chip));
  if (chips.size() > 1) {
    response.results.emplace_back("side_by_side", side_by_side(chips));
    response.table_key = "side_by_side";
  }
  if (!request.picture()) return response;
  const std::string what = request.value("picture").value_or("rates");
  response.picture = what == "parts"    ? draw::draw_chips(chips)
                     : chips.size() > 1 ? bandwidth_ladder(chips)
                                        : draw::draw(draw::chip_chart(chip));
  return response;
}

}  // namespace assay::verbs::chips

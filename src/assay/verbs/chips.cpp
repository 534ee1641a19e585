// assay chips: the catalogue, and everything it knows about one chip.
#include <fmt/format.h>

#include "assay/base/text.h"
#include "assay/draw/chart/roofline_chart.h"
#include "assay/verbs/verbs.h"

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
    report::Items shapes;
    for (const hardware::Shape& shape : value.value) shapes.emplace_back(hardware::shape_text(shape));
    out_.emplace_back(key, std::move(shapes));
  }

  report::Members out_;
};

Dtype reference_dtype(const hardware::Chip& chip) {
  for (Dtype dtype : {Dtype::bf16, Dtype::fp16, Dtype::fp32, Dtype::fp64})
    if (chip.peak[static_cast<std::size_t>(dtype)]) return dtype;
  for (const DtypeFacts& entry : all_dtypes())
    if (chip.peak[static_cast<std::size_t>(entry.dtype)]) return entry.dtype;
  return Dtype::bf16;
}

/// What follows from the file's numbers.
report::Members derived(const hardware::Chip& chip) {
  report::Members out;
  const auto peak_of = [&](Dtype dtype) { return chip.peak[static_cast<std::size_t>(dtype)]; };
  const Dtype reference = reference_dtype(chip);
  const double cores = static_cast<double>(chip.cores.count.value);
  if (const auto per_cycle = hardware::matrix_flops_per_cycle(chip)) {
    const double units = cores * static_cast<double>(chip.matrix_unit.count.value);
    out.emplace_back("matrix_unit_flops_per_cycle", per_cycle->value);
    if (chip.matrix_unit.rows)
      out.emplace_back("matrix_unit_cells", chip.matrix_unit.rows->value * chip.matrix_unit.columns->value);
    if (chip.matrix_unit.clock) {
      out.emplace_back("matrix_unit_rate", per_cycle->value * chip.matrix_unit.clock->value);
      out.emplace_back("matrix_rate_from_units", units * per_cycle->value * chip.matrix_unit.clock->value);
      if (const auto peak = peak_of(reference))
        out.emplace_back("flops_per_cycle_from_peak", peak->value / (units * chip.matrix_unit.clock->value));
    }
  }
  if (const auto peak = peak_of(reference)) out.emplace_back("matrix_rate_per_core", peak->value / cores);
  out.emplace_back("vector_alus", hardware::vector_alus(chip));
  out.emplace_back("vector_alus_per_core", hardware::vector_alus(chip) / chip.cores.count.value);
  out.emplace_back("vector_rate", hardware::vector_rate(chip).value);
  out.emplace_back("vector_rate_per_core", hardware::vector_rate(chip).value / cores);
  out.emplace_back("vector_fma_rate", hardware::vector_fma_rate(chip).value);
  if (chip.cores.base_clock)
    out.emplace_back("vector_rate_at_base_clock",
                     static_cast<double>(hardware::vector_alus(chip)) * 1_FLOP * chip.cores.base_clock->value);
  if (const auto peak = peak_of(reference))
    out.emplace_back("matrix_over_vector", peak->value / hardware::vector_rate(chip).value);
  if (const auto base = peak_of(reference)) {
    report::Members ratios;
    for (const DtypeFacts& entry : all_dtypes())
      if (const auto peak = peak_of(entry.dtype); peak && entry.dtype != reference)
        ratios.emplace_back(entry.name, peak->value / base->value);
    if (!ratios.empty()) out.emplace_back("speedup_over_" + std::string(name(reference)), std::move(ratios));
  }
  if (chip.cores.registers_per_thread &&
      chip.vector_unit.registers)  // threads that a core can hold when each takes all the registers it may
    out.emplace_back(
        "threads_per_core_at_most_registers",
        chip.vector_unit.partitions.value * chip.vector_unit.registers->value / chip.cores.registers_per_thread->value);
  report::Members totals;
  Bytes in_cores;
  for (const hardware::MemoryLevel& level : chip.memory)
    if (level.per && *level.per == "core") {
      totals.emplace_back(level.name, cores * level.capacity.value);
      in_cores += cores * level.capacity.value;
    }
  if (totals.size() > 1) totals.emplace_back("total", in_cores);
  if (!totals.empty()) out.emplace_back("capacity_per_chip", std::move(totals));
  report::Members ratios, critical;
  for (const hardware::MemoryRoof& roof : hardware::memory_roofs(chip)) {
    if (roof.name != "hbm") ratios.emplace_back(roof.name, roof.bandwidth.value / chip.hbm().bandwidth->value);
    report::Members by_dtype;
    for (const DtypeFacts& entry : all_dtypes())
      if (const auto peak = peak_of(entry.dtype)) by_dtype.emplace_back(entry.name, peak->value / roof.bandwidth.value);
    by_dtype.emplace_back("vector", hardware::vector_rate(chip).value / roof.bandwidth.value);
    critical.emplace_back(roof.name, std::move(by_dtype));
    if (roof.name == "ici")  // a closed ring moves data both ways at once
      if (const auto peak = peak_of(reference))
        critical.emplace_back(
            "ici_ring", report::Members{{std::string(name(reference)), peak->value / (2.0 * roof.bandwidth.value)}});
  }
  out.emplace_back("bandwidth_over_hbm", std::move(ratios));
  out.emplace_back("critical_intensity", std::move(critical));
  if (const auto& up = chip.network.scale_up) {
    out.emplace_back("link_bandwidth_both_ways", 2.0 * up->link_bandwidth.value);
    out.emplace_back("scale_up_egress", hardware::scale_up_egress(chip)->value);
    if (up->pod) {
      std::int64_t chips = 1;
      for (std::int64_t n : up->pod->value) chips *= n;
      out.emplace_back("pod_chips", chips);
    }
    if (up->switches && up->switch_ports)
      out.emplace_back("switch_capacity",
                       static_cast<double>(up->switches->value * up->switch_ports->value) * up->link_bandwidth.value);
    const auto& scale_out = chip.network.scale_out;
    if (up->switch_ports && scale_out && scale_out->switch_ports && scale_out->nic_bandwidth)
      out.emplace_back("scale_out_switch_over_scale_up_switch",
                       static_cast<double>(scale_out->switch_ports->value) * scale_out->nic_bandwidth->value /
                           (static_cast<double>(up->switch_ports->value) * up->link_bandwidth.value));
    if (up->domain && scale_out)
      out.emplace_back("node_egress", static_cast<double>(up->domain->value) * scale_out->bandwidth.value);
  }
  if (chip.host.trays)
    out.emplace_back("chips_per_tray",
                     static_cast<double>(chip.host.chips.value) / static_cast<double>(chip.host.trays->value));
  if (const auto peak = peak_of(reference)) {
    report::Items by_price;
    for (const hardware::Price& price : chip.prices)
      if (price.kind == "on-demand")
        by_price.emplace_back(report::Members{
            {"provider", price.provider}, {"date", price.date}, {"flops_per_dollar", peak->value / price.value.value}});
    if (const hardware::Price* price = hardware::newest_price(chip))
      out.emplace_back("flops_per_dollar", peak->value / price->value.value);
    if (!by_price.empty()) out.emplace_back("by_price", std::move(by_price));
  }
  return out;
}

report::Value price_value(const hardware::Chip& chip) {
  if (const hardware::Price* price = hardware::newest_price(chip)) return price->value.value;
  return {};
}

report::Response list_chips(const hardware::Catalogue& catalogue, Result<void>& failed) {
  report::Response response;
  report::Items rows;
  for (const std::string& id : catalogue.chip_ids()) {
    auto chip = catalogue.chip(id, "catalogue");
    if (!chip) {
      failed = tl::unexpected<Error>(chip.error());
      return response;
    }
    const Dtype dtype = reference_dtype(*chip);
    const auto& peak = chip->peak[static_cast<std::size_t>(dtype)];
    const auto& up = chip->network.scale_up;
    std::string joined = !up                   ? "pcie"
                         : up->kind == "torus" ? fmt::format("torus {}", hardware::shape_text(up->pod->value))
                                               : fmt::format("{} {}", up->kind, up->domain->value);
    rows.emplace_back(report::Members{{"id", id},
                                      {"name", chip->name},
                                      {"dtype", name(dtype)},
                                      {"peak", peak->value},
                                      {"memory", chip->hbm().capacity.value},
                                      {"bandwidth", chip->hbm().bandwidth->value},
                                      {"critical_intensity", peak->value / chip->hbm().bandwidth->value},
                                      {"scale_up", joined},
                                      {"price", price_value(*chip)}});
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

Result<report::Response> answer(const Request& request, const Context& context) {
  if (request.arguments().empty()) {
    if (request.picture())
      return fail("--format svg", "a picture shows one chip", "name it: assay chips tpu-v5e --format svg",
                  Error::Kind::usage);
    if (request.has("set"))
      return fail("--set", "this needs one chip to change", "name it: assay chips tpu-v5e --set ...",
                  Error::Kind::usage);
    Result<void> failed;
    report::Response response = list_chips(context.catalogue, failed);
    if (!failed) return tl::unexpected<Error>(failed.error());
    return response;
  }
  ASSAY_TRY(overrides, overrides_of(request));
  ASSAY_TRY(cluster, hardware::parse_cluster(request.arguments().front(), context.catalogue, "chips", overrides));
  const hardware::Chip& chip = cluster.chip;
  report::Response response;
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
  const Dtype dtype = reference_dtype(chip);
  const auto& peak = *chip.peak[static_cast<std::size_t>(dtype)];
  response.headline = fmt::format("{}: {} {}, {} at {}, critical intensity {}", chip.name, human(peak.value),
                                  name(dtype), human(chip.hbm().capacity.value), human(chip.hbm().bandwidth->value),
                                  human(peak.value / chip.hbm().bandwidth->value));
  if (request.picture()) response.picture = draw::draw(draw::chip_chart(chip));
  return response;
}

}  // namespace

VerbSpec verb() {
  return {"chips",
          "the hardware catalogue",
          "Without an id, one line per chip. With an id, every figure of that chip with its source, differing figures "
          "of other sources, and derived quantities.",
          {{"id", "a chip id, or @file.toml", false}},
          {set_option},
          {{"assay chips", "all chips"},
           {"assay chips tpu-v5p", "one chip with sources"},
           {"assay chips h100-sxm --format json", "the same for programs"},
           {"assay chips h100-sxm --output h100.svg", "its rooflines, every memory level and dtype"}},
          &answer,
          true};
}

}  // namespace assay::verbs::chips

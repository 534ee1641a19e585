// assay clusters: what a cluster adds up to and how its chips are joined.
#include <fmt/format.h>

#include "assay/ask/draw/topology/topology_scene.h"
#include "assay/ask/verbs/prices.h"
#include "assay/ask/verbs/verbs.h"
#include "assay/base/text.h"

namespace assay::verbs::clusters {
namespace {

report::Items axes_of(const hardware::Cluster& cluster) {
  report::Items axes;
  if (!cluster.torus) return axes;
  const hardware::ScaleUp& up = *cluster.chip.network.scale_up;
  for (const hardware::Axis& axis : cluster.torus->axes)
    axes.emplace_back(report::Members{{"name", axis.name},
                                      {"size", axis.size},
                                      {"ring", axis.ring},
                                      {"bandwidth", up.link_bandwidth.value},
                                      {"bandwidth_both_ways", (axis.ring ? 2.0 : 1.0) * up.link_bandwidth.value}});
  return axes;
}

report::Items levels_of(const hardware::Cluster& cluster) {
  report::Items levels;
  for (std::size_t i = 0; i < cluster.levels.size(); ++i) {
    const hardware::Level& level = cluster.levels[i];
    const auto capacity = hardware::switch_capacity(cluster, i);
    const auto pair_links = hardware::links_per_switch_pair(cluster, i);
    levels.emplace_back(report::Members{
        {"name", level.name},
        {"degree", level.degree},
        {"chips", level.chips},
        {"units", level.units},
        {"bandwidth", level.child_bandwidth},
        {"bandwidth_per_chip", level.chip_bandwidth},
        {"bandwidth_per_node", static_cast<double>(cluster.chips_per_node) * level.chip_bandwidth},
        {"bandwidth_per_unit", level.unit_bandwidth()},
        {"switches", level.switches > 0 ? report::Value(level.switches) : report::Value()},
        {"switches_per_unit", level.switches > 0 ? report::Value(level.switches / level.units) : report::Value()},
        {"switch_capacity", capacity},
        {"switch_capacity_per_unit",
         capacity ? report::Value(static_cast<double>(level.switches / level.units) * *capacity) : report::Value()},
        {"links_per_switch_pair", pair_links},
        {"in_network_reduction", level.in_network_reduction}});
  }
  return levels;
}

}  // namespace

Result<report::Response> answer(const Request& request, const Context& context) {
  ASSAY_TRY(overrides, overrides_of(request));
  ASSAY_TRY(cluster, hardware::parse_cluster(request.arguments().front(), context.catalogue, "clusters", overrides));
  const hardware::Chip& chip = cluster.chip;
  report::Response response;
  report::Members& out = response.results;
  out.emplace_back("cluster", cluster.text);
  out.emplace_back("chip", chip.id);
  out.emplace_back("chips", cluster.chips());
  out.emplace_back("slices", cluster.slices);
  out.emplace_back("hosts", hardware::host_count(cluster));
  out.emplace_back("chips_per_node", cluster.chips_per_node);
  out.emplace_back("cores", hardware::core_count(cluster));
  report::Members rates;
  for (const DtypeFacts& entry : all_dtypes())
    if (const FlopsPerSecond rate = hardware::total_rate(cluster, entry.dtype); rate > FlopsPerSecond(0))
      rates.emplace_back(entry.name, rate);
  const Dtype reference = chip.peak[static_cast<std::size_t>(Dtype::bf16)] ? Dtype::bf16 : Dtype::fp16;
  const FlopsPerSecond reference_rate = hardware::total_rate(cluster, reference);
  out.emplace_back("flops_per_second",
                   reference_rate > FlopsPerSecond(0) ? report::Value(reference_rate) : rates.front().second);
  out.emplace_back("flops_per_second_by_dtype", std::move(rates));
  out.emplace_back("memory", hardware::total_memory(cluster));
  out.emplace_back("memory_bandwidth", hardware::total_memory_bandwidth(cluster));
  if (cluster.torus) out.emplace_back("twisted", cluster.torus->twisted);
  out.emplace_back("axes", axes_of(cluster));
  out.emplace_back("levels", levels_of(cluster));
  if (cluster.torus || !cluster.levels.empty()) {
    out.emplace_back("links", hardware::scale_up_links(cluster));
    out.emplace_back("switches", hardware::switch_count(cluster));
    out.emplace_back("diameter", hardware::diameter(cluster));
    if (cluster.torus) out.emplace_back("mean_distance", hardware::mean_distance(cluster));
  }
  if (const auto bisection = hardware::bisection_bandwidth(cluster)) {
    out.emplace_back("bisection_bandwidth", *bisection);
    out.emplace_back("bisection_bandwidth_both_ways", 2.0 * *bisection);
  }
  if (const auto egress = hardware::scale_up_egress(chip)) out.emplace_back("egress_per_chip", egress->value);
  if (chip.network.scale_out) {
    out.emplace_back("scale_out_per_chip", chip.network.scale_out->bandwidth.value);
    out.emplace_back("scale_out_per_host",
                     static_cast<double>(hardware::chips_per_host(cluster)) * chip.network.scale_out->bandwidth.value);
    out.emplace_back("scale_out_per_node",
                     static_cast<double>(cluster.chips_per_node) * chip.network.scale_out->bandwidth.value);
    out.emplace_back("scale_out", static_cast<double>(cluster.chips()) * chip.network.scale_out->bandwidth.value);
  }
  const double n = static_cast<double>(cluster.chips());
  if (chip.power)
    out.emplace_back("power", n * (chip.power->system ? chip.power->system->value : chip.power->chip.value));
  if (const hardware::Price* price = hardware::newest_price(chip)) {
    out.emplace_back("price", n * price->value.value);
    add_prices({&chip}, "price", response);
  }
  response.notes.insert(response.notes.begin(), cluster.notes.begin(), cluster.notes.end());
  if (cluster.torus && cluster.torus->twisted)
    response.notes.emplace_back("bisection of a twisted torus: the best cut across an axis, an upper bound");
  const auto counted = [](std::int64_t count, const char* what) {
    return fmt::format("{} {}{}", human_count(count), what, count == 1 ? "" : "s");
  };
  response.headline = fmt::format("{}: {} on {}, {} {}, {}", cluster.text, counted(cluster.chips(), "chip"),
                                  counted(hardware::host_count(cluster), "host"), human(reference_rate),
                                  name(reference), human(hardware::total_memory(cluster)));
  if (request.picture()) response.picture = draw::draw_cluster(cluster);
  return response;
}

}  // namespace assay::verbs::clusters

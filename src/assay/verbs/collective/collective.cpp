// assay collective: what one collective costs on a cluster.
#include "assay/network/collectives.h"

#include <fmt/format.h>

#include <algorithm>

#include "assay/base/text.h"
#include "assay/estimate/collective_models.h"
#include "assay/estimate/families.h"
#include "assay/network/simulator/simulator.h"
#include "assay/program/mesh.h"
#include "assay/roofline/operation.h"
#include "assay/verbs/collective/timeline.h"
#include "assay/verbs/verbs.h"

namespace assay::verbs::collective {
namespace {

Result<Bytes> read_bytes(const Request& request) {
  const auto text = request.value("bytes");
  if (!text)
    return fail("collective", "--bytes is missing",
                "the whole array over all devices, e.g. --bytes 34MB or --bytes 'bf16[2048,8192]'", Error::Kind::usage);
  ASSAY_TRY(bytes, assay::roofline::parse_bytes(*text, "--bytes"));
  if (!(bytes > Bytes(0))) return fail("--bytes", "there is nothing to move", "give a positive size");
  return bytes;
}

/// The axes over which the array is sharded besides those of the collective.
Result<program::Mesh> read_inner(const Request& request) {
  const auto text = request.value("sharded-by");
  if (!text) return program::Mesh{};
  return program::parse_mesh(*text, "--sharded-by");
}

/// Adds what the link-level simulator says. Groups without symmetry (lines) can be too large for it.
Result<void> add_simulation(report::Members& out, network::CollectiveKind kind, Bytes array,
                            const network::CollectiveGroup& group) {
  constexpr double most_events = 5e6;  // some seconds
  if (group.mixed())
    return fail("--simulate", "slices and torus axes are simulated one after the other",
                "ask for --axes slices and for the torus axes by themselves", Error::Kind::usage);
  if (const double events = network::simulation_events(kind, group); events > most_events)
    return fail("--simulate", fmt::format("this would take {:.2g} events, more than {:.2g}", events, most_events),
                "name fewer axes, or leave --simulate out");
  const network::Simulation run = network::simulate_collective(kind, array, group);
  out.emplace_back("simulated_time", run.time);
  out.emplace_back("simulated", report::Members{{"time", run.time},
                                                {"busiest_link_bytes", run.busiest_link},
                                                {"mean_link_load", run.mean_load},
                                                {"events", run.events},
                                                {"chunks_per_shard", run.chunks},
                                                {"algorithm", run.algorithm}});
  return {};
}

/// What the busiest device receives over the mean; 1 to the number of devices.
Result<double> read_imbalance(const Request& request, network::CollectiveKind kind, double devices) {
  const auto text = request.value("imbalance");
  if (kind != network::CollectiveKind::ragged_all_to_all) {
    if (text)
      return fail("--imbalance", fmt::format("{} gives every device the same", network::name(kind)),
                  "it belongs to ragged-all-to-all", Error::Kind::usage);
    return 1.0;
  }
  if (!text) return 1.0;
  const auto imbalance = parse_number(*text);
  if (!imbalance || !(*imbalance >= 1.0) || *imbalance > devices)
    return fail("--imbalance", fmt::format("{} is not a number from 1 to {}", in_quotes(*text), human_number(devices)),
                "what the busiest device receives over the mean of all", Error::Kind::usage);
  return *imbalance;
}

/// Calibrations hold for networks of switches, and for groups of any size if several were measured. A user's own share
/// wins.
bool switched_calibration(const Request& request, const std::optional<hardware::ChipCalibration>& calibration,
                          const estimate::Family* family, const network::CollectiveGroup& group) {
  const auto sets = request.values("set");
  const bool own_share =
      std::any_of(sets.begin(), sets.end(), [](const std::string& set) { return set.starts_with("efficiency."); });
  return calibration && calibration->values.collective && !own_share && !group.torus() && group.axes.empty() &&
         !(family && family->kernels && family->kernels->fixed_groups);
}

Result<report::Response> answer(const Request& request, const Context& context) {
  ASSAY_TRY(kind, network::parse_collective(request.arguments().front(), "collective"));
  ASSAY_TRY(cluster, cluster_of(request, context));
  ASSAY_TRY(bytes, read_bytes(request));
  ASSAY_TRY(others, read_inner(request));
  const auto inner = static_cast<double>(others.devices());
  std::vector<std::string> axes;
  if (const auto text = request.value("axes")) axes = split(*text, ',');
  ASSAY_TRY(group, network::make_group(cluster, axes, inner, "--axes"));
  ASSAY_TRY(imbalance, read_imbalance(request, kind, group.devices));
  group.imbalance = imbalance;
  if (group.devices <= 1.0 && kind != network::CollectiveKind::permute)
    return fail("--on", fmt::format("one participant: {} has nothing to exchange", cluster.text),
                "name more chips or axes");
  if (request.has("one-way")) {
    const bool rings = !group.axes.empty() &&
                       std::all_of(group.axes.begin(), group.axes.end(), [](const auto& axis) { return axis.ring; });
    if (!rings)
      return fail("--one-way", fmt::format("{} has no closed rings along these axes", cluster.text),
                  "a line and a switch need both directions", Error::Kind::usage);
    group.one_way = true;
  }
  // On a torus every line of the axes moves its own part; a tree is shared by all parts.
  const Bytes array = group.axes.empty() ? bytes : bytes / inner;
  const network::CollectiveCost<Plain> cost = network::collective_cost(Plain{}, kind, array, group);
  const network::CollectiveLabels labels = network::collective_labels(cluster);
  report::Response response;
  report::Members& out = response.results;
  out.emplace_back("collective", network::name(kind));
  out.emplace_back("cluster", cluster.text);
  out.emplace_back("devices", group.devices);
  out.emplace_back("bytes", bytes);
  out.emplace_back("bytes_per_group", bytes / inner);
  const bool sends_all = kind == network::CollectiveKind::permute || kind == network::CollectiveKind::point_to_point;
  out.emplace_back("shard_bytes", bytes / (sends_all ? inner : inner * group.devices));
  out.emplace_back("algorithm", network::algorithm(kind, group));
  out.emplace_back("hops", network::collective_hops(kind, group));
  ASSAY_TRY(calibration, hardware::calibration_of(cluster.chip, context.catalogue));
  ASSAY_TRY(families, estimate::families_of(context.catalogue));
  const bool calibrated =
      switched_calibration(request, calibration, estimate::family_of(families, cluster.chip), group);
  report::Members time{
      {"lower", cost.lower},
      {"estimate", cost.bandwidth / hardware::network_efficiency(cluster.chip) + cost.latency +
                       (group.devices > 1.0 ? hardware::collective_latency(cluster.chip) : Seconds(0))},
      {"upper", cost.upper}};
  if (calibrated) {
    const auto& out_of_node = cluster.chip.network.scale_out;
    const hardware::Fabric fabric =
        hardware::fabric_of(out_of_node && out_of_node->technology ? *out_of_node->technology : "");
    const Seconds estimate = estimate::collective_estimate(*calibration->values.collective, kind, array, group, fabric);
    time[1].second = estimate;
    if (const auto& spread = calibration->values.spread; spread && spread->collective > 0.0)
      time.emplace_back("interval",
                        report::Members{{"low", std::max(cost.lower, estimate / (1.0 + spread->collective))},
                                        {"high", estimate * (1.0 + spread->collective)},
                                        {"coverage", hardware::spread_coverage},
                                        {"basis", calibration->basis}});
    response.notes.push_back(fmt::format("the estimate is that of {}", calibration->basis));
  }
  out.emplace_back("time", std::move(time));
  out.emplace_back("bandwidth_time", cost.bandwidth);
  out.emplace_back("latency_time", cost.latency);
  out.emplace_back("approximate_time", cost.approximate);
  const bool latency_bound = cost.latency > cost.bandwidth;
  out.emplace_back("limiter", latency_bound ? "latency" : "bandwidth");
  out.emplace_back("bytes_per_link", network::busiest_link(kind, array, group));
  out.emplace_back("algorithm_bandwidth", (bytes / inner) / cost.lower);
  out.emplace_back("approximate_bandwidth", (bytes / inner) / cost.approximate);
  if (group.torus()) {
    out.emplace_back("latency_bound_below", group.link * group.hop_latency);
    if (kind == network::CollectiveKind::all_to_all)
      out.emplace_back(
          "over_all_gather",
          cost.approximate /
              network::collective_cost(Plain{}, network::CollectiveKind::all_gather, array, group).approximate);
    if (group.one_way) {
      network::CollectiveGroup both = group;
      both.one_way = false;
      out.emplace_back("gain_of_both_ways",
                       cost.approximate / network::collective_cost(Plain{}, kind, array, both).approximate);
    }
    std::vector<std::string> idle;
    network::CollectiveGroup wider = group;
    const auto takes_part = [&](const std::string& axis) {  // X, or a part of it, X=4
      return axes.empty() || std::any_of(axes.begin(), axes.end(), [&](const std::string& text) {
               return trim(text.substr(0, text.find('='))) == axis;
             });
    };
    for (const hardware::Axis& axis : cluster.torus->axes) {
      if (takes_part(axis.name) || others.find(axis.name) || axis.size == 1) continue;
      const network::AxisPart whole{0, axis.size, 1};
      idle.push_back(axis.name);
      network::add_axis_parts(wider, axis.size, axis.ring, &whole, 1);
    }
    const bool gathers = kind == network::CollectiveKind::all_gather || kind == network::CollectiveKind::broadcast ||
                         kind == network::CollectiveKind::all_reduce || kind == network::CollectiveKind::reduce_scatter;
    if (!idle.empty() && gathers)
      out.emplace_back(
          "with_idle_axes",
          report::Members{{"axes", join(idle, ",")},
                          {"time", network::collective_cost(Plain{}, kind, array, wider).lower},
                          {"if", "the array is replicated over them, so each can first take a slice for free"}});
  } else {
    report::Items levels;
    std::pair<Seconds, std::string> slowest;
    network::CollectiveGroup plain = group;
    for (auto& level : plain.levels) level.reduces = false;
    for (const auto& level : group.levels) {
      if (level.groups <= 1.0) continue;
      const std::string& called = labels.levels[level.level].name;
      const double lanes = network::lanes_used(kind, group, level);
      const BytesPerSecond stream = lanes * level.chip_bandwidth;
      const Bytes moved = network::share_into_child(kind, group, level) * array;
      if (moved / stream > slowest.first) slowest = {moved / stream, called};
      levels.emplace_back(report::Members{{"name", called},
                                          {"groups", level.groups},
                                          {"lanes", lanes},
                                          {"bandwidth", stream},
                                          {"collective_bandwidth", stream * (level.groups / (level.groups - 1.0))},
                                          {"bytes_into_child", moved},
                                          {"bytes_into_children", level.groups * moved},
                                          {"time", moved / stream},
                                          {"in_network_reduction", level.reduces}});
    }
    out.emplace_back("bottleneck", slowest.second);
    out.emplace_back("levels", std::move(levels));
    if (const network::CollectiveCost<Plain> without = network::collective_cost(Plain{}, kind, array, plain);
        without.bandwidth > cost.bandwidth)
      out.emplace_back("without_in_network_reduction",
                       report::Members{{"time", without.lower}, {"gain", without.lower / cost.lower - 1.0}});
  }
  if (request.has("simulate")) ASSAY_CHECK(add_simulation(out, kind, array, group));
  if (request.picture()) {
    std::vector<std::string> levels;
    for (const auto& level : labels.levels) levels.push_back(level.name);
    response.picture =
        draw::draw_timeline(collective_timeline(kind, array, group, torus_axis_names(cluster, axes), levels));
  }
  if (request.explain()) {
    const Traced num{&response.ledger};
    const network::CollectiveCost<Traced> traced = network::collective_cost(num, kind, array, group, &labels);
    response.derived = {traced.lower.id, traced.upper.id};
  }
  response.headline = fmt::format("{} of {} over {} devices of {}: at least {}, {}-bound", network::name(kind),
                                  human(bytes), human_number(group.devices), cluster.text, human(cost.lower),
                                  latency_bound ? "latency" : "bandwidth");
  if (group.hop_latency == Seconds(0))
    response.notes.emplace_back("the catalogue has no hop latency for this network, so latency counts as zero");
  response.notes.insert(response.notes.end(), cluster.notes.begin(), cluster.notes.end());
  return response;
}

}  // namespace

VerbSpec verb() {
  return {
      "collective",
      "what a collective costs on a torus or a switched network",
      "KIND is all-gather, reduce-scatter, all-reduce, all-to-all, ragged-all-to-all, permute, broadcast, reduce or "
      "point-to-point. --bytes is the whole array: what an all-gather ends with, what is reduced, what is really "
      "exchanged. Of a permute and point-to-point it is what each device sends to one other.",
      {{"kind", "all-gather, reduce-scatter, all-reduce, all-to-all, permute, broadcast, reduce, ...", true}},
      {on_option,
       {"bytes", "N", "the whole array (permute: what a device sends): 34MB, or a tensor bf16[2048,8192]"},
       {"axes", "X,Y=4", "torus axes, parts (Y=4 neighbours, Y=4:2 every second), `slices` (default: all axes)"},
       {"sharded-by", "Z=4", "the array is also sharded over other, inner devices"},
       {"imbalance", "F", "ragged-all-to-all: what the busiest device receives over the mean (default 1)"},
       {"one-way", "", "use one direction of each ring"},
       {"simulate", "", "also run it chunk by chunk over explicit links"},
       set_option},
      {{"assay collective all-gather --bytes 'bf16[2048,8192]' --on tpu-v5e:4x4 --axes Y",
        "along one axis that is a line"},
       {"assay collective all-reduce --bytes 1GB --on h100-sxm:256 --explain", "over the levels of a fat tree"},
       {"assay collective all-gather --bytes 512MiB --on h100-sxm:256 --sharded-by Y=16",
        "with an inner sharded axis"}},
      &answer,
      true};
}

}  // namespace assay::verbs::collective

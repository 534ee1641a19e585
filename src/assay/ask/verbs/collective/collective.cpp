// assay collective: what one collective costs on a cluster.
#include "assay/predict/collective/collectives.h"

#include <fmt/format.h>

#include <algorithm>

#include "assay/ask/verbs/collective/collective.h"
#include "assay/ask/verbs/interval_members.h"
#include "assay/ask/verbs/verbs.h"
#include "assay/base/text.h"
#include "assay/predict/collective/collective_models.h"
#include "assay/predict/collective/simulator/simulator.h"
#include "assay/predict/kernel/measured/harness.h"
#include "assay/predict/numbers/families.h"
#include "assay/predict/roofline/operation.h"
#include "assay/program/form/mesh.h"
#include "assay/program/lower/layers/layers.h"

namespace assay::verbs::collective_verb {
namespace {

Result<Bytes> read_bytes(const Request& request) {
  const auto text = request.value("bytes");
  if (!text && request.value("vary").value_or("").starts_with("bytes=")) return 1_GB;  // one size of many
  if (!text)
    return fail("collective", "--bytes is missing",
                "the whole array over all devices, e.g. --bytes 34MB or --bytes 'bf16[2048,8192]'", Error::Kind::usage);
  ASSAY_TRY(bytes, roofline::parse_bytes(*text, "--bytes"));
  if (!(bytes > Bytes(0))) return fail("--bytes", "there is nothing to move", "give a positive size");
  return bytes;
}

/// The axes that shard the array in addition to the axes of the collective.
Result<program::Mesh> read_inner(const Request& request) {
  const auto text = request.value("sharded-by");
  if (!text) return program::Mesh{};
  return program::parse_mesh(*text, "--sharded-by");
}

/// A request for one collective, read and checked.
struct Query {
  program::Collective kind = program::Collective::all_gather;
  hardware::Cluster cluster;
  Bytes bytes;                    ///< of the whole array
  double picks = 0;               ///< of each token of a ragged exchange; 0 where --bytes has every copy already
  program::Mesh sharded_by;       ///< axes that shard the array in addition to the axes of the collective
  std::vector<std::string> axes;  ///< as --axes has them; empty for all
  collective::CollectiveGroup group;
  collective::CollectiveAlgorithm algorithm = collective::CollectiveAlgorithm::automatic;
  std::optional<Given<Seconds>> one_shot;                  ///< latency of an all-reduce by a serving engine's kernel
  std::optional<collective::MeasuredExchange> exchange{};  ///< of tokens by such a kernel

  /// Copies of a token that are sent: one for each device of its picks, which fall on some devices twice.
  double destinations() const {
    return exchange && exchange->kernel.per_expert ? picks
                                                   : group.devices * lower::touched_share(picks, 1.0, group.devices);
  }
  double inner() const { return static_cast<double>(sharded_by.devices()); }
  /// What one group sees. On a torus every line of the axes moves its own part; a tree is shared by all parts.
  Bytes array() const { return group.axes.empty() ? bytes : bytes / inner(); }
};

/// What each device holds before and after each hop.
report::Items block_rows(const Query& query) {
  report::Items rows;
  for (const HeldBlocks& held : collective_states(query.kind, query.group)) {
    report::Items devices;
    for (const std::vector<HeldBlock>& blocks : held) {
      devices.emplace_back(report::rows_of(blocks, [&](const HeldBlock& one) {
        return report::Members{{"block", one.block}, {"from", report::Items(one.from.begin(), one.from.end())}};
      }));
    }
    rows.emplace_back(
        report::Members{{"hop", static_cast<std::int64_t>(rows.size())}, {"devices", std::move(devices)}});
  }
  return rows;
}

/// Adds the result of the link-level simulator. Groups without symmetry (lines) can be too large for it.
Result<void> add_simulation(const Query& query, report::Members& out) {
  constexpr double most_events = 5e6;  // some seconds
  if (query.group.mixed())
    return fail("--simulate", "slices and torus axes cannot be simulated together",
                "simulate --axes slices and the torus axes separately", Error::Kind::usage);
  if (const double events = collective::simulation_events(query.kind, query.group); events > most_events)
    return fail("--simulate",
                fmt::format("the simulation needs {:.2g} events; the limit is {:.2g}", events, most_events),
                "name fewer axes, or drop --simulate");
  const collective::Simulation run = collective::simulate_collective(query.kind, query.array(), query.group);
  out.emplace_back("simulated_time", run.time);
  out.emplace_back("simulated", report::Members{{"time", run.time},
                                                {"busiest_link_bytes", run.busiest_link},
                                                {"mean_link_load", run.mean_load},
                                                {"events", run.events},
                                                {"chunks_per_shard", run.chunks},
                                                {"algorithm", run.algorithm}});
  if (report::Items blocks = block_rows(query); !blocks.empty()) out.emplace_back("blocks", std::move(blocks));
  return {};
}

/// Experts that a token picks, and the bytes of all copies that are sent.
Result<void> read_picks(const Request& request, Query& query) {
  const auto text = request.value("picks");
  if (!text) return {};
  if (query.kind != program::Collective::ragged_all_to_all)
    return fail("--picks", fmt::format("{} sends every device the same amount", program::name(query.kind)),
                "it applies to ragged-all-to-all only", Error::Kind::usage);
  ASSAY_TRY(picks, parse_count(*text, "--picks"));
  query.picks = static_cast<double>(picks);
  query.bytes = query.destinations() * query.bytes;
  return {};
}

/// A kernel of serving engines in place of the library's collective.
Result<void> read_kernel(const Request& request, const Context& context, Query& query) {
  const auto name = request.value("kernel");
  if (!name) return {};
  const hardware::Chip& chip = query.cluster.chip;
  const auto unmeasured = [&](std::string_view where) {
    return fail("--kernel", fmt::format("{} was not measured on chips like {}", *name, chip.id),
                fmt::format("leave it out for the library's collective; it was measured on {}", where));
  };
  const bool one_shot = *name == "one-shot";
  const auto wanted = one_shot ? program::Collective::all_reduce : program::Collective::ragged_all_to_all;
  ASSAY_TRY(protocols, hardware::collective_protocols_of(context.catalogue));
  std::vector<std::string> names{"one-shot"};
  const hardware::ExchangeKernel* found = nullptr;
  for (const hardware::ExchangeKernel& known : protocols.exchanges)
    if (names.emplace_back(known.name) == *name) found = &known;
  if (!found && !one_shot)
    return fail("--kernel", fmt::format("unknown kernel {}", in_quotes(*name)), suggestion(*name, names),
                Error::Kind::usage);
  if (query.kind != wanted)
    return fail("--kernel", fmt::format("{} is no {}", *name, program::name(query.kind)),
                fmt::format("it replaces {}", program::name(wanted)), Error::Kind::usage);
  if (one_shot) {
    ASSAY_TRY(families, numbers::families_of(context.catalogue));
    const numbers::Family* family = numbers::family_of(families, chip);
    if (!family || family->one_shot == Seconds(0)) return unmeasured("GPUs with links of their own");
    query.one_shot = family->one_shot;
    return {};
  }
  std::vector<std::string> measured;
  for (const auto& [architecture, start] : found->starts) {
    measured.push_back(architecture);
    if (architecture == chip.architecture)
      query.exchange = collective::MeasuredExchange{*found, start, protocols.exchange_share};
  }
  return query.exchange ? Result<void>() : unmeasured(join(measured, ", "));
}

/// Bytes that the busiest device receives, relative to the mean; 1 to the number of devices.
Result<double> read_imbalance(const Request& request, program::Collective kind, double devices) {
  const auto text = request.value("imbalance");
  if (kind != program::Collective::ragged_all_to_all) {
    if (text)
      return fail("--imbalance", fmt::format("{} sends every device the same amount", program::name(kind)),
                  "it applies to ragged-all-to-all only", Error::Kind::usage);
    return 1.0;
  }
  if (!text) return 1.0;
  const auto imbalance = parse_number(*text);
  if (!imbalance || !(*imbalance >= 1.0) || *imbalance > devices)
    return fail("--imbalance", fmt::format("{} is not a number from 1 to {}", in_quotes(*text), human_number(devices)),
                "bytes received by the busiest device over the mean", Error::Kind::usage);
  return *imbalance;
}

Result<Query> read_query(const Request& request, const Context& context) {
  Query query;
  ASSAY_TRY(kind, program::parse_collective(request.arguments().front(), "collective"));
  query.kind = kind;
  ASSAY_SET(query.cluster, cluster_of(request, context));
  ASSAY_SET(query.bytes, read_bytes(request));
  ASSAY_SET(query.sharded_by, read_inner(request));
  if (const auto text = request.value("axes")) query.axes = split(*text, ',');
  ASSAY_TRY(group, collective::make_group(query.cluster, query.axes, query.inner(), "--axes"));
  query.group = group;
  if (request.value("algorithm") == "ring") query.algorithm = collective::CollectiveAlgorithm::ring;
  ASSAY_SET(query.group.imbalance, read_imbalance(request, kind, group.devices));
  ASSAY_CHECK(read_kernel(request, context, query));
  ASSAY_CHECK(read_picks(request, query));
  if (group.devices <= 1.0 && kind != program::Collective::permute)
    return fail("--on", fmt::format("{} has one participant: there is nothing to exchange", query.cluster.text),
                "name more chips or axes");
  if (request.has("one-way")) {
    const bool rings = !group.axes.empty() &&
                       std::all_of(group.axes.begin(), group.axes.end(), [](const auto& axis) { return axis.ring; });
    if (!rings)
      return fail("--one-way", fmt::format("{} has no closed rings along these axes", query.cluster.text),
                  "a line and a switch need both directions", Error::Kind::usage);
    query.group.one_way = true;
  }
  return query;
}

/// The calibration behind an estimate, and what the way of measuring adds to it.
struct Calibrated {
  const hardware::ChipCalibration& numbers;
  Seconds launch;
};

/// Calibrations hold for switched networks, and for groups of any size if several were measured; for other groups only
/// where the request names the table that they were measured for. A user's own efficiency takes precedence.
Result<std::optional<Calibrated>> calibrated_by(const Request& request, const Context& context, const Query& query,
                                                const std::optional<hardware::ChipCalibration>& calibration) {
  const bool own_share = sets_efficiency(request);
  ASSAY_TRY(families, numbers::families_of(context.catalogue));
  const numbers::Family* family = numbers::family_of(families, query.cluster.chip);
  const bool general =
      !query.group.torus() && query.group.axes.empty() && !(family && family->kernels && family->kernels->fixed_groups);
  const auto way = request.value("measured");
  if (!calibration || !calibration->values.collective || own_share || !(general || way)) {
    for (const char* option : {"measured", "algorithm"})
      if (request.has(option))
        return fail(fmt::format("--{}", option), fmt::format("{} has no calibration for this", query.cluster.chip.id),
                    "it changes an estimate that a calibration makes");
    return std::optional<Calibrated>();
  }
  Calibrated found{*calibration, Seconds(0)};
  if (way && *way != "in-a-stream") {
    ASSAY_TRY(named, kernel::measured_way(*way, calibration->values, context.catalogue, "--measured"));
    if (std::find(std::begin(kernel::measured_ways), std::end(kernel::measured_ways), *way) !=
        std::end(kernel::measured_ways))
      return fail("--measured", fmt::format("collectives were not measured {}", *way),
                  "in-a-stream, or the name of a table", Error::Kind::usage);
    found.launch = named->harness.launch[static_cast<std::size_t>(kernel::KernelKind::collective)];
  }
  return std::optional(found);
}

/// The library's collective.
template <class N>
NumberOf<N, Seconds> library_time(const N& num, const Query& query, const NumberOf<N, Bytes>& array,
                                  const std::optional<Calibrated>& calibrated,
                                  const collective::CollectiveLabels* labels) {
  const hardware::Chip& chip = query.cluster.chip;
  if (!calibrated)
    return collective::collective_time(num, collective::uncalibrated_form(num, chip, query.kind, query.group, labels),
                                       array);
  const auto& out_of_node = chip.network.scale_out;
  const hardware::Fabric fabric =
      hardware::fabric_of(out_of_node && out_of_node->technology ? *out_of_node->technology : "");
  const hardware::Calibration& values = calibrated->numbers.values;
  const auto form = collective::collective_form(num, *values.collective, query.kind, query.group,
                                                {fabric, query.algorithm, &values.origins, labels});
  const auto time = collective::collective_time(num, form, array);
  return calibrated->launch == Seconds() ? time : num.given("launch", calibrated->launch, "--measured") + time;
}

/// The estimate; labels are for explanations.
template <class N>
NumberOf<N, Seconds> estimated_time(const N& num, const Query& query, const std::optional<Calibrated>& calibrated,
                                    const collective::CollectiveLabels* labels = nullptr) {
  const auto array = num.given("array", query.array(), "as one group sees it");
  if (query.exchange)
    return num.named("estimate", collective::exchange_time(num, *query.exchange, query.group, array, labels));
  const auto library = library_time(num, query, array, calibrated, labels);
  if (!query.one_shot) return num.named("estimate", library);
  const auto line = collective::collective_line(num, program::Collective::all_gather, query.group, labels);
  const auto gathered =
      line.rate * array /
      num.given("share of the bandwidth", hardware::network_efficiency(query.cluster.chip), "of good collectives");
  return num.named("estimate", min(num.named("estimate", library),
                                   collective::one_shot_time(num, *query.one_shot, gathered, query.group.devices)));
}

bool crosses_nodes(const collective::CollectiveGroup& group) {
  return std::any_of(group.levels.begin(), group.levels.end(),
                     [](const auto& level) { return level.level > 0 && level.groups > 1.0; });
}

/// Bounds and estimate, with its interval where the chip is calibrated.
report::Members time_members(const collective::CollectiveCost<Plain>& cost, Seconds estimate,
                             const std::optional<Calibrated>& calibrated, bool between_nodes) {
  report::Members time = report::range(cost.lower, estimate, cost.upper);
  if (!calibrated) return time;
  const auto& spreads = calibrated->numbers.values.spread;
  if (!spreads) return time;
  const double spread = between_nodes ? spreads->between_nodes.value_or(spreads->collective) : spreads->collective;
  if (spread > 0.0)
    time.emplace_back("interval", spread_interval(cost.lower, estimate, spread, calibrated->numbers.basis));
  return time;
}

void add_torus_members(const Query& query, const collective::CollectiveCost<Plain>& cost, report::Members& out) {
  const auto cost_of = [&](program::Collective kind, const collective::CollectiveGroup& group) {
    return collective::collective_cost(Plain{}, kind, query.array(), group);
  };
  out.emplace_back("latency_bound_below", query.group.link * query.group.hop_latency);
  if (query.kind == program::Collective::all_to_all)
    out.emplace_back("over_all_gather",
                     cost.approximate / cost_of(program::Collective::all_gather, query.group).approximate);
  if (query.group.one_way) {
    collective::CollectiveGroup both = query.group;
    both.one_way = false;
    out.emplace_back("gain_of_both_ways", cost.approximate / cost_of(query.kind, both).approximate);
  }
  const bool can_use_idle_axes = program::facts(query.kind).pattern == program::CollectivePattern::sharded ||
                                 query.kind == program::Collective::broadcast;
  if (const collective::IdleAxes idle = collective::idle_axes(query.cluster, query.axes, query.group, query.sharded_by);
      !idle.names.empty() && can_use_idle_axes)
    out.emplace_back(
        "with_idle_axes",
        report::Members{
            {"axes", join(idle.names, ",")},
            {"time", cost_of(query.kind, idle.wider).lower},
            {"if", "the array is replicated over these axes, so that each device first takes its slice for free"}});
}

void add_level_members(const Query& query, const collective::CollectiveCost<Plain>& cost,
                       const collective::CollectiveLabels& labels, report::Members& out) {
  report::Items levels;
  std::pair<Seconds, std::string> slowest;
  for (const collective::LevelTraffic& level : collective::level_traffic(query.kind, query.array(), query.group)) {
    const std::string& called = labels.levels[level.level].name;
    if (level.time > slowest.first) slowest = {level.time, called};
    levels.emplace_back(report::Members{{"name", called},
                                        {"groups", level.groups},
                                        {"lanes", level.lanes},
                                        {"bandwidth", level.stream},
                                        {"collective_bandwidth", level.stream * (level.groups / (level.groups - 1.0))},
                                        {"bytes_into_child", level.into_child},
                                        {"bytes_into_children", level.groups * level.into_child},
                                        {"time", level.time},
                                        {"in_network_reduction", level.reduces}});
  }
  out.emplace_back("bottleneck", slowest.second);
  out.emplace_back("levels", std::move(levels));
  if (const collective::CollectiveCost<Plain> without = collective::collective_cost(
          Plain{}, query.kind, query.array(), collective::without_in_network_reduction(query.group));
      without.bandwidth > cost.bandwidth)
    out.emplace_back("without_in_network_reduction",
                     report::Members{{"time", without.lower}, {"gain", without.lower / cost.lower - 1.0}});
}

draw::Scene picture_of(const Query& query, const collective::CollectiveLabels& labels) {
  std::vector<std::string> levels;
  for (const auto& level : labels.levels) levels.push_back(level.name);
  return draw::draw_timeline(
      collective_timeline(query.kind, query.array(), query.group, torus_axis_names(query.cluster, query.axes), levels));
}

/// Bus over algorithm bandwidth, as nccl-tests defines it: what each device sends over the bytes of the whole array.
double bus_factor(const Query& query) {
  const double n = query.group.devices, others = (n - 1.0) / n;
  if (query.kind == program::Collective::all_reduce) return 2.0 * others;
  const program::CollectivePattern pattern = program::facts(query.kind).pattern;
  return pattern == program::CollectivePattern::sharded || pattern == program::CollectivePattern::exchange ? others
                                                                                                           : 1.0;
}

/// The same collective with another value of what varies.
Result<Query> varied(const Request& request, const Context& context, const Query& query, std::string_view name,
                     double value) {
  Query at = query;
  if (name == "bytes") {
    at.bytes = (query.picks > 0.0 ? query.destinations() : 1.0) * Bytes(value);
  } else if (name == "imbalance") {
    if (query.kind != program::Collective::ragged_all_to_all)
      return fail("--vary", fmt::format("{} sends every device the same amount", program::name(query.kind)),
                  "imbalance applies to ragged-all-to-all only", Error::Kind::usage);
    if (value > query.group.devices)
      return fail("--vary", fmt::format("an imbalance of {} over {} devices", value, query.group.devices),
                  "at most the number of devices", Error::Kind::usage);
    at.group.imbalance = value;
  } else {
    if (query.group.torus() || !query.axes.empty())
      return fail("--vary", fmt::format("{} varies on switched networks over all of their chips", name),
                  "name a GPU cluster, without --axes", Error::Kind::usage);
    if (name == "chips") {
      ASSAY_TRY(overrides, overrides_of(request));
      const std::string text = fmt::format("{}:{}", query.cluster.chip.id, value);
      ASSAY_SET(at.cluster, hardware::parse_cluster(text, context.catalogue, "--vary", overrides));
    } else {
      at.sharded_by = program::Mesh{{{"inner", static_cast<std::int64_t>(value)}}};
    }
    ASSAY_TRY(group, collective::make_group(at.cluster, at.axes, at.inner(), "--vary"));
    group.imbalance = query.group.imbalance;
    at.group = std::move(group);
    if (query.picks > 0.0) at.bytes = (at.destinations() / query.destinations()) * query.bytes;
  }
  return at;
}

/// Bytes, how unevenly they are spread, chips, or the devices that shard the array further take several values.
Result<void> add_sweep(const Request& request, const Context& context, const Query& query,
                       const std::optional<Calibrated>& calibrated, report::Response& response) {
  static constexpr VariedNumber axes[] = {
      {"bytes",
       [](std::string_view text, std::string_view where) -> Result<double> {
         ASSAY_TRY(bytes, roofline::parse_bytes(text, where));
         if (!(bytes > Bytes(0))) return fail(std::string(where), "there is nothing to move", "give a positive size");
         return bytes.value();
       },
       "1kB..1GB"},
      {"imbalance",
       [](std::string_view text, std::string_view where) -> Result<double> {
         const auto number = parse_number(text);
         if (!number || !(*number >= 1.0))
           return fail(std::string(where), fmt::format("{} is not a number from 1 up", in_quotes(text)), "1 is even");
         return *number;
       },
       "1..4"},
      {"chips", &parse_varied_count, "2..128"},
      {"sharded-by", &parse_varied_count, "1..64"}};
  ASSAY_TRY(sweep, read_variation(request, axes));
  if (!sweep) return {};
  std::vector<SweepPoint> points;
  for (const double value : sweep->values) {
    ASSAY_TRY(at, varied(request, context, query, sweep->name, value));
    if (at.group.devices <= 1.0) continue;  // nothing is exchanged
    const collective::CollectiveCost<Plain> cost = collective::collective_cost(Plain{}, at.kind, at.array(), at.group);
    points.push_back(
        {value, at.bytes / at.inner(), cost.lower, estimated_time(Plain{}, at, calibrated), bus_factor(at)});
    if (at.picks > 0.0)
      points.back().share = {at.destinations() / at.group.devices, std::min(1.0, at.picks / at.group.devices)};
  }
  response.results.emplace_back("sweep", sweep_rows(sweep->name, points));
  response.table_key = "sweep";
  if (request.picture())
    response.picture = sweep_picture(fmt::format("{} over {} devices of {}", program::name(query.kind),
                                                 human_number(query.group.devices), query.cluster.text),
                                     sweep->name, points);
  return {};
}

/// What is asked, and how it is done.
report::Members question_members(const Query& query) {
  const Bytes per_group = query.bytes / query.inner();
  const double senders = program::is_one_to_one(query.kind) ? query.inner() : query.inner() * query.group.devices;
  return {{"collective", program::name(query.kind)},
          {"cluster", query.cluster.text},
          {"devices", query.group.devices},
          {"bytes", query.bytes},
          {"bytes_per_group", per_group},
          {"shard_bytes", query.bytes / senders},
          {"algorithm", collective::algorithm(query.kind, query.group)},
          {"hops", collective::collective_hops(query.kind, query.group)}};
}

}  // namespace

Result<report::Response> answer(const Request& request, const Context& context) {
  ASSAY_TRY(query, read_query(request, context));
  ASSAY_TRY(calibration, hardware::calibration_of(query.cluster.chip, context.catalogue));
  ASSAY_TRY(calibrated, calibrated_by(request, context, query, calibration));
  const Bytes array = query.array(), per_group = query.bytes / query.inner();
  const collective::CollectiveCost<Plain> cost = collective::collective_cost(Plain{}, query.kind, array, query.group);
  const collective::CollectiveLabels labels = collective::collective_labels(query.cluster);
  const std::string limiter = cost.latency > cost.bandwidth ? "latency" : "bandwidth";
  report::Response response;
  report::Members& out = response.results;
  out = question_members(query);
  const Seconds estimate = estimated_time(Plain{}, query, calibrated);
  out.emplace_back("time", time_members(cost, estimate, calibrated, crosses_nodes(query.group)));
  out.emplace_back("bandwidth_time", cost.bandwidth);
  out.emplace_back("latency_time", cost.latency);
  out.emplace_back("approximate_time", cost.approximate);
  out.emplace_back("limiter", limiter);
  out.emplace_back("bytes_per_link", collective::busiest_link(query.kind, array, query.group));
  out.emplace_back("algorithm_bandwidth", per_group / cost.lower);
  out.emplace_back("approximate_bandwidth", per_group / cost.approximate);
  out.emplace_back("bus_bandwidth", bus_factor(query) * (per_group / estimate));
  if (query.group.torus())
    add_torus_members(query, cost, out);
  else
    add_level_members(query, cost, labels, out);
  if (query.picks > 0.0)
    out.emplace_back("destinations",
                     report::Members{{"of_a_token", query.destinations()},
                                     {"share", query.destinations() / query.group.devices},
                                     {"approximate_share", std::min(1.0, query.picks / query.group.devices)}});
  if (request.has("simulate")) ASSAY_CHECK(add_simulation(query, out));
  ASSAY_CHECK(add_sweep(request, context, query, calibrated, response));
  if (request.picture() && !response.picture) response.picture = picture_of(query, labels);
  if (request.explain()) {
    const Traced num{&response.ledger};
    const collective::CollectiveCost<Traced> traced =
        collective::collective_cost(num, query.kind, array, query.group, &labels);
    response.derived = {traced.lower.id, traced.upper.id, estimated_time(num, query, calibrated, &labels).id};
  }
  response.headline = fmt::format("{} of {} over {} devices of {}: at least {}, {}-bound", program::name(query.kind),
                                  human(query.bytes), human_number(query.group.devices), query.cluster.text,
                                  human(cost.lower), limiter);
  if (calibrated)
    response.notes.push_back(fmt::format(
        "the estimate uses {}{}", calibration->basis,
        request.has("measured") ? fmt::format(", for runs measured as in {}", *request.value("measured")) : ""));
  if (query.group.hop_latency == Seconds(0))
    response.notes.emplace_back("the catalogue has no hop latency for this network, so latency counts as zero");
  response.notes.insert(response.notes.end(), query.cluster.notes.begin(), query.cluster.notes.end());
  return response;
}

}  // namespace assay::verbs::collective_verb

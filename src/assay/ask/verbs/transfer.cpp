// assay transfer: how long bytes take from one place to another.
#include "assay/predict/roofline/transfer.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "assay/ask/draw/timeline/timeline_scene.h"
#include "assay/ask/verbs/verbs.h"
#include "assay/base/text.h"
#include "assay/hardware/chip_figures.h"
#include "assay/predict/roofline/roofline.h"
#include "assay/predict/roofline/streaming.h"

namespace assay::verbs::transfer {
namespace {

/// The work that waits for the data: its arithmetic and the read of the moved bytes from HBM.
struct Then {
  roofline::Operation operation;
  Flops flops;
  Bytes bytes;  ///< that it reads and writes
  Sourced<FlopsPerSecond> peak;
};

Result<std::optional<Then>> read_then(const Request& request, const hardware::Cluster& cluster) {
  const auto text = request.value("then");
  if (!text) return std::optional<Then>{};
  ASSAY_TRY(operation, roofline::parse_operation(*text, "--then"));
  if (!operation.free_sizes().empty())
    return fail("--then", fmt::format("{} has no number", in_quotes(operation.free_sizes().front())),
                "every size must be a number here");
  const roofline::Work<Plain> work = roofline::operation_work(Plain{}, operation, {});
  Sourced<FlopsPerSecond> peak = hardware::vector_rate(cluster.chip);
  if (operation.function() && operation.function()->uses_fma) peak = hardware::vector_fma_rate(cluster.chip);
  if (!operation.function()) {
    const Dtype dtype = product_dtype(operation.operands()[0].dtype, operation.operands()[1].dtype);
    const auto rate = hardware::peak_rate(cluster.chip, dtype, "--then");
    if (!rate) return fail("--then", rate.error().what, "use a dtype that the chip has; `assay chips` lists its peaks");
    peak = *rate;
  }
  return std::optional<Then>(Then{operation, work.flops, work.bytes, peak});
}

/// A request for one transfer, read and checked.
struct Query {
  hardware::Cluster cluster;
  Bytes bytes;
  roofline::Place from, to;
  roofline::Route route;  ///< with the read of `then` at its end
  std::optional<Then> then;
  double destinations = 1;  ///< chips that compute `then`

  std::optional<Seconds> compute() const {
    if (!then) return std::nullopt;
    return then->flops / (destinations * then->peak.value);
  }
};

Result<Query> read_query(const Request& request, const Context& context) {
  Query query;
  ASSAY_SET(query.cluster, cluster_of(request, context));
  for (const char* option : {"bytes", "from", "to"})
    if (!request.has(option))
      return fail("transfer", fmt::format("--{} is missing", option),
                  "e.g. assay transfer --bytes 16MiB --from 'chip(0,0)' --to 'chip(3,3)' --on tpu-v5e:4x4",
                  Error::Kind::usage);
  const std::string bytes_text = *request.value("bytes");
  ASSAY_TRY(bytes, roofline::parse_bytes(bytes_text, "--bytes"));
  if (!(bytes >= 1_B))
    return fail("--bytes", fmt::format("must be at least one byte, got {}", in_quotes(bytes_text)),
                "e.g. --bytes 16MiB");
  query.bytes = bytes;
  ASSAY_TRY(from, roofline::parse_place(*request.value("from"), query.cluster, "--from"));
  ASSAY_TRY(to, roofline::parse_place(*request.value("to"), query.cluster, "--to"));
  ASSAY_TRY(route, roofline::plan_route(query.cluster, from, to));
  ASSAY_TRY(then, read_then(request, query.cluster));
  query.from = from;
  query.to = to;
  query.route = std::move(route);
  query.then = std::move(then);
  if (to.kind != roofline::Place::Kind::chip) query.destinations = static_cast<double>(query.cluster.chips());
  if (query.then)
    query.route.stages.push_back(
        {"hbm", 1.0, query.destinations, *query.cluster.chip.hbm().bandwidth, 0, {Seconds(0), "same chip", "", {}}});
  return query;
}

report::Items stage_rows(const Query& query, const roofline::TransferTimes<Plain>& times) {
  report::Items rows;
  for (std::size_t i = 0; i < query.route.stages.size(); ++i) {
    const roofline::Stage& stage = query.route.stages[i];
    rows.emplace_back(report::Members{{"name", stage.name},
                                      {"bytes", stage.share * query.bytes},
                                      {"lanes", stage.lanes},
                                      {"bandwidth", stage.lanes * stage.rate.value},
                                      {"hops", stage.hops},
                                      {"time", times.stages[i]}});
  }
  if (query.then) rows.emplace_back(report::Members{{"name", "compute"}, {"time", *query.compute()}});
  return rows;
}

/// The bytes in tiles: each is loaded, worked on and stored while others are on their way.
struct Streaming {
  std::vector<roofline::StreamStage> stages;
  std::vector<std::string> resources;
  Bytes tile;
  std::int64_t tiles = 1, buffers = 2;
};

Result<std::optional<Streaming>> read_streaming(const Request& request, const Query& query,
                                                const roofline::TransferTimes<Plain>& times) {
  constexpr std::int64_t most_tiles = 4096;
  const auto text = request.value("tile");
  if (!text) {
    if (request.has("buffers"))
      return fail("--buffers", "there are no tiles to buffer", "add --tile BYTES", Error::Kind::usage);
    return std::optional<Streaming>{};
  }
  Streaming out;
  ASSAY_TRY(tile, roofline::parse_bytes(*text, "--tile"));
  if (!(tile >= 1_B)) return fail("--tile", "a tile has at least one byte", "e.g. --tile 1MiB");
  out.tile = std::min(tile, query.bytes);
  out.tiles = static_cast<std::int64_t>(std::ceil(query.bytes / out.tile));
  if (out.tiles > most_tiles)
    return fail("--tile", fmt::format("{} tiles; at most {} are followed", out.tiles, most_tiles), "use larger tiles");
  if (const auto count = request.value("buffers")) ASSAY_SET(out.buffers, parse_count(*count, "--buffers"));
  const auto share = 1.0 / static_cast<double>(out.tiles);
  const bool on_chip = query.to.kind == roofline::Place::Kind::vmem;
  for (std::size_t i = 0; i < query.route.stages.size(); ++i) {
    if (on_chip && query.then && i + 1 == query.route.stages.size()) continue;  // it is on the chip already
    out.stages.push_back(
        {i == 0 && on_chip ? "load" : query.route.stages[i].name, out.resources.size(), share * times.stages[i]});
    out.resources.push_back(query.route.stages[i].name);
  }
  if (!query.then) return std::optional(std::move(out));
  out.stages.push_back({"compute", out.resources.size(), share * *query.compute()});
  out.resources.emplace_back("compute");
  if (const Bytes results = query.then->bytes - query.bytes; on_chip && results > Bytes(0))
    out.stages.push_back(
        {"store", 0, share * (results / (query.destinations * query.cluster.chip.hbm().bandwidth->value))});
  return std::optional(std::move(out));
}

draw::Scene streaming_picture(const Query& query, const Streaming& streaming, const roofline::Stream& stream) {
  constexpr std::int64_t most_shown = 24;
  draw::Timeline timeline;
  timeline.title = fmt::format("{} in {} tiles of {}", human(query.bytes), streaming.tiles, human(streaming.tile));
  timeline.subtitle = fmt::format("{} buffers, {} in all", streaming.buffers, human(stream.time));
  for (const std::string& name : streaming.resources) timeline.lanes.push_back({name});
  for (const roofline::StreamStage& stage : streaming.stages)
    timeline.classes.emplace_back(stage.name, stage.name == "compute" ? draw::arithmetic_colour
                                              : stage.name == "store" ? draw::ColourRole::series_5
                                              : stage.name == "load"  ? draw::memory_colour
                                                                      : draw::ColourRole::none);
  for (const roofline::StreamedTile& one : stream.done)
    if (one.tile < most_shown)
      timeline.bars.push_back({streaming.stages[one.stage].resource, one.start, one.end,
                               fmt::format("{}", one.tile + 1), static_cast<int>(one.stage)});
  if (streaming.tiles > most_shown) timeline.notes.push_back(fmt::format("the first {} tiles", most_shown));
  return draw::draw_timeline(timeline);
}

/// What fits on the chip, and what hides behind other work.
Result<void> add_residency(const Request& request, const Query& query, Seconds time, report::Members& out) {
  if (query.to.kind == roofline::Place::Kind::vmem) {
    Bytes capacity;
    for (const hardware::MemoryLevel& level : query.cluster.chip.memory)
      if (level.name == "vmem" || level.name == "smem" || level.name == "l2")
        capacity = std::max(capacity, hardware::capacity_of_chip(query.cluster.chip, level));
    if (capacity > Bytes(0))
      out.emplace_back("residency", report::Members{{"bytes_per_chip", query.bytes / query.destinations},
                                                    {"capacity", capacity},
                                                    {"fits", query.bytes / query.destinations <= capacity}});
  }
  if (const auto text = request.value("while")) {
    ASSAY_TRY(other, parse_as<Seconds>(*text, "--while"));
    out.emplace_back(
        "meanwhile",
        report::Members{{"time", other}, {"hidden", time <= other}, {"exposed", std::max(Seconds(0), time - other)}});
  }
  return {};
}

void explain(const Query& query, report::Response& response) {
  const Traced num{&response.ledger};
  std::optional<TracedQuantity<Dim{.sec = 1}>> work;
  if (query.then) {
    const auto chips = num.given("chips", query.destinations, "destination");
    work = num.named("compute",
                     num.given("flops", query.then->flops, "--then") / (chips * num.given("peak", query.then->peak)));
  }
  const roofline::TransferTimes<Traced> traced = roofline::transfer_times(num, query.route, query.bytes, work);
  response.derived = {traced.lower.id, traced.upper.id};
}

}  // namespace

Result<report::Response> answer(const Request& request, const Context& context) {
  ASSAY_TRY(query, read_query(request, context));
  const hardware::Cluster& cluster = query.cluster;
  const roofline::TransferTimes<Plain> times =
      roofline::transfer_times(Plain{}, query.route, query.bytes, query.compute());
  const roofline::TransferLimiter limiter = roofline::transfer_limiter(query.route, times, query.compute());
  std::int64_t hops = 0;
  for (const roofline::Stage& stage : query.route.stages) hops += stage.hops;
  report::Response response;
  report::Members& out = response.results;
  out.emplace_back("cluster", cluster.text);
  out.emplace_back("bytes", query.bytes);
  out.emplace_back("hosts", hardware::host_count(cluster));
  out.emplace_back("bytes_per_host", query.bytes / static_cast<double>(hardware::host_count(cluster)));
  if (query.then) out.emplace_back("flops", query.then->flops);
  out.emplace_back("hops", hops);
  out.emplace_back("first_byte", times.first_byte);
  out.emplace_back("bandwidth_time", limiter.time);
  out.emplace_back("bandwidth", query.bytes / limiter.time);
  out.emplace_back(
      "time",
      report::range(times.lower, roofline::expected_transfer_time(cluster.chip, query.route, times, query.compute()),
                    times.upper));
  out.emplace_back("limiter", limiter.name);
  out.emplace_back("stages", stage_rows(query, times));
  const auto is_chip = [](const roofline::Place& place) { return place.kind == roofline::Place::Kind::chip; };
  if (is_chip(query.from) && is_chip(query.to) && cluster.torus) {
    const auto paths = [&](bool shortest_only) {
      return hardware::disjoint_paths(*cluster.torus, query.from.index, query.to.index, shortest_only);
    };
    out.emplace_back("ports", report::Members{{"disjoint_paths", paths(false)}, {"on_shortest_paths", paths(true)}});
  }
  response.table_key = "stages";
  ASSAY_TRY(streaming, read_streaming(request, query, times));
  Seconds whole = times.lower;
  if (streaming) {
    const roofline::Stream stream = roofline::stream_tiles(streaming->stages, streaming->tiles, streaming->buffers);
    const roofline::StreamLimit limit = roofline::stream_limit(streaming->stages);
    whole = stream.time;
    out.emplace_back("stream",
                     report::Members{{"tiles", streaming->tiles},
                                     {"tile", streaming->tile},
                                     {"buffers", streaming->buffers},
                                     {"time", stream.time},
                                     {"per_tile", limit.per_tile},
                                     {"limiter", limit.names},
                                     {"busy", static_cast<double>(streaming->tiles) * limit.per_tile / stream.time}});
    if (request.picture()) response.picture = streaming_picture(query, *streaming, stream);
  } else if (request.picture()) {
    return fail("--format svg", "the picture shows tiles that stream", "add --tile BYTES", Error::Kind::usage);
  }
  ASSAY_CHECK(add_residency(request, query, whole, out));
  if (request.explain()) explain(query, response);
  response.notes = query.route.notes;
  response.notes.insert(response.notes.end(), cluster.notes.begin(), cluster.notes.end());
  if (is_chip(query.to) && query.bytes > cluster.chip.hbm().capacity.value)
    response.notes.push_back(fmt::format("{} do not fit into one chip's {} of HBM", human(query.bytes),
                                         human(cluster.chip.hbm().capacity.value)));
  response.headline = fmt::format("{} in {} when stages overlap, {} one after the other; limited by {}",
                                  human(query.bytes), human(times.lower), human(times.upper), limiter.name);
  return response;
}

}  // namespace assay::verbs::transfer

// assay transfer: how long bytes take from one place to another.
#include "assay/roofline/transfer.h"

#include <fmt/format.h>

#include "assay/base/text.h"
#include "assay/roofline/roofline.h"
#include "assay/verbs/screens/screens.h"
#include "assay/verbs/verbs.h"

namespace assay::verbs::transfer {
namespace {

/// The work that waits for the data: its arithmetic and the read of the moved bytes from HBM.
struct Then {
  assay::roofline::Operation operation;
  Flops flops;
  Sourced<FlopsPerSecond> peak;
};

Result<std::optional<Then>> read_then(const Request& request, const hardware::Cluster& cluster) {
  const auto text = request.value("then");
  if (!text) return std::optional<Then>{};
  ASSAY_TRY(operation, assay::roofline::parse_operation(*text, "--then"));
  if (!operation.free_sizes().empty())
    return fail("--then", fmt::format("{} has no number", in_quotes(operation.free_sizes().front())),
                "every size must be a number here");
  const assay::roofline::Work<Plain> work = assay::roofline::operation_work(Plain{}, operation, {});
  Sourced<FlopsPerSecond> peak = hardware::vector_rate(cluster.chip);
  if (operation.function() && operation.function()->uses_fma) peak = hardware::vector_fma_rate(cluster.chip);
  if (!operation.function()) {
    const Dtype dtype = product_dtype(operation.operands()[0].dtype, operation.operands()[1].dtype);
    const auto rate = hardware::peak_rate(cluster.chip, dtype, "--then");
    if (!rate) return fail("--then", rate.error().what, "use a dtype that the chip has; `assay chips` lists its peaks");
    peak = *rate;
  }
  return std::optional<Then>(Then{operation, work.flops, peak});
}

/// A request for one transfer, read and checked.
struct Query {
  hardware::Cluster cluster;
  Bytes bytes;
  assay::roofline::Place from, to;
  assay::roofline::Route route;  ///< with the read of `then` at its end
  std::optional<Then> then;
  double destinations = 1;  ///< chips that compute `then`

  std::optional<Seconds> compute() const {
    if (!then) return std::nullopt;
    return then->flops / (destinations * then->peak.value);
  }
};

Result<Query> read_query(const Request& request, const Context& context) {
  Query query;
  ASSAY_TRY(cluster, cluster_of(request, context));
  query.cluster = std::move(cluster);
  for (const char* option : {"bytes", "from", "to"})
    if (!request.has(option))
      return fail("transfer", fmt::format("--{} is missing", option),
                  "e.g. assay transfer --bytes 16MiB --from 'chip(0,0)' --to 'chip(3,3)' --on tpu-v5e:4x4",
                  Error::Kind::usage);
  const std::string bytes_text = *request.value("bytes");
  ASSAY_TRY(bytes, assay::roofline::parse_bytes(bytes_text, "--bytes"));
  if (!(bytes >= 1_B))
    return fail("--bytes", fmt::format("must be at least one byte, got {}", in_quotes(bytes_text)),
                "e.g. --bytes 16MiB");
  query.bytes = bytes;
  ASSAY_TRY(from, assay::roofline::parse_place(*request.value("from"), query.cluster, "--from"));
  ASSAY_TRY(to, assay::roofline::parse_place(*request.value("to"), query.cluster, "--to"));
  ASSAY_TRY(route, assay::roofline::plan_route(query.cluster, from, to));
  ASSAY_TRY(then, read_then(request, query.cluster));
  query.from = from;
  query.to = to;
  query.route = std::move(route);
  query.then = std::move(then);
  if (to.kind != assay::roofline::Place::Kind::chip) query.destinations = static_cast<double>(query.cluster.chips());
  if (query.then)
    query.route.stages.push_back(
        {"hbm", 1.0, query.destinations, *query.cluster.chip.hbm().bandwidth, 0, {Seconds(0), "same chip", "", {}}});
  return query;
}

report::Items stage_rows(const Query& query, const assay::roofline::TransferTimes<Plain>& times) {
  report::Items rows;
  for (std::size_t i = 0; i < query.route.stages.size(); ++i) {
    const assay::roofline::Stage& stage = query.route.stages[i];
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

void explain(const Query& query, report::Response& response) {
  const Traced num{&response.ledger};
  std::optional<TracedQuantity<Dim{.sec = 1}>> work;
  if (query.then) {
    const auto chips = num.given("chips", query.destinations, "destination");
    work = num.named("compute",
                     num.given("flops", query.then->flops, "--then") / (chips * num.given("peak", query.then->peak)));
  }
  const assay::roofline::TransferTimes<Traced> traced =
      assay::roofline::transfer_times(num, query.route, query.bytes, work);
  response.derived = {traced.lower.id, traced.upper.id};
}

Result<report::Response> answer(const Request& request, const Context& context) {
  ASSAY_TRY(query, read_query(request, context));
  const hardware::Cluster& cluster = query.cluster;
  const assay::roofline::TransferTimes<Plain> times =
      assay::roofline::transfer_times(Plain{}, query.route, query.bytes, query.compute());
  const assay::roofline::TransferLimiter limiter =
      assay::roofline::transfer_limiter(query.route, times, query.compute());
  std::int64_t hops = 0;
  for (const assay::roofline::Stage& stage : query.route.stages) hops += stage.hops;
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
      "time", report::range(times.lower,
                            assay::roofline::expected_transfer_time(cluster.chip, query.route, times, query.compute()),
                            times.upper));
  out.emplace_back("limiter", limiter.name);
  out.emplace_back("stages", stage_rows(query, times));
  const auto is_chip = [](const assay::roofline::Place& place) {
    return place.kind == assay::roofline::Place::Kind::chip;
  };
  if (is_chip(query.from) && is_chip(query.to) && cluster.torus) {
    const auto paths = [&](bool shortest_only) {
      return hardware::disjoint_paths(*cluster.torus, query.from.index, query.to.index, shortest_only);
    };
    out.emplace_back("ports", report::Members{{"disjoint_paths", paths(false)}, {"on_shortest_paths", paths(true)}});
  }
  response.table_key = "stages";
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

}  // namespace

VerbSpec verb() {
  return {"transfer",
          "move bytes between memories, chips, hosts and slices",
          "Places: hbm, vmem (every chip's, bytes spread evenly), host (every host's DRAM), chip(x,y) (one chip's "
          "HBM), slice(i). Stages that stream overlap at best (lower) or run one after the other (upper).",
          {},
          {{"bytes", "BYTES", "16GB, 80GiB, or a tensor bf16[8,128,8192]"},
           {"from", "PLACE", "where the bytes are"},
           {"to", "PLACE", "where they go"},
           on_option,
           {"then", "OP", "an operation at the destination that reads the bytes from HBM"},
           set_option},
          {{"assay transfer --bytes 'bf16[8,128,8192]' --from 'chip(0,0)' --to 'chip(3,3)' --on tpu-v5e:4x4",
            "hops, first byte and total over both ports"},
           {"assay transfer --bytes 16GB --from host --to 'chip(0,0)' --on tpu-v5e:4x4 --then 'bf16[8,131072] @ "
            "int8[131072,131072]'",
            "staged over PCIe, ICI and HBM"},
           {"assay transfer --bytes 1GiB --from 'slice(0)' --to 'slice(1)' --on '2*tpu-v5p:4x4x4'",
            "over the data-centre network"}},
          &answer,
          false,
          false,
          &screens::transfer};
}

}  // namespace assay::verbs::transfer

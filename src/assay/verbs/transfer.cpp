// assay transfer: how long bytes take from one place to another.
#include "assay/roofline/transfer.h"

#include <fmt/format.h>

#include <algorithm>

#include "assay/base/text.h"
#include "assay/roofline/roofline.h"
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
  if (!operation.is_matmul() && operation.function()->uses_fma) peak = hardware::vector_fma_rate(cluster.chip);
  if (operation.is_matmul()) {
    const Dtype dtype = product_dtype(operation.operands()[0].dtype, operation.operands()[1].dtype);
    const auto rate = hardware::peak_rate(cluster.chip, dtype, "--then");
    if (!rate) return fail("--then", rate.error().what, "use a dtype that the chip has; `assay chips` lists its peaks");
    peak = *rate;
  }
  return std::optional<Then>(Then{operation, work.flops, peak});
}

/// The share of a stage's rate that is reached in practice; PCIe has none in the catalogue.
double stage_efficiency(const hardware::Chip& chip, std::string_view stage) {
  if (stage == "pcie") return 1.0;
  return stage == "hbm" ? chip.efficiency.memory.value : hardware::network_efficiency(chip);
}

Result<report::Response> answer(const Request& request, const Context& context) {
  ASSAY_TRY(cluster, cluster_of(request, context));
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
  ASSAY_TRY(from, assay::roofline::parse_place(*request.value("from"), cluster, "--from"));
  ASSAY_TRY(to, assay::roofline::parse_place(*request.value("to"), cluster, "--to"));
  ASSAY_TRY(route, assay::roofline::plan_route(cluster, from, to));
  ASSAY_TRY(then, read_then(request, cluster));
  const double at_end = to.kind == assay::roofline::Place::Kind::chip ? 1.0 : static_cast<double>(cluster.chips());
  if (then)
    route.stages.push_back({"hbm", 1.0, at_end, *cluster.chip.hbm().bandwidth, 0, {Seconds(0), "same chip", "", {}}});
  std::optional<Seconds> compute;
  if (then) compute = then->flops / (at_end * then->peak.value);
  const assay::roofline::TransferTimes<Plain> times = assay::roofline::transfer_times(Plain{}, route, bytes, compute);

  report::Response response;
  report::Members& out = response.results;
  out.emplace_back("cluster", cluster.text);
  out.emplace_back("bytes", bytes);
  out.emplace_back("hosts", hardware::host_count(cluster));
  out.emplace_back("bytes_per_host", bytes / static_cast<double>(hardware::host_count(cluster)));
  std::int64_t hops = 0;
  report::Items stages;
  std::size_t slowest = 0;
  for (std::size_t i = 0; i < route.stages.size(); ++i) {
    const assay::roofline::Stage& stage = route.stages[i];
    hops += stage.hops;
    if (times.stages[i] > times.stages[slowest]) slowest = i;
    stages.emplace_back(report::Members{{"name", stage.name},
                                        {"bytes", stage.share * bytes},
                                        {"lanes", stage.lanes},
                                        {"bandwidth", stage.lanes * stage.rate.value},
                                        {"hops", stage.hops},
                                        {"time", times.stages[i]}});
  }
  const bool by_compute = compute && *compute > times.stages[slowest];
  if (then) {
    out.emplace_back("flops", then->flops);
    stages.emplace_back(report::Members{{"name", "compute"}, {"time", *compute}});
  }
  const std::string limiter = by_compute ? "compute" : route.stages[slowest].name;
  out.emplace_back("hops", hops);
  out.emplace_back("first_byte", times.first_byte);
  const Seconds bandwidth_time = by_compute ? *compute : times.stages[slowest];
  out.emplace_back("bandwidth_time", bandwidth_time);
  out.emplace_back("bandwidth", bytes / bandwidth_time);
  Seconds expected = compute ? *compute / cluster.chip.efficiency.matrix.value : Seconds(0);
  for (std::size_t i = 0; i < route.stages.size(); ++i)
    expected = std::max(expected, times.stages[i] / stage_efficiency(cluster.chip, route.stages[i].name));
  out.emplace_back("time", report::range(times.lower, expected + times.first_byte, times.upper));
  out.emplace_back("limiter", limiter);
  out.emplace_back("stages", std::move(stages));
  if (from.kind == assay::roofline::Place::Kind::chip && to.kind == assay::roofline::Place::Kind::chip && cluster.torus)
    out.emplace_back(
        "ports",
        report::Members{{"disjoint_paths", hardware::disjoint_paths(*cluster.torus, from.index, to.index, false)},
                        {"on_shortest_paths", hardware::disjoint_paths(*cluster.torus, from.index, to.index, true)}});
  response.table_key = "stages";
  if (request.explain()) {
    const Traced num{&response.ledger};
    std::optional<TracedQuantity<Dim{.sec = 1}>> work;
    if (then) {
      const auto chips = num.given("chips", at_end, "destination");
      work = num.named("compute", num.given("flops", then->flops, "--then") / (chips * num.given("peak", then->peak)));
    }
    const assay::roofline::TransferTimes<Traced> traced = assay::roofline::transfer_times(num, route, bytes, work);
    response.derived = {traced.lower.id, traced.upper.id};
  }
  response.notes = route.notes;
  response.notes.insert(response.notes.end(), cluster.notes.begin(), cluster.notes.end());
  if (to.kind == assay::roofline::Place::Kind::chip && bytes > cluster.chip.hbm().capacity.value)
    response.notes.push_back(
        fmt::format("{} do not fit into one chip's {} of HBM", human(bytes), human(cluster.chip.hbm().capacity.value)));
  response.headline = fmt::format("{} in {} when stages overlap, {} one after the other; limited by {}", human(bytes),
                                  human(times.lower), human(times.upper), limiter);
  return response;
}

}  // namespace

VerbSpec verb() {
  return {"transfer",
          "move bytes between memories, chips, hosts and slices",
          "Places: hbm, vmem (every chip's, bytes spread evenly), host (every host's DRAM), chip(x,y) (one chip's "
          "HBM), slice(i). Stages that stream overlap at best (lower) or run one after the other (upper).",
          {},
          {{"bytes", "N", "16GB, 80GiB, or a tensor bf16[8,128,8192]"},
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
          false};
}

}  // namespace assay::verbs::transfer

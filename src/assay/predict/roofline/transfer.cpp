#include "assay/predict/roofline/transfer.h"

#include <fmt/format.h>

#include <algorithm>

#include "assay/base/text.h"

namespace assay::roofline {
namespace {

const Sourced<Seconds> no_latency{Seconds(0.0), "not in the catalogue", "", {}};

Sourced<Seconds> hop_latency(const hardware::Cluster& cluster) {
  const auto& up = cluster.chip.network.scale_up;
  return up && up->hop_latency ? *up->hop_latency : no_latency;
}

double count(std::int64_t n) { return static_cast<double>(n); }

std::string chip_hint(const hardware::Cluster& cluster) {
  if (!cluster.torus) return fmt::format("chips are chip(0) to chip({})", cluster.chips() - 1);
  std::string last;
  for (const hardware::Axis& axis : cluster.torus->axes)
    last += (last.empty() ? "" : ",") + std::to_string(axis.size - 1);
  return fmt::format("coordinates run from 0 to ({})", last);
}

Stage pcie_stage(const hardware::Cluster& cluster, std::int64_t chips) {
  return {"pcie", 1.0, count(chips), cluster.chip.host.pcie, 0, no_latency};
}

/// Bytes spread over all chips of a slice flow into (or out of) one chip and share its ports.
Result<Stage> fan_stage(const hardware::Cluster& cluster, std::int64_t chip) {
  const double n = count(cluster.chips());
  if (cluster.slices > 1)
    return fail("--on", "a transfer between one chip and all chips must stay within one slice", "name one slice");
  if (cluster.torus) {
    const auto ports = static_cast<double>(hardware::neighbours(*cluster.torus, chip).size());
    // Every chip of a twisted torus sees the same distances, so its diameter is the answer without a search.
    std::int64_t farthest = cluster.torus->twisted ? hardware::diameter(*cluster.torus) : 0;
    for (std::int64_t other = 0; !cluster.torus->twisted && other < cluster.chips(); ++other)
      farthest = std::max(farthest, hardware::distance(*cluster.torus, other, chip));
    return Stage{"ici",    (n - 1) / n,         ports, cluster.chip.network.scale_up->link_bandwidth,
                 farthest, hop_latency(cluster)};
  }
  const hardware::Level& top = cluster.levels.back();
  return Stage{cluster.levels.size() == 1 ? "nvlink" : "network",
               (n - 1) / n,
               1.0,
               {top.chip_bandwidth, top.source, "", {}},
               hardware::diameter(cluster),
               no_latency};
}

Result<Stage> chip_to_chip(const hardware::Cluster& cluster, std::int64_t from, std::int64_t to) {
  if (cluster.torus) {
    const auto ports = count(hardware::disjoint_paths(*cluster.torus, from, to, false));
    return Stage{"ici",
                 1.0,
                 ports,
                 cluster.chip.network.scale_up->link_bandwidth,
                 hardware::distance(*cluster.torus, from, to),
                 hop_latency(cluster)};
  }
  // The lowest level that joins both carries the transfer.
  std::int64_t hops = 1;
  for (const hardware::Level& level : cluster.levels) {
    if (from / level.chips == to / level.chips)
      return Stage{level.name == "node" ? "nvlink" : level.name, 1.0,  1.0,
                   {level.chip_bandwidth, level.source, "", {}}, hops, no_latency};
    hops += 2;
  }
  throw InternalError("two chips of a cluster share no level");
}

}  // namespace

Result<Place> parse_place(std::string_view text, const hardware::Cluster& cluster, std::string_view where) {
  const std::string_view all = trim(text);
  const std::size_t open = all.find('(');
  const std::string_view kind = trim(all.substr(0, open));
  const std::string grammar = "places are hbm, vmem, host, chip(x,y) and slice(i)";
  if (open == std::string_view::npos) {
    if (kind == "hbm") return Place{Place::Kind::hbm, 0};
    if (kind == "vmem") return Place{Place::Kind::vmem, 0};
    if (kind == "host") return Place{Place::Kind::host, 0};
    return fail(std::string(where), fmt::format("unknown place {}", in_quotes(text)), grammar);
  }
  if (!all.ends_with(")")) return fail(std::string(where), fmt::format(") is missing in {}", in_quotes(text)), grammar);
  std::vector<std::int64_t> numbers;
  for (const std::string& part : split(all.substr(open + 1, all.size() - open - 2), ',')) {
    const auto number = parse_number(part);
    if (!number || *number < 0 || *number > 1e7 || *number != static_cast<double>(static_cast<std::int64_t>(*number)))
      return fail(std::string(where), fmt::format("{} is not a coordinate", in_quotes(part)), chip_hint(cluster));
    numbers.push_back(static_cast<std::int64_t>(*number));
  }
  if (kind == "slice") {
    if (numbers.size() != 1 || numbers[0] >= cluster.slices)
      return fail(std::string(where), fmt::format("{} is not a slice of {}", in_quotes(text), cluster.text),
                  cluster.slices == 1 ? "it is one slice, slice(0)"
                                      : fmt::format("slices are slice(0) to slice({})", cluster.slices - 1));
    return Place{Place::Kind::slice, numbers[0]};
  }
  if (kind != "chip") return fail(std::string(where), fmt::format("unknown place {}", in_quotes(text)), grammar);
  if (cluster.torus) {
    if (numbers.size() != cluster.torus->axes.size())
      return fail(std::string(where),
                  fmt::format("{} has {} axes, {} has {}", cluster.text, cluster.torus->axes.size(), in_quotes(text),
                              numbers.size()),
                  chip_hint(cluster));
    for (std::size_t i = 0; i < numbers.size(); ++i)
      if (numbers[i] >= cluster.torus->axes[i].size)
        return fail(std::string(where), fmt::format("{} is outside {}", in_quotes(text), cluster.text),
                    chip_hint(cluster));
    return Place{Place::Kind::chip, hardware::chip_index(*cluster.torus, numbers)};
  }
  if (numbers.size() != 1 || numbers[0] >= cluster.chips())
    return fail(std::string(where), fmt::format("{} is not a chip of {}", in_quotes(text), cluster.text),
                chip_hint(cluster));
  return Place{Place::Kind::chip, numbers[0]};
}

Result<Route> plan_route(const hardware::Cluster& cluster, const Place& from, const Place& to) {
  using Kind = Place::Kind;
  Route route;
  const std::int64_t n = cluster.chips();
  const Kind a = from.kind, b = to.kind;
  if (a == b && a != Kind::chip && a != Kind::slice)
    return fail("--to", "source and destination are the same memory", "name two different places");
  if (a == b && from.index == to.index)
    return fail("--to", "source and destination are the same place", "name two different places");
  if (n == 1 && (a == Kind::slice || b == Kind::slice))
    return fail("--on", "one chip has no slices to move between", "");
  const auto vmem = [&](std::int64_t lanes) -> Result<void> {
    if (!hardware::memory_roof(cluster.chip, "vmem", "--to") && !hardware::memory_roof(cluster.chip, "smem", "--to") &&
        !hardware::memory_roof(cluster.chip, "l2", "--to"))
      return fail("--to", fmt::format("{} has no on-chip memory with a known bandwidth", cluster.chip.id), "");
    route.stages.push_back({"hbm", 1.0, count(lanes), *cluster.chip.hbm().bandwidth, 0, no_latency});
    return {};
  };
  if (a == Kind::slice || b == Kind::slice) {
    if (a != b || cluster.levels.empty())
      return fail("--to", "a slice exchanges bytes with another slice",
                  "e.g. --from 'slice(0)' --to 'slice(1)' --on 2*tpu-v5p:4x4x4");
    route.stages.push_back(
        {"dcn", 1.0, count(cluster.chips_per_slice), cluster.chip.network.scale_out->bandwidth, 1, no_latency});
    return route;
  }
  if (a == Kind::host) {
    const bool alone = b == Kind::chip && n == 1;
    route.stages.push_back(pcie_stage(cluster, alone ? 1 : n));
    if (b == Kind::chip && n > 1) {
      ASSAY_TRY(gather, fan_stage(cluster, to.index));
      route.stages.push_back(gather);
    }
    if (b == Kind::vmem) ASSAY_CHECK(vmem(n));
    return route;
  }
  if (b == Kind::host) {
    if (a == Kind::vmem) ASSAY_CHECK(vmem(n));
    route.stages.push_back(pcie_stage(cluster, a == Kind::chip ? 1 : n));
    if (a == Kind::chip) route.notes.push_back("one chip reaches its own host over one PCIe link");
    return route;
  }
  if (a == Kind::chip && b == Kind::chip) {
    ASSAY_TRY(stage, chip_to_chip(cluster, from.index, to.index));
    route.stages.push_back(stage);
    return route;
  }
  if (a == Kind::chip || b == Kind::chip) {
    const bool onto_chip = b == Kind::chip;
    if ((onto_chip ? a : b) == Kind::vmem) ASSAY_CHECK(vmem(onto_chip ? n : 1));
    if (n > 1) {
      ASSAY_TRY(fan, fan_stage(cluster, onto_chip ? to.index : from.index));
      route.stages.push_back(fan);
    }
    if (route.stages.empty())
      return fail("--to", "source and destination are the same memory", "name two different places");
    return route;
  }
  ASSAY_CHECK(vmem(n));
  return route;
}

template <class N>
TransferTimes<N> transfer_times(const N& num, const Route& route, Bytes bytes,
                                const std::optional<typename N::template Number<Dim{.sec = 1}>>& compute) {
  TransferTimes<N> times;
  const auto all = num.given("bytes", bytes, "--bytes");
  using Time = typename N::template Number<Dim{.sec = 1}>;
  std::optional<Time> slowest, sum, latency;
  const auto stage = [&](Time time) {
    slowest = slowest ? max(*slowest, time) : time;
    sum = sum ? *sum + time : time;
  };
  for (const Stage& step : route.stages) {
    const auto lanes = num.given(step.name + " lanes", step.lanes, "links in parallel");
    const auto rate = num.given(step.name + " bandwidth", step.rate);
    const auto share = num.given("share that moves", step.share, "the rest is already there");
    const auto moved = step.share == 1.0 ? all : num.named("bytes moved", share * all);
    times.stages.push_back(num.named(step.name, moved / (lanes * rate)));
    stage(times.stages.back());
    const auto hops = num.given("hops", count(step.hops), "shortest path");
    const auto each = num.given("hop latency", step.hop_latency);
    latency = latency ? *latency + hops * each : hops * each;
  }
  if (compute) stage(*compute);
  times.first_byte = num.named("first byte", *latency);
  times.lower = num.named("pipelined", *slowest + times.first_byte);
  times.upper = num.named("one after the other", *sum + times.first_byte);
  return times;
}

template TransferTimes<Plain> transfer_times(const Plain&, const Route&, Bytes, const std::optional<Seconds>&);
template TransferTimes<Traced> transfer_times(const Traced&, const Route&, Bytes,
                                              const std::optional<TracedQuantity<Dim{.sec = 1}>>&);

TransferLimiter transfer_limiter(const Route& route, const TransferTimes<Plain>& times,
                                 std::optional<Seconds> compute) {
  std::size_t slowest = 0;
  for (std::size_t i = 0; i < route.stages.size(); ++i)
    if (times.stages[i] > times.stages[slowest]) slowest = i;
  if (compute && *compute > times.stages[slowest]) return {"compute", *compute};
  return {route.stages[slowest].name, times.stages[slowest]};
}

Seconds expected_transfer_time(const hardware::Chip& chip, const Route& route, const TransferTimes<Plain>& times,
                               std::optional<Seconds> compute) {
  // PCIe has no efficiency in the catalogue.
  const auto efficiency = [&](std::string_view stage) {
    if (stage == "pcie") return 1.0;
    return stage == "hbm" ? chip.efficiency.memory.value : hardware::network_efficiency(chip);
  };
  Seconds slowest = compute ? *compute / chip.efficiency.matrix.value : Seconds(0);
  for (std::size_t i = 0; i < route.stages.size(); ++i)
    slowest = std::max(slowest, times.stages[i] / efficiency(route.stages[i].name));
  return slowest + times.first_byte;
}

}  // namespace assay::roofline

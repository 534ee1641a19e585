// How fast collectives are costed: the bare formula that a search calls, its straight line, the group of a set of mesh
// axes, and the same cost explained. Groups and sizes change from one evaluation to the next.
#include "assay/predict/collective/collectives.h"

#include <benchmark/benchmark.h>

#include <cstddef>
#include <string>
#include <vector>

#include "assay/predict/collective/placement.h"
#include "assay/predict/collective/simulator/simulator.h"
#include "bench.h"

namespace {

using namespace assay;
using namespace assay::bench;

hardware::Cluster cluster(const std::string& text) {
  return required(hardware::parse_cluster(text, catalogue(), "bench"));
}

std::vector<collective::CollectiveGroup> groups(const std::string& kind) {
  std::vector<collective::CollectiveGroup> all;
  if (kind == "torus")
    for (const auto& axes : {std::vector<std::string>{"X"}, {"X", "Y"}, {"X", "Y", "Z"}, {"X=4", "Y"}})
      all.push_back(required(collective::make_group(cluster("tpu-v5p:8x8x8"), axes, 1, "bench")));
  else
    for (const char* text : {"h100-sxm:8", "h100-sxm:64", "h100-sxm:512", "gb200-nvl72:576"})
      all.push_back(required(collective::make_group(cluster(text), {}, 1, "bench")));
  return all;
}

program::Collective kind_at(std::size_t i) { return static_cast<program::Collective>(i % program::collective_kinds); }

void plain_costs(benchmark::State& state, const std::string& kind) {
  const std::vector<collective::CollectiveGroup> all = groups(kind);
  std::size_t i = 0;
  for (auto _ : state) {
    ++i;
    benchmark::DoNotOptimize(
        collective::collective_cost(Plain{}, kind_at(i), Bytes(static_cast<double>(i)), all[i % all.size()]));
  }
  state.SetItemsProcessed(state.iterations());
}
BENCHMARK_CAPTURE(plain_costs, torus, std::string("torus"));
BENCHMARK_CAPTURE(plain_costs, tree, std::string("tree"));

// What a search does: a line is made once, then evaluated.
void costs_by_lines(benchmark::State& state) {
  const auto lines = collective::collective_lines(groups("torus").back());
  std::size_t i = 0;
  for (auto _ : state) {
    ++i;
    benchmark::DoNotOptimize(lines[i % program::collective_kinds].lower(Bytes(static_cast<double>(i))));
  }
  state.SetItemsProcessed(state.iterations());
}
BENCHMARK(costs_by_lines);

void groups_of_mesh_axes(benchmark::State& state, const char* mesh, const char* on) {
  const collective::Placement placement =
      required(collective::Placement::make(required(program::parse_mesh(mesh, "bench")), cluster(on), "bench"));
  program::AxisSet axes = 0;
  for (auto _ : state) benchmark::DoNotOptimize(placement.group(++axes % 7 + 1).devices);
  state.SetItemsProcessed(state.iterations());
}
BENCHMARK_CAPTURE(groups_of_mesh_axes, torus, "X=4,Y=16,Z=8", "tpu-v5p:8x8x8");
BENCHMARK_CAPTURE(groups_of_mesh_axes, tree, "D=16,P=4,T=8", "h100-sxm:512");

void traced_costs(benchmark::State& state) {
  const std::vector<collective::CollectiveGroup> all = groups("torus");
  const collective::CollectiveLabels labels = collective::collective_labels(cluster("tpu-v5p:8x8x8"));
  std::size_t i = 0;
  for (auto _ : state) {
    ++i;
    Ledger ledger;
    benchmark::DoNotOptimize(collective::collective_cost(Traced{&ledger}, kind_at(i), Bytes(static_cast<double>(i)),
                                                         all[i % all.size()], &labels)
                                 .lower.value());
  }
  state.SetItemsProcessed(state.iterations());
}
BENCHMARK(traced_costs);

// An all-gather over 4096 chips, chunk by chunk.
void simulate_4096_chips(benchmark::State& state) {
  const collective::CollectiveGroup group =
      required(collective::make_group(cluster("tpu-v4:16x16x16"), {}, 1, "bench"));
  for (auto _ : state)
    benchmark::DoNotOptimize(
        collective::simulate_collective(program::Collective::all_gather, Bytes(1e9), group).time.value());
}
BENCHMARK(simulate_4096_chips)->Unit(benchmark::kMillisecond);

}  // namespace

BENCHMARK_MAIN();

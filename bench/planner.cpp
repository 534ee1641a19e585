// How fast products are planned on a mesh of three axes, over a fixed random set of contractions: tensors that a
// planner has met before, as in a search; new sizes and shardings; and a planner for one plan only.
#include "assay/program/plan/planner.h"

#include <benchmark/benchmark.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdint>
#include <random>
#include <stdexcept>
#include <vector>

namespace {

using namespace assay;

const program::Mesh& mesh() {
  static const program::Mesh cube{{{"X", 4}, {"Y", 4}, {"Z", 8}}};
  return cube;
}

/// Axes fall on a dimension or on none, in any order.
program::Sharding random_sharding(std::mt19937& random, std::size_t rank) {
  program::Sharding sharding;
  std::array order = {0, 1, 2};
  for (std::size_t i = order.size(); i > 1; --i) std::swap(order[i - 1], order[random() % i]);
  for (const int axis : order)
    if (const auto place = random() % (rank + 1); place < rank)
      sharding.dims[place] = sharding.dims[place].pushed(axis);
  return sharding;
}

std::vector<plan::ShardingExpression> contractions(std::size_t count) {
  std::mt19937 random(1);  // the same set on every machine
  std::vector<plan::ShardingExpression> all;
  while (all.size() < count) {
    const auto size = [&] { return std::int64_t{1024} << random() % 4; };
    const plan::DimensionSizes sizes{{"I", size()}, {"J", size()}, {"K", size()}};
    auto e = plan::parse_sharding("A[I, J] * B[J, K] -> C[I, K]", mesh(), sizes, Dtype::bf16);
    if (!e) throw std::runtime_error(e.error().what);
    e->left.sharding = random_sharding(random, 2);
    e->right->sharding = random_sharding(random, 2);
    e->result->sharding = random_sharding(random, 2);
    all.push_back(*std::move(e));
  }
  return all;
}

/// Prices in seconds, as of a torus: a rate and a latency for each set of axes.
plan::Prices time_like() {
  plan::Prices prices(mesh());
  for (program::AxisSet axes = 1; axes < 8; ++axes)
    for (const program::CollectiveFacts& each : program::all_collectives)
      if (each.reshards)
        prices.set(each.kind, axes,
                   {program::received_share(each.kind, program::shard_count(mesh(), axes)) / 9e10, 4e-6});
  return prices;
}

/// Mean and longest time of one plan over the set, each the best of several rounds.
template <class Plan>
void over_set(benchmark::State& state, const std::vector<plan::ShardingExpression>& set, Plan plan) {
  std::vector<double> best(set.size(), 1.0);
  for (auto _ : state)
    for (std::size_t i = 0; i < set.size(); ++i) {
      const auto start = std::chrono::steady_clock::now();
      plan(set[i]);
      best[i] = std::min(best[i], std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
    }
  double sum = 0;
  for (const double seconds : best) sum += seconds;
  constexpr double micro = 1e6;
  state.counters["mean_us"] = micro * sum / static_cast<double>(set.size());
  state.counters["max_us"] = micro * *std::max_element(best.begin(), best.end());
  state.SetItemsProcessed(state.iterations() * static_cast<std::int64_t>(set.size()));
}

void known_tensors(benchmark::State& state, const plan::Prices& prices) {
  const auto set = contractions(256);
  plan::Planner planner(mesh());
  for (const plan::ShardingExpression& e : set) benchmark::DoNotOptimize(planner.outline(e, prices).cost);
  over_set(state, set,
           [&](const plan::ShardingExpression& e) { benchmark::DoNotOptimize(planner.outline(e, prices).cost); });
}
BENCHMARK_CAPTURE(known_tensors, by_bytes, plan::byte_prices(mesh()));
BENCHMARK_CAPTURE(known_tensors, by_time, time_like());

void known_tensors_as_plan(benchmark::State& state) {
  const auto set = contractions(256);
  const plan::Prices prices = plan::byte_prices(mesh());
  plan::Planner planner(mesh());
  for (const plan::ShardingExpression& e : set) benchmark::DoNotOptimize(planner.outline(e, prices).cost);
  over_set(state, set,
           [&](const plan::ShardingExpression& e) { benchmark::DoNotOptimize(planner.product(e, prices)); });
}
BENCHMARK(known_tensors_as_plan);

// Every plan has a size never seen before.
void new_sizes(benchmark::State& state, const plan::Prices& prices) {
  auto set = contractions(256);
  plan::Planner planner(mesh());
  std::int64_t grown = 0;
  for (const plan::ShardingExpression& e : set) benchmark::DoNotOptimize(planner.outline(e, prices).cost);
  plan::ShardingExpression e;
  over_set(state, set, [&](const plan::ShardingExpression& base) {
    e = base;
    grown += 128;
    for (program::Tensor* tensor : {&e.left, &*e.right, &*e.result})
      for (program::Dimension& dim : tensor->dims) dim.size += grown;
    benchmark::DoNotOptimize(planner.outline(e, prices).cost);
  });
}
BENCHMARK_CAPTURE(new_sizes, by_bytes, plan::byte_prices(mesh()));
BENCHMARK_CAPTURE(new_sizes, by_time, time_like());

void one_plan_only(benchmark::State& state) {
  const auto set = contractions(256);
  const plan::Prices prices = plan::byte_prices(mesh());
  over_set(state, set,
           [&](const plan::ShardingExpression& e) { benchmark::DoNotOptimize(plan::plan_product(mesh(), e, prices)); });
}
BENCHMARK(one_plan_only);

}  // namespace

BENCHMARK_MAIN();

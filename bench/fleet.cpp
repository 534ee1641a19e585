// How many requests a CPU second replays: one replica without prefixes, at two loads and far beyond them, and several
// replicas of which the least loaded one is looked for; and prompts that share blocks.
#include <benchmark/benchmark.h>

#include "assay/predict/serving/load/fleet.h"
#include "bench.h"

namespace {

using namespace assay;
using namespace assay::serving;

LoadedServer server_of_64() {
  LoadedServer server;
  server.policy = BatchingPolicy::chunked;
  const auto cache = [](double n, double context) { return Seconds(n * context * 131072 / 3e12); };
  server.step = [cache](double n, double context) { return 8_ms + cache(n, context); };
  server.mixed = [cache](double n, double context, double tokens) {
    return std::max(8_ms, (tokens + n) * 25_us) + cache(n, context);
  };
  server.most = 64, server.chunk = 512, server.cache_tokens = 500e3;
  server.lengths = request_lengths(Lengths::fixed(1000), Lengths::fixed(200), 16);
  return server;
}

void replayed(benchmark::State& state, double rate, std::int64_t replicas) {
  const LoadedServer server = server_of_64();
  TrafficPlan traffic;
  traffic.prompts = server.lengths.prompt, traffic.outputs = server.lengths.output;
  traffic.rate = Hertz(rate), traffic.requests = 100000;
  FleetPlan plan;
  plan.server = &server, plan.replicas = replicas;
  for (auto _ : state) benchmark::DoNotOptimize(replay_fleet(plan, traffic).good);
  state.SetItemsProcessed(state.iterations() * traffic.requests);
}
BENCHMARK_CAPTURE(replayed, one_replica, 15.0, 1)->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(replayed, nearly_full, 24.0, 1)->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(replayed, overloaded, 100.0, 1)->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(replayed, sixteen_replicas, 240.0, 16)->Unit(benchmark::kMillisecond);

/// Sessions of four turns, each 512 tokens longer than the last, in blocks of 64.
void with_prefixes(benchmark::State& state) {
  const LoadedServer server = server_of_64();
  RequestTrace trace;
  trace.block = 64;
  Random random(1);
  double time = 0.0;
  for (int i = 0; i < 50000; ++i) {
    TracedRequest one;
    const auto turn = static_cast<std::int64_t>(random.below(4)) + 1, session = static_cast<std::int64_t>(i / 8);
    one.prompt = 512 * turn, one.output = 100, one.arrival = Seconds(time += random.exponential(0.05));
    for (std::int64_t block = 0; block < 8 * turn; ++block) one.blocks.push_back(1000 * session + block);
    trace.requests.push_back(std::move(one));
  }
  trace.span = Seconds(time);
  const PrefixTrie trie(trace);
  TrafficPlan traffic;
  traffic.trace = &trace;
  FleetPlan plan;
  plan.server = &server, plan.prefixes = &trie;
  for (auto _ : state) benchmark::DoNotOptimize(replay_fleet(plan, traffic).good);
  state.SetItemsProcessed(state.iterations() * std::ssize(trace.requests));
}
BENCHMARK(with_prefixes)->Unit(benchmark::kMillisecond);

}  // namespace

BENCHMARK_MAIN();

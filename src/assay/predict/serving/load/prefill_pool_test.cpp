#include "assay/predict/serving/load/prefill_pool.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <cmath>

#include "assay/predict/serving/load/fleet.h"

namespace assay::serving {
namespace {

/// Steps of 8 ms, prompts at 40 thousand tokens per second.
LoadedServer steady_server(std::int64_t prompt, std::int64_t output) {
  LoadedServer server;
  server.policy = BatchingPolicy::chunked;
  server.step = [](double, double) { return 8_ms; };
  server.mixed = [](double n, double, double tokens) { return std::max(8_ms, (tokens + n) * 25_us); };
  server.most = 16, server.chunk = 512;
  server.lengths = request_lengths(Lengths::fixed(prompt), Lengths::fixed(output), 16);
  return server;
}

// A prompt of 512 tokens is one step of 12.8 ms. Its cache of 512 x 100 kB takes 51.2 ms at 1 GB/s, and nine further
// tokens 72 ms.
TEST(PrefillPool, OneRequestTakesItsPromptItsTransferAndItsTokens) {
  const LoadedServer server = steady_server(512, 10);
  TrafficPlan traffic;
  traffic.prompts = server.lengths.prompt, traffic.outputs = server.lengths.output;
  traffic.rate = Hertz(1.0), traffic.requests = 1;
  FleetPlan plan;
  plan.server = &server;
  plan.prefill = PrefillPlan{&server, 1, 100_kB, 1_GB_per_s};
  plan.kept = 0;
  const FleetReplay replay = replay_fleet(plan, traffic);
  ASSERT_TRUE(replay.kept);
  EXPECT_NEAR(replay.kept->first_token(), 0.0128, 1e-9);
  EXPECT_NEAR(replay.kept->whole(), 0.0128 + 0.0512 + 9 * 0.008, 1e-9);
  EXPECT_NEAR(replay.sending, 0.0512, 1e-9);
  EXPECT_NEAR(replay.prefill_busy, 0.0128, 1e-9);
  EXPECT_EQ(replay.cached_tokens, 0);
}

// Two prompts at once share a replica: the second cache waits for the link until the first has gone, 102.4 ms behind
// the first prompt.
TEST(PrefillPool, CachesLeaveAReplicaOneAfterTheOther) {
  const LoadedServer server = steady_server(512, 2);
  const PrefillPlan plan{&server, 1, 100_kB, 1_GB_per_s};
  PrefillPool pool(plan, 0);
  FleetRequest request;
  request.prompt = 512, request.output = 2;
  pool.add(request, {});
  request.id = 1;
  pool.add(request, {});
  pool.advance(Traffic::never);
  EXPECT_NEAR(pool.take().prefilled->here, 0.0128 + 0.0512, 1e-9);
  const FleetRequest second = pool.take();
  EXPECT_EQ(second.output, 2);
  EXPECT_NEAR(second.prefilled->here, 0.0128 + 0.1024, 1e-9);
  EXPECT_EQ(pool.next(), Traffic::never);
}

RC_GTEST_PROP(PrefillPool, EveryRequestEndsWithItsTokensAndAfterItsCacheIsThere, ()) {
  LoadedServer server = steady_server(*rc::gen::inRange(1, 2000), *rc::gen::inRange(1, 100));
  LoadedServer prompts = server;
  if (*rc::gen::arbitrary<bool>()) server.cache_tokens = prompts.cache_tokens = 16.0 * *rc::gen::inRange(150, 400);
  TrafficPlan traffic;
  traffic.prompts = server.lengths.prompt, traffic.outputs = server.lengths.output;
  traffic.rate = Hertz(*rc::gen::inRange(1, 60)), traffic.requests = *rc::gen::inRange(1, 120);
  FleetPlan plan;
  plan.server = &server, plan.replicas = *rc::gen::inRange(1, 4);
  plan.prefill = PrefillPlan{&prompts, *rc::gen::inRange(1, 4), 100_kB, *rc::gen::inRange(1, 100) * 1_GB_per_s};
  std::int64_t ended = 0, tokens = 0;
  plan.each = [&](const ServedRequest& one) {
    if (one.replica < 0) return;
    ++ended;
    tokens += one.request.output;
    RC_ASSERT(one.request.prefilled.has_value());
    RC_ASSERT(one.scheduled >= one.request.prefilled->here - 1e-9);
    RC_ASSERT(one.request.prefilled->here >= one.request.prefilled->made);
    RC_ASSERT(one.first >= one.request.arrival);
    RC_ASSERT(one.for_step() > -1e-9);
  };
  const FleetReplay replay = replay_fleet(plan, traffic);
  RC_ASSERT(ended + replay.refused == traffic.requests);
  RC_ASSERT(tokens == replay.output_tokens);
  if (server.cache_tokens > 0.0) RC_ASSERT(replay.held_blocks == 0);
}

}  // namespace
}  // namespace assay::serving

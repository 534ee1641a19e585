#include "assay/predict/serving/load/fleet.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <cmath>
#include <vector>

#include "assay/predict/serving/load/batching_simulation.h"
#include "assay/predict/serving/load/fleet_bound.h"
#include "assay/predict/serving/load/loaded_server.h"
#include "assay/testing/serving_case.h"

namespace assay::serving {
namespace {

/// Weights of 8 ms, 0.13 MB of cache per token at 3 TB/s, prompts at 40 thousand tokens per second.
LoadedServer small_server(double places = 32) {
  LoadedServer server;
  server.policy = BatchingPolicy::chunked;
  const auto cache = [](double n, double context) { return Seconds(n * context * 131072 / 3e12); };
  server.step = [cache](double n, double context) { return 8_ms + cache(n, context); };
  server.mixed = [cache](double n, double context, double tokens) {
    return std::max(8_ms, (tokens + n) * 25_us) + cache(n, context);
  };
  server.most = places, server.chunk = 512;
  server.lengths = request_lengths(Lengths::fixed(1000), Lengths::fixed(200), 16);
  return server;
}

TrafficPlan at_rate(const LoadedServer& server, double rate, std::int64_t requests) {
  TrafficPlan plan;
  plan.prompts = server.lengths.prompt, plan.outputs = server.lengths.output;
  plan.rate = Hertz(rate), plan.requests = requests;
  return plan;
}

// Prompts of 20 ms and no further output on one place are an M/D/1 queue. At 0.8 of its load a wait is
// 0.8 x 20 / (2 x 0.2) = 40 ms. Twenty runs say how far their mean may be off.
TEST(Fleet, ConstantPromptsThatComeAtRandomAreAnMd1Queue) {
  LoadedServer server;
  server.policy = BatchingPolicy::chunked;
  server.step = [](double, double) { return 1_ns; };
  server.mixed = [](double, double, double) { return 20_ms; };
  server.most = 1, server.chunk = 512;
  server.lengths = request_lengths(Lengths::fixed(512), Lengths::fixed(1), 0);
  TrafficPlan traffic = at_rate(server, 40.0, 20000);
  FleetPlan plan;
  plan.server = &server;
  double sum = 0.0, squares = 0.0;
  constexpr int runs = 20;
  for (int i = 0; i < runs; ++i) {
    traffic.seed = static_cast<std::uint64_t>(i + 1);
    const double mean = replay_fleet(plan, traffic).first_token.mean();
    sum += mean, squares += mean * mean;
  }
  const double mean = sum / runs, error = std::sqrt((squares / runs - mean * mean) / (runs - 1));
  EXPECT_NEAR(mean, 0.06, 3.0 * error);
  EXPECT_LT(error, 0.001);
}

// A server whose places are always taken yields what the steady state says.
TEST(Fleet, SaturatedReplaysAreTheSteadyState) {
  for (const double places : {8.0, 32.0, 128.0}) {
    const LoadedServer server = small_server(places);
    const Hertz saturation = loaded_times(server, Hertz(1e-3)).saturation;
    TrafficPlan traffic = at_rate(server, 1.0, 20000);
    traffic.rate.reset();
    traffic.clients = static_cast<std::int64_t>(2.0 * places);
    FleetPlan plan;
    plan.server = &server;
    const FleetReplay replay = replay_fleet(plan, traffic);
    EXPECT_NEAR(replay.served_per_second() / saturation, 1.0, 0.02) << places;
  }
}

// A single request takes a prompt on the idle server and a step of one sequence for each further token.
TEST(Fleet, OneRequestTakesWhatServeSaysOfABatchOfOne) {
  testing::ServingCase c("llama-3-8b", "h100-sxm:1");
  c.question.lengths = request_lengths(Lengths::fixed(1024), Lengths::fixed(256), 16);
  search::ServingChoices choices;
  choices.batch = 1;
  const ServingPoint point = *c.search(choices).best;
  const LoadedServer server = *loaded_server(c.question, c.cluster, point);
  FleetPlan plan;
  plan.server = &server;
  const FleetReplay replay = replay_fleet(plan, at_rate(server, 1.0, 1));
  EXPECT_NEAR(replay.first_token.mean() / point.prefill.estimate.value(), 1.0, 0.01);
  EXPECT_NEAR(replay.per_token.mean() / point.decode.estimate.value(), 1.0, 0.01);
}

// A share of each prompt is cached: formula and simulation of a loaded server count the same tokens.
TEST(Fleet, SimulatedServersTakeTheCachedShareForGranted) {
  testing::ServingCase c("llama-3-8b", "h100-sxm:1");
  c.question.cached_prompt = 0.5;
  search::ServingChoices choices;
  choices.batch = 64;
  const LoadedServer server = *loaded_server(c.question, c.cluster, *c.search(choices).best);
  const Hertz rate(5.0);
  const LoadedTimes formula = loaded_times(server, rate), played = simulate_batching(server, rate, {4000, 1});
  EXPECT_NEAR(played.first_token.mean / formula.first_token.mean, 1.0, 0.1);
}

TEST(Fleet, MoreReplicasNeverServeFewerRequestsInTime) {
  const LoadedServer server = small_server();
  const TrafficPlan traffic = at_rate(server, 60.0, 4000);
  FleetPlan plan;
  plan.server = &server;
  plan.limits = {200_ms, 12_ms, 0.99};
  double before = 0.0;
  for (plan.replicas = 1; plan.replicas <= 12; ++plan.replicas) {
    const double share = replay_fleet(plan, traffic).good_share();
    EXPECT_GE(share, before) << plan.replicas;
    before = share;
  }
  EXPECT_EQ(before, 1.0);
}

// The fewest replicas that have the time are no more than those that hold, and say something: what a search finds that
// starts there is what one finds that replays all.
TEST(Fleet, FewerThanTheBoundNeverHold) {
  Random random(11);
  std::int64_t bounds = 0, needed = 0;
  for (int i = 0; i < 30; ++i) {
    LoadedServer server = small_server(8.0 + 40.0 * random.share());
    server.further = random.share() * 10_ns, server.before = 500;
    if (i % 2 == 0) server.lengths.prompt = *parse_lengths("lognormal:0.8", 1000, "test");
    const TrafficPlan traffic = at_rate(server, 5.0 + 100.0 * random.share(), 2000);
    FleetPlan plan;
    plan.server = &server;
    plan.limits = {300_ms + 2_s * random.share(), 12_ms + 40_ms * random.share(), 0.9 + 0.1 * random.share()};
    const std::int64_t bound = fewest_replicas(plan, traffic);
    std::int64_t holding = 1;
    for (plan.replicas = 1; plan.replicas < 40 && !holds(plan, replay_fleet(plan, traffic)); ++plan.replicas) ++holding;
    EXPECT_LE(bound, holding) << i;
    bounds += bound, needed += holding;
  }
  EXPECT_GT(3 * bounds, needed);
}

// With room for all blocks and requests far apart, the cache hits what `assay serve --requests` says.
TEST(Fleet, OneReplicaWithRoomForAllPrefixesHitsWhatTheTrieSays) {
  const LoadedServer server = small_server();
  RequestTrace trace;
  trace.block = 64;
  Random random(5);
  for (int i = 0; i < 200; ++i) {
    TracedRequest one;
    one.prompt = 1 + static_cast<std::int64_t>(random.below(1500)), one.output = 4, one.arrival = Seconds(10.0 * i);
    for (std::int64_t left = one.prompt; left > 0; left -= 64)
      one.blocks.push_back(static_cast<std::int64_t>(random.below(2)));
    trace.requests.push_back(one);
  }
  trace.span = *trace.requests.back().arrival;
  const PrefixTrie trie(trace);
  TrafficPlan traffic;
  traffic.trace = &trace;
  FleetPlan plan;
  plan.server = &server, plan.prefixes = &trie;
  const FleetReplay replay = replay_fleet(plan, traffic);
  EXPECT_DOUBLE_EQ(replay.hit_rate(), PrefixReuse(trie).with(std::nullopt).share());
  EXPECT_GT(replay.hit_rate(), 0.1);
}

// Prompts that share nothing go to the least loaded replica under both routings: one looks at replicas where requests
// may have ended alone, the other at all of them.
TEST(Fleet, LooksAtReplicasThatMayHaveChangedAndSeesAllThatHave) {
  const LoadedServer server = small_server();
  RequestTrace trace;
  trace.block = 64;
  Random random(7);
  double time = 0.0;
  for (std::int64_t i = 0; i < 3000; ++i) {
    TracedRequest one;
    one.prompt = 1 + static_cast<std::int64_t>(random.below(1500));
    one.output = 1 + static_cast<std::int64_t>(random.below(300));
    one.arrival = Seconds(time += random.exponential(0.02));
    one.blocks.assign(static_cast<std::size_t>((one.prompt + 63) / 64), i);
    trace.requests.push_back(one);
  }
  trace.span = Seconds(time);
  const PrefixTrie trie(trace);
  TrafficPlan traffic;
  traffic.trace = &trace;
  std::vector<std::vector<std::int64_t>> places(2, std::vector<std::int64_t>(trace.requests.size()));
  for (std::size_t i = 0; i < 2; ++i) {
    FleetPlan plan;
    plan.server = &server, plan.prefixes = &trie, plan.replicas = 5;
    plan.routing = i == 0 ? FleetRouting::least_loaded : FleetRouting::by_prefix;
    plan.each = [&](const ServedRequest& one) { places[i][static_cast<std::size_t>(one.request.id)] = one.replica; };
    replay_fleet(plan, traffic);
  }
  EXPECT_EQ(places[0], places[1]);
}

TEST(Fleet, SameSeedSameNumbers) {
  const LoadedServer server = small_server();
  TrafficPlan traffic = at_rate(server, 30.0, 2000);
  for (const FleetRouting routing : {FleetRouting::random, FleetRouting::in_turn, FleetRouting::least_loaded}) {
    FleetPlan plan;
    plan.server = &server, plan.replicas = 3, plan.routing = routing;
    const double first = replay_fleet(plan, traffic).whole.mean();
    EXPECT_EQ(first, replay_fleet(plan, traffic).whole.mean());
    traffic.seed = 2;
    EXPECT_NE(first, replay_fleet(plan, traffic).whole.mean());
    traffic.seed = 1;
  }
}

TEST(Fleet, OverloadIsAnAnswer) {
  const LoadedServer server = small_server();
  FleetPlan plan;
  plan.server = &server;
  const FleetReplay replay = replay_fleet(plan, at_rate(server, 100.0, 5000));
  EXPECT_EQ(replay.served(), 5000);
  EXPECT_GT(replay.waiting_at_last_arrival, 1000);
  EXPECT_FALSE(holds(plan, replay));
}

RC_GTEST_PROP(Fleet, EveryRequestIsServedOrRefusedAndNothingIsLost, ()) {
  LoadedServer server = small_server(*rc::gen::inRange(1, 20));
  server.cache_tokens = 16.0 * *rc::gen::inRange(30, 300);
  RequestTrace trace;
  trace.block = 64;
  double time = 0.0;
  for (int i = *rc::gen::inRange(2, 80); i > 0; --i) {
    TracedRequest one;
    one.prompt = *rc::gen::inRange(1, 1200), one.output = *rc::gen::inRange(1, 200);
    one.arrival = Seconds(time += *rc::gen::inRange(0, 50) * 1e-3);
    one.session = *rc::gen::inRange(0, 5);
    for (std::int64_t left = one.prompt; left > 0; left -= 64) one.blocks.push_back(*rc::gen::inRange(0, 2));
    trace.requests.push_back(one);
  }
  trace.span = Seconds(time);
  const PrefixTrie trie(trace);
  TrafficPlan traffic;
  traffic.trace = &trace;
  traffic.scale = *rc::gen::inRange(1, 30) / 10.0;
  if (*rc::gen::arbitrary<bool>()) traffic.clients = *rc::gen::inRange(1, 9);
  FleetPlan plan;
  plan.server = &server, plan.prefixes = &trie;
  plan.replicas = *rc::gen::inRange(1, 5);
  plan.routing = *rc::gen::element(FleetRouting::random, FleetRouting::in_turn, FleetRouting::least_loaded,
                                   FleetRouting::by_session, FleetRouting::by_prefix);
  std::int64_t ended = 0, tokens = 0, asked = 0;
  plan.each = [&](const ServedRequest& one) {
    if (one.replica < 0) return;
    ++ended;
    asked += one.request.output;
  };
  const FleetReplay replay = replay_fleet(plan, traffic);
  tokens = replay.output_tokens;
  RC_ASSERT(ended + replay.refused == replay.requests);
  RC_ASSERT(tokens == asked);
  RC_ASSERT(replay.held_blocks == 0);
  RC_ASSERT(replay.cached_tokens < std::max<std::int64_t>(1, replay.prompt_tokens));
}

/// Seconds of weights and a graph until a new replica serves.
FleetChangePlan quick_start() {
  FleetChangePlan changes;
  changes.start = {1_s, 2_s, 500_ms};
  return changes;
}

// Replica lost at 10 s of a steady load: its requests move, the other one serves all until the new one is there at 13.5
// s.
TEST(Fleet, ALostReplicaComesBackAfterItsStart) {
  const LoadedServer server = small_server();
  FleetPlan plan;
  plan.server = &server, plan.replicas = 2, plan.changes = quick_start();
  plan.changes.lost_at = {10_s};
  const TrafficPlan traffic = at_rate(server, 10.0, 300);
  const FleetReplay replay = replay_fleet(plan, traffic);
  EXPECT_EQ(replay.lost, 1);
  EXPECT_GT(replay.moved, 0);
  EXPECT_EQ(replay.fewest, 1);
  EXPECT_EQ(replay.output_tokens, 300 * 200);
  ASSERT_EQ(replay.changes.size(), 2u);
  EXPECT_EQ(replay.changes[0].what, FleetChange::What::lost);
  EXPECT_EQ(replay.changes[0].at, 10.0);
  EXPECT_EQ(replay.changes[1].what, FleetChange::What::ready);
  EXPECT_EQ(replay.changes[1].at, 13.5);
  EXPECT_NEAR(replay.paid, 2.0 * replay.end, 1e-9 * replay.end);
  plan.changes = {};
  EXPECT_LT(replay_fleet(plan, traffic).whole.mean(), replay.whole.mean());
}

// With one replica nothing can serve from 10 s to 13.5 s: what comes in between waits for it, and says so.
TEST(Fleet, RequestsWaitWhereNoReplicaIsLeft) {
  const LoadedServer server = small_server();
  FleetPlan plan;
  plan.server = &server, plan.changes = quick_start();
  plan.changes.lost_at = {10_s};
  double longest = 0.0;
  plan.each = [&](const ServedRequest& one) {
    if (one.request.arrival > 10.1 && one.request.arrival < 13.0)
      EXPECT_NEAR(one.for_replica, 13.5 - one.request.arrival, 1e-9);
    longest = std::max(longest, one.for_replica);
  };
  const FleetReplay replay = replay_fleet(plan, at_rate(server, 10.0, 300));
  EXPECT_EQ(replay.served(), 300);
  EXPECT_GT(longest, 3.0);
}

// A burst of 20 seconds in a calm minute: replicas are added within the bounds, cost their time, and go again.
TEST(Fleet, ScalingFollowsTheLoad) {
  const LoadedServer server = small_server();
  RequestTrace trace;
  for (int i = 0; i < 2400; ++i) {
    TracedRequest one;
    one.prompt = 500, one.output = 100;
    one.arrival = Seconds(i < 400 ? 0.2 * i : i < 2000 ? 80.0 + 0.0125 * (i - 400) : 100.0 + 2.0 * (i - 2000));
    trace.requests.push_back(one);
  }
  trace.span = 900_s;
  TrafficPlan traffic;
  traffic.trace = &trace;
  FleetPlan plan;
  plan.server = &server, plan.replicas = 6, plan.changes = quick_start();
  plan.changes.scale = ScaleRule{ScaleRule::By::use, 0.7, 1, 6, 15_s, 300_s, 0.1};
  const FleetReplay replay = replay_fleet(plan, traffic);
  EXPECT_EQ(replay.served(), 2400);
  EXPECT_EQ(replay.fewest, 1);
  EXPECT_GT(replay.most, 2);
  EXPECT_LT(replay.paid, 0.5 * 6.0 * replay.end);
  EXPECT_GT(replay.paid, replay.end);
  EXPECT_EQ(replay.changes.back().what, FleetChange::What::stopped);
}

// Whatever is lost or scaled: every request ends, with its tokens, and the parts of its time add up.
RC_GTEST_PROP(Fleet, NoRequestIsLostWithItsReplica, ()) {
  LoadedServer server = small_server(*rc::gen::inRange(2, 20));
  if (*rc::gen::arbitrary<bool>()) server.cache_tokens = 16.0 * *rc::gen::inRange(120, 300);
  TrafficPlan traffic = at_rate(server, *rc::gen::inRange(1, 40), *rc::gen::inRange(1, 150));
  traffic.seed = static_cast<std::uint64_t>(*rc::gen::inRange(1, 1000));
  if (*rc::gen::arbitrary<bool>()) traffic.rate.reset(), traffic.clients = *rc::gen::inRange(1, 30);
  FleetPlan plan;
  plan.server = &server, plan.changes = quick_start();
  plan.replicas = *rc::gen::inRange(1, 5);
  plan.routing = *rc::gen::element(FleetRouting::random, FleetRouting::in_turn, FleetRouting::least_loaded);
  for (int i = *rc::gen::inRange(0, 5); i > 0; --i) plan.changes.lost_at.emplace_back(0.1 * *rc::gen::inRange(0, 200));
  if (*rc::gen::arbitrary<bool>()) plan.changes.lost_between = Seconds(*rc::gen::inRange(20, 200));
  if (*rc::gen::arbitrary<bool>())
    plan.changes.scale =
        ScaleRule{*rc::gen::element(ScaleRule::By::queue, ScaleRule::By::use), 0.5, 1, plan.replicas, 1_s, 5_s, 0.1};
  std::int64_t ended = 0, tokens = 0;
  plan.each = [&](const ServedRequest& one) {
    if (one.replica < 0) return;
    ++ended;
    tokens += one.request.output;
    RC_ASSERT(one.for_step() > -1e-9);
    RC_ASSERT(one.for_replica >= 0.0);
    const double parts = (one.ready - one.request.arrival) + one.for_replica + one.for_step() + one.for_places +
                         one.for_cache + one.for_prompts + (one.prompted - one.scheduled) + one.preempted +
                         (one.decoded - one.prompted - one.preempted) + (one.end - one.decoded);
    RC_ASSERT(std::abs(parts - one.whole()) < 1e-6);
    RC_ASSERT(one.decoded - one.prompted >= one.preempted - 1e-9);
  };
  const FleetReplay replay = replay_fleet(plan, traffic);
  RC_ASSERT(ended + replay.refused == replay.requests);
  RC_ASSERT(replay.requests == traffic.requests);
  RC_ASSERT(tokens == replay.output_tokens);
  if (server.cache_tokens > 0.0) RC_ASSERT(replay.held_blocks == 0);
  RC_ASSERT(replay.paid <= static_cast<double>(plan.replicas) * replay.end + 2.0);
  RC_ASSERT(replay.most <= plan.replicas);
}

}  // namespace
}  // namespace assay::serving

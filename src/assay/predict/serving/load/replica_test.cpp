#include "assay/predict/serving/load/replica.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <vector>

#include "assay/predict/serving/load/load_record.h"

namespace assay::serving {
namespace {

/// Steps of 10 ms and a millisecond for each sequence; a tenth of a millisecond for each token of a prompt.
LoadedServer server_of(double places, double chunk, double cache) {
  LoadedServer server;
  server.policy = BatchingPolicy::chunked;
  server.step = [](double n, double context) { return 10_ms + 1_ms * n + 1_us * n * context; };
  server.mixed = [step = server.step](double n, double context, double tokens) {
    return (n > 0.0 ? step(n, context) : 10_ms) + 100_us * tokens;
  };
  server.lengths = request_lengths(Lengths::fixed(100), Lengths::fixed(10), 16);
  server.most = places, server.chunk = chunk, server.cache_tokens = cache;
  return server;
}

struct Played {
  std::vector<ServedRequest> ended;
  std::vector<ReplicaSpan> spans;
  std::int64_t held = 0, preemptions = 0;
};

/// Requests of {arrival, prompt, output} on one replica.
Played play(const LoadedServer& server, const std::vector<std::array<double, 3>>& requests,
            const std::vector<std::vector<std::int64_t>>& paths = {}, std::int64_t block = 0) {
  Played out;
  Replica::Watchers watchers{[&](const ServedRequest& one) { out.ended.push_back(one); },
                             [&](const ReplicaSpan& span) { out.spans.push_back(span); }};
  const ReplicaModel model(server, block);
  Replica replica(model, watchers, 0);
  for (std::size_t i = 0; i < requests.size(); ++i) {
    FleetRequest request;
    request.id = static_cast<std::int64_t>(i);
    request.arrival = requests[i][0];
    request.prompt = static_cast<std::int64_t>(requests[i][1]);
    request.output = static_cast<std::int64_t>(requests[i][2]);
    replica.advance(request.arrival);
    replica.add(request, i < paths.size() ? paths[i] : std::vector<std::int64_t>{}, block);
  }
  replica.advance(Traffic::never);
  out.held = replica.pool().held();
  out.preemptions = replica.preemptions();
  return out;
}

// A prompt of 100 tokens alone takes 10 + 10 ms, and makes the first token. Nine steps follow, at contexts of 101 to
// 109 tokens: 9 x 11 ms + 945 us.
TEST(Replica, OneRequestTakesItsPromptAndAStepForEachFurtherToken) {
  const Played played = play(server_of(4, 512, 4096), {{5.0, 100, 10}});
  ASSERT_EQ(played.ended.size(), 1U);
  EXPECT_NEAR(played.ended[0].first_token(), 0.020, 1e-12);
  EXPECT_NEAR(played.ended[0].whole(), 0.020 + 0.099 + 0.000945, 1e-9);
  EXPECT_EQ(played.spans.size(), 2U);  // the steps without prompts were taken together
  EXPECT_EQ(played.held, 0);
}

// Chunks of 40 tokens: three steps of 14, 14 and 12 ms.
TEST(Replica, LongPromptsComeInPieces) {
  EXPECT_NEAR(play(server_of(4, 40, 4096), {{0.0, 100, 1}}).ended[0].first_token(), 0.040, 1e-12);
}

// Steps are priced for tokens behind 50 others. Those of 100 are, on average, in one piece or in three; those of 200
// are behind 100: 200 x 50 us more.
TEST(Replica, TokensFurtherBehindTakeLonger) {
  LoadedServer server = server_of(4, 512, 4096);
  server.further = 1_us, server.before = 50;
  EXPECT_NEAR(play(server, {{0.0, 100, 1}}).ended[0].first_token(), 0.020, 1e-9);
  EXPECT_NEAR(play(server, {{0.0, 200, 1}}).ended[0].first_token(), 0.040, 1e-9);
  server.chunk = 40;
  EXPECT_NEAR(play(server, {{0.0, 100, 1}}).ended[0].first_token(), 0.040, 1e-9);
}

// The second request comes while the first decodes, and joins at the end of the step that runs: its prompt waits for
// it. With one place it waits for the end of the first request.
TEST(Replica, ArrivalsJoinTheNextStepOrWaitForAPlace) {
  const std::vector<std::array<double, 3>> requests{{0.0, 100, 100}, {0.1, 100, 2}};
  const ServedRequest joins = play(server_of(2, 512, 4096), requests).ended.front();
  EXPECT_EQ(joins.request.id, 1);
  EXPECT_GT(joins.for_step(), 0.0);
  EXPECT_LT(joins.for_step(), 0.0112);
  EXPECT_EQ(joins.for_places, 0.0);
  const ServedRequest waits = play(server_of(1, 512, 4096), requests).ended.back();
  EXPECT_EQ(waits.request.id, 1);
  EXPECT_GT(waits.for_places, 0.9);
}

// 16 pages of 16 tokens hold two sequences of 100 tokens, but not their 60 further tokens each: the second goes out and
// is computed again.
TEST(Replica, AFullCacheThrowsTheLastSequenceOut) {
  const Played played = play(server_of(4, 512, 256), {{0.0, 100, 60}, {0.0, 100, 60}});
  ASSERT_EQ(played.ended.size(), 2U);
  EXPECT_EQ(played.ended[0].request.id, 0);
  EXPECT_EQ(played.ended[0].preemptions, 0);
  EXPECT_EQ(played.ended[1].preemptions, 1);
  EXPECT_GT(played.ended[1].preempted, 0.0);
  EXPECT_EQ(played.held, 0);
}

// Blocks of 32 tokens: the second prompt finds two of the first one's three, 64 of its 96 tokens.
TEST(Replica, CachedBlocksAreNotComputedAgain) {
  const Played played = play(server_of(4, 512, 4096), {{0.0, 96, 1}, {1.0, 96, 1}}, {{1, 2, 3}, {1, 2, 4}}, 32);
  EXPECT_EQ(played.ended[1].cached, 64);
  EXPECT_NEAR(played.ended[1].first_token(), 0.0132, 1e-12);
}

RC_GTEST_PROP(Replica, EveryRequestEndsAndItsPartsAddUp, ()) {
  const auto places = *rc::gen::inRange(1, 9), chunk = *rc::gen::inRange(1, 300), pages = *rc::gen::inRange(40, 120);
  std::vector<std::array<double, 3>> requests;
  std::vector<std::vector<std::int64_t>> paths;
  double time = 0.0, asked = 0.0;
  for (int i = *rc::gen::inRange(1, 60); i > 0; --i) {
    time += *rc::gen::inRange(0, 100) * 1e-3;
    const auto prompt = *rc::gen::inRange(1, 300), output = *rc::gen::inRange(1, 120);
    requests.push_back({time, static_cast<double>(prompt), static_cast<double>(output)});
    asked += output;
    paths.emplace_back();
    if (i % 3 == 0) continue;
    std::int64_t node = 0;
    for (int left = prompt; left > 0; left -= 32) paths.back().push_back(node = 2 * node + *rc::gen::inRange(1, 3));
  }
  const Played played = play(server_of(places, chunk, 16.0 * pages), requests, paths, 32);
  RC_ASSERT(played.ended.size() == requests.size());
  RC_ASSERT(played.held == 0);
  double tokens = 0.0, work = 0.0, thrown_out = 0.0;
  for (const ServedRequest& one : played.ended) {
    tokens += static_cast<double>(one.request.output);
    thrown_out += static_cast<double>(one.preemptions);
    const double parts = one.ready - one.request.arrival + one.for_step() + one.for_places + one.for_cache +
                         one.for_prompts + (one.prompted - one.scheduled) + one.preempted +
                         (one.decoded - one.prompted - one.preempted) + (one.end - one.decoded);
    RC_ASSERT(std::abs(parts - one.whole()) < 1e-9);
    RC_ASSERT(one.for_step() > -1e-9 && one.for_places > -1e-9 && one.for_cache > -1e-9 && one.for_prompts > -1e-9);
    RC_ASSERT(one.cached < one.request.prompt);
    RC_ASSERT(one.first_token() > 0.0 && one.end >= one.first);
  }
  RC_ASSERT(tokens == asked);
  RC_ASSERT(thrown_out == static_cast<double>(played.preemptions));
  for (std::size_t i = 0; i < played.spans.size(); ++i) {
    work += played.spans[i].to - played.spans[i].from;
    if (i > 0) RC_ASSERT(played.spans[i].from >= played.spans[i - 1].to - 1e-12);
    RC_ASSERT(played.spans[i].running <= places);
  }
  RC_ASSERT(work > 0.0);
}

// Taken together or one by one, steps are the same: a request that never comes cuts them.
RC_GTEST_PROP(Replica, StepsTakenTogetherAreThoseTakenOneByOne, ()) {
  const LoadedServer server = server_of(4, 128, 16.0 * *rc::gen::inRange(20, 60));
  const ReplicaModel model(server, 0);
  std::vector<ServedRequest> together, apart;
  Replica::Watchers of_together{[&](const ServedRequest&one) { together.push_back(one); }, {}},
      of_apart{[&](const ServedRequest&one) { apart.push_back(one); }, {}};
  Replica one(model, of_together, 0), other(model, of_apart, 0);
  double time = 0.0;
  for (std::int64_t i = 0; i < 20; ++i) {
    FleetRequest request;
    request.id = i, request.arrival = time += *rc::gen::inRange(0, 300) * 1e-3;
    request.prompt = *rc::gen::inRange(1, 200), request.output = *rc::gen::inRange(1, 100);
    one.advance(request.arrival);
    for (double at = other.now(); at < request.arrival; at += 0.004) other.advance(at);
    other.advance(request.arrival);
    one.add(request, {}, 0), other.add(request, {}, 0);
  }
  one.advance(Traffic::never);
  for (double at = other.now(); other.requests() > 0; at += 0.004) other.advance(at);
  RC_ASSERT(together.size() == apart.size());
  for (std::size_t i = 0; i < apart.size(); ++i) {
    RC_ASSERT(together[i].request.id == apart[i].request.id);
    RC_ASSERT(std::abs(together[i].end - apart[i].end) < 1e-9);
  }
}

TEST(Quantiles, AreWithinAThousandthOfTheirValue) {
  Quantiles of;
  for (int i = 1; i <= 10000; ++i) of.add(1e-3 * i);
  for (const double share : {0.1, 0.5, 0.9, 0.99}) EXPECT_NEAR(of.at(share), 10.0 * share, 0.01 * share);
  EXPECT_NEAR(of.mean(), 5.0005, 1e-9);
  EXPECT_EQ(Quantiles().at(0.5), 0.0);
}

TEST(TimeSeries, SpansGrowAndKeepTheirMeans) {
  TimeSeries series(2, 8);
  for (int i = 0; i < 1000; ++i) series.add(1, i, i + 1, i < 500 ? 2.0 : 4.0);
  EXPECT_LE(series.spans(), 16U);
  double all = 0.0;
  for (std::size_t i = 0; i < series.spans(); ++i) all += series.mean(1, i) * series.width();
  EXPECT_NEAR(all, 3000.0, 1e-6);
  EXPECT_NEAR(series.mean(1, 1), 2.0, 1e-9);
}

}  // namespace
}  // namespace assay::serving

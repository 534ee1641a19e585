#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <cmath>

#include "assay/predict/serving/load/batching_simulation.h"
#include "assay/predict/serving/load/loaded_server.h"
#include "assay/predict/serving/throughput.h"
#include "assay/testing/serving_case.h"

namespace assay::serving {
namespace {

// 31 places and outputs of 30 tokens: each request is in 31 steps, so one ends in every step, in which 30 others are
// decoded together with a prompt of 100 tokens. 62 places: two of each.
TEST(SteadyState, OneRequestEndsPerStepForEveryStepThatARequestTakes) {
  const SteadyLoad one = steady_load({31, 30, 100});
  EXPECT_DOUBLE_EQ(one.requests, 1.0);
  EXPECT_DOUBLE_EQ(one.share, 1.0);
  EXPECT_DOUBLE_EQ(one.tokens, 100.0);
  EXPECT_DOUBLE_EQ(one.sequences, 30.0);
  const SteadyLoad two = steady_load({62, 30, 100});
  EXPECT_DOUBLE_EQ(two.requests, 2.0);
  EXPECT_DOUBLE_EQ(two.tokens, 200.0);
  EXPECT_DOUBLE_EQ(two.sequences, 60.0);
}

// One place: a prompt of 0.5 s, then four steps of 0.1 s. The prompt keeps no other sequence waiting.
TEST(SteadyState, OnePlaceTakesTurns) {
  const SteadyLoad load = steady_load({1, 4, 100});
  EXPECT_DOUBLE_EQ(load.share, 0.2);
  EXPECT_DOUBLE_EQ(load.sequences, 0.0);
  const SteadyTimes times = steady_times(load, 500_ms, 100_ms);
  EXPECT_DOUBLE_EQ(load.requests / times.step.value(), 1.0 / 0.9);
  EXPECT_DOUBLE_EQ(times.per_token.value(), 0.1);
}

// Chunks of 25 tokens: four steps of a prompt of 100. 17 places and outputs of 30 tokens: half a request ends per step
// if nothing held it up, but chunks let in a quarter, which keep 7.5 sequences going.
TEST(SteadyState, SmallChunksKeepFewerSequencesGoing) {
  const SteadyLoad load = steady_load({17, 30, 100, 25});
  EXPECT_DOUBLE_EQ(load.requests, 0.25);
  EXPECT_DOUBLE_EQ(load.tokens, 25.0);
  EXPECT_DOUBLE_EQ(load.sequences, 7.5);
  EXPECT_DOUBLE_EQ(steady_load({3.4, 30, 100, 25}).share, 0.4);  // 0.1 requests per step, four steps each
}

RC_GTEST_PROP(SteadyState, TokensOfAStepAreThoseOfTheRequestsThatEnd, ()) {
  const SteadyServer server{
      static_cast<double>(*rc::gen::inRange(1, 3000)), static_cast<double>(*rc::gen::inRange(1, 2000)),
      static_cast<double>(*rc::gen::inRange(1, 9000)), *rc::gen::element(HUGE_VAL, 64.0, 512.0, 8192.0)};
  const SteadyLoad load = steady_load(server);
  const double tokens = load.share * load.sequences + (1.0 - load.share) * load.alone;
  RC_ASSERT(std::abs(tokens - load.requests * server.output) <= 1e-9 * tokens);
  RC_ASSERT(std::abs(load.share * load.tokens - load.requests * server.prompt) <= 1e-9 * load.tokens);
  RC_ASSERT(load.tokens <= server.chunk * (1.0 + 1e-9));
  RC_ASSERT(load.sequences <= server.places);
}

struct SteadyCase {
  testing::ServingCase c;
  ServingStrategy strategy;
  training::StageLinks links;
  ServingPoint point;

  SteadyCase(const std::string& model, const std::string& where, std::int64_t tensor, double batch,
             double chunk = HUGE_VAL)
      : c(model, where), strategy(testing::tensor_only(tensor)) {
    c.question.step_tokens = chunk;
    links = serving_links(c.question.setup, strategy, c.cluster).value();
    point = serving_point(c.question, strategy, serving_profiles(c.question, strategy, links), links, batch);
  }
};

// The simulation draws requests and fills steps with them one by one; it shares only the times of single steps.
TEST(ServedRate, TheSimulationOfAServerThatNeverRunsDryAgrees) {
  for (const double batch : {1.0, 8.0, 64.0, 400.0})
    for (const double chunk : {HUGE_VAL, 512.0}) {
      const SteadyCase served("llama-3-8b", "h100-sxm:1", 1, batch, chunk);
      const LoadedServer server = *loaded_server(served.c.question, served.c.cluster, served.point);
      const double rate = served.point.served.requests_per_second.value();
      EXPECT_NEAR(loaded_times(server, Hertz(0.5 * rate)).saturation.value(), rate, 0.02 * rate)
          << batch << " " << chunk;
      // All requests come at once.
      const SimulatedLoad load{static_cast<std::int64_t>(40.0 * batch + 2000.0), 1};
      EXPECT_NEAR(simulate_batching(server, Hertz(1e6), load).served.value(), rate, 0.03 * rate)
          << batch << " " << chunk;
    }
}

// Prompts of a batch that is large against the output are worked on together: as fast as the chip multiplies.
TEST(ServedRate, PromptsTogetherRunAtTheRateOfArithmetic) {
  const SteadyCase served("llama-3-8b", "h100-sxm:1", 1, 400.0);
  const ServedRate& rate = served.point.served;
  EXPECT_GT(rate.load.tokens, 1024.0);
  const Seconds added = rate.step.estimate - served.point.decode.estimate;
  const Seconds alone = served.point.prefill.estimate / 1024.0 * rate.load.tokens;
  EXPECT_LT(added, alone);
  EXPECT_GT(rate.step.estimate, rate.step.lower);
}

TEST(ServedRate, IsNeverAboveDecodingAloneNorBelowTakingTurns) {
  for (const double batch : {1.0, 4.0, 32.0, 256.0}) {
    const SteadyCase served("llama-3-8b", "h100-sxm:1", 1, batch);
    const double tokens = served.point.served.tokens_per_second.value();
    EXPECT_LT(tokens, served.point.decoded_per_second().value());
    EXPECT_GE(tokens * (1.0 + 1e-9),
              256.0 / (served.point.prefill.estimate + 256.0 * served.point.decode.estimate / batch).value());
  }
}

}  // namespace
}  // namespace assay::serving

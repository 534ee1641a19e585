#include "assay/predict/serving/first_token.h"

#include <gtest/gtest.h>

namespace assay::serving {
namespace {

numbers::RequestPath path_of(double ahead) {
  numbers::RequestPath path;
  path.front_end = 5_ms, path.tokenising = 2_us, path.delivery = 25_us, path.ahead = ahead;
  return path;
}

// 9 places and outputs of 8 tokens: one request ends in each step, so every step of 30 ms works on a prompt beside 8
// sequences. A random arrival waits 15 ms and, if the next step is prepared, 30 more; 1,000 tokens take 2 ms.
TEST(FirstToken, AddsUpFrontEndWaitsPromptAndDelivery) {
  const SteadyServer full{9, 8, 1000, HUGE_VAL, 0};
  const FirstToken first = first_token<Plain>(Plain{}, path_of(0.0), 1000.0, full, {30_ms, 20_ms, 25_ms});
  EXPECT_DOUBLE_EQ(first.front_end.value(), 0.007);
  EXPECT_DOUBLE_EQ(first.waits.value(), 0.015);
  EXPECT_DOUBLE_EQ(first.prompt.value(), 0.030);
  EXPECT_DOUBLE_EQ(first.delivery.value(), 9 * 25e-6);
  EXPECT_DOUBLE_EQ(first.time().value(), 0.052225);
  const FirstToken late = first_token<Plain>(Plain{}, path_of(1.0), 1000.0, full, {30_ms, 20_ms, 25_ms});
  EXPECT_DOUBLE_EQ((late.time() - first.time()).value(), 0.030);
}

// 2 places and outputs of 19 tokens: one step in 10 has a prompt. Steps take 30 and 20 ms, 21 on average; an arrival
// meets one of (0.1 x 900 + 0.9 x 400) / 21 ms, of which half is left.
TEST(FirstToken, ARandomArrivalMeetsLongStepsMoreOften) {
  const SteadyServer server{2, 19, 1000, HUGE_VAL, 0};
  const FirstToken first = first_token<Plain>(Plain{}, path_of(1.0), 1000.0, server, {30_ms, 20_ms, 25_ms});
  EXPECT_NEAR(first.waits.value(), 0.5 * 450.0 / 21.0 * 1e-3 + 0.021, 1e-12);
}

TEST(FirstToken, APromptInChunksTakesAStepForEach) {
  const SteadyServer server{9, 80, 1000, 256, 0};
  const FirstToken first = first_token<Plain>(Plain{}, {}, 1000.0, server, {30_ms, 20_ms, 25_ms});
  EXPECT_DOUBLE_EQ(first.prompt.value(), 4 * 0.030);
  EXPECT_EQ(first.front_end, Seconds(0));
  EXPECT_EQ(first.delivery, Seconds(0));
}

TEST(FirstToken, APromptNextToSequencesIsNoFasterThanAlone) {
  const SteadyServer full{9, 8, 1000, HUGE_VAL, 0};
  EXPECT_EQ(first_token<Plain>(Plain{}, {}, 1000.0, full, {30_ms, 20_ms, 45_ms}).prompt, Seconds(45_ms));
}

TEST(FirstToken, OnlyARequestOnTheServerWaitsForNobody) {
  const SteadyServer alone{1, 100, 1000, HUGE_VAL, 0};
  EXPECT_EQ(first_token<Plain>(Plain{}, path_of(1.0), 1000.0, alone, {30_ms, 20_ms, 25_ms}).waits, Seconds(0));
}

TEST(FirstToken, PlainAndTracedAgree) {
  const SteadyServer server{5, 19, 1000, 300, 0};
  Ledger ledger;
  const Traced num{&ledger};
  const auto derived =
      first_token<Traced>(num, path_of(1.0), 1200.0, server,
                          {num.given("mixed", Seconds(31_ms), "test"), num.given("alone", Seconds(22_ms), "test"),
                           num.given("idle", Seconds(150_ms), "test")});
  const FirstToken plain = first_token<Plain>(Plain{}, path_of(1.0), 1200.0, server, {31_ms, 22_ms, 150_ms});
  EXPECT_EQ(derived.time().value(), plain.time().value());
  EXPECT_EQ(derived.waits.value(), plain.waits.value());
}

}  // namespace
}  // namespace assay::serving

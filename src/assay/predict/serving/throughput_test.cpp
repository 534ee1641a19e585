#include "assay/predict/serving/throughput.h"

#include <gtest/gtest.h>

#include "assay/testing/serving_case.h"

namespace assay::serving {
namespace {

/// Prompts of 1024 tokens in 0.5 s, outputs of 256 tokens at 10 ms each, 32 sequences.
ServingPoint given_point() {
  ServingPoint point;
  point.batch = 32;
  point.prefill.estimate = Seconds(0.5);
  point.decode.estimate = Seconds(0.01);
  return point;
}

// Without prefill the server ends 32 / 2.56 s = 12.5 requests per second, which 12.5 x 0.5 = 6.25 prefill servers
// supply.
TEST(PhaseBalance, HandWorked) {
  ServingQuestion question;
  question.prompt = 1024;
  question.output = 256;
  ServingPoint point = given_point();
  point.served.per_token = Seconds(0.02);
  const PhaseBalance out = phase_balance(question, point);
  EXPECT_DOUBLE_EQ(out.last_token.value(), 0.5 + 5.12);
  EXPECT_DOUBLE_EQ(out.prefill_servers, 6.25);
  EXPECT_DOUBLE_EQ(out.finished_per_step, 0.125);
  EXPECT_EQ(out.freed_per_step, Tokens(160.0));  // an eighth of 1280
  EXPECT_EQ(out.balanced_chunk, Tokens(128.0));  // an eighth of 1024
}

// The decode server of 12.5 requests per second and 6.25 servers of two prompts per second, on 8 chips each.
TEST(DisaggregatedRate, HandWorked) {
  ServingQuestion question;
  question.prompt = 1024;
  question.output = 256;
  const DisaggregatedRate out = disaggregated_rate(question, given_point(), 8.0, Hertz(2.0));
  EXPECT_DOUBLE_EQ(out.prefill_servers, 6.25);
  EXPECT_DOUBLE_EQ(out.requests_per_chip.value(), 12.5 / (8.0 * 7.25));
  EXPECT_DOUBLE_EQ(out.tokens_per_chip.value(), 256.0 * out.requests_per_chip.value());
}

// Where prompts have servers of their own, every place decodes, and what these servers prefill is the most that ends.
TEST(PrefillServers, TakePromptsOffTheDecodingOnes) {
  testing::ServingCase c("llama-3-8b", "h100-sxm:2");
  search::ServingChoices choices;
  choices.batch = 512, choices.data = 2;
  c.question.prefill_servers = 100.0;
  const ServingPoint many = *c.search(choices).best;
  EXPECT_EQ(many.served.per_token, many.decode.estimate);
  EXPECT_DOUBLE_EQ(many.served.tokens_per_second.value(), many.decoded_per_second().value());
  c.question.prefill_servers = 1.0;
  const ServingPoint one = *c.search(choices).best;
  EXPECT_DOUBLE_EQ(one.served.requests_per_second.value(), 1.0 / one.prefill.estimate.value());
  EXPECT_LT(one.served.requests_per_second, many.served.requests_per_second);
}

// A batch that fits is decoded together, 255 steps after the first token; of one that does not fit, others wait.
TEST(BatchRun, TakesItsPromptsAndTheStepsOfWhatFits) {
  const testing::ServingCase c("llama-3-8b", "h100-sxm:1");
  search::ServingChoices choices;
  choices.batch = 64;
  ServingPoint point = *c.search(choices).best;
  const auto fitting = batch_run(c.question, point, c.cluster);
  ASSERT_TRUE(fitting);
  EXPECT_EQ(fitting->together, 64.0);
  EXPECT_DOUBLE_EQ(fitting->time.value(), (point.prefill.estimate + 255.0 * point.decode.estimate).value());
  const double most = point.memory.max_batch;
  point.batch = 4.0 * most;
  const auto waiting = batch_run(c.question, point, c.cluster);
  ASSERT_TRUE(waiting);
  EXPECT_EQ(waiting->together, most);
  choices.batch = static_cast<std::int64_t>(most);
  const double step = c.search(choices).best->decode.estimate.value();
  EXPECT_NEAR(waiting->time.value(), point.prefill.estimate.value() + 4.0 * 255.0 * step, 1e-9);
}

// Two chips at 3.6 USD an hour cost 2e-3 USD a second; a million tokens at 1000 per second take 1000 seconds.
TEST(Cost, OfAMillionTokensIsTheirTimeOnAllChips) {
  EXPECT_DOUBLE_EQ(cost_of_million_tokens(Plain{}, 3.6_USD_per_h, 2.0, TokensPerSecond(1000.0)).value(), 2.0);
}

TEST(ServingLimiter, IsTheLargestOfTheIdealTimes) {
  ServingTime time;
  time.compute = Seconds(2.0);
  time.memory = Seconds(1.0);
  EXPECT_EQ(limiter_of(time), "compute");
  time.memory = Seconds(3.0);
  EXPECT_EQ(limiter_of(time), "memory");
  time.network = Seconds(4.0);
  EXPECT_EQ(limiter_of(time), "network");
}

}  // namespace
}  // namespace assay::serving

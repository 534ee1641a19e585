#include "assay/engine/serving/server.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "assay/testing/small_programs.h"

namespace assay::engine {
namespace {

using namespace testing::small;

model::Transformer small_decoder(int layers) {
  model::Transformer m = embedding_varieties().front().model;
  const model::Layer layer = m.decoder.kinds.front();
  m.decoder = {};
  for (int i = 0; i < layers; ++i) m.decoder.add(layer);
  return m;
}

NamedArrays random_for(const model::Transformer& m) {
  return random_weights(lower::lower_training(m, {}, {}, small_plan(m)), m, 7);
}

std::vector<Prompt> some_prompts(const model::Transformer& m) {
  std::vector<Prompt> out;
  for (std::int64_t i = 0; i < 5; ++i) {
    Prompt prompt{{}, 3 + i % 3};
    for (std::int64_t t = 0; t < 2 + i % 2; ++t)
      prompt.tokens.push_back(
          static_cast<int>(mixed(3, static_cast<std::uint64_t>(7 * i + t)) % static_cast<std::uint64_t>(m.vocabulary)));
    out.push_back(std::move(prompt));
  }
  return out;
}

/// The logits after some tokens, all of them computed at once on one device.
std::vector<double> logits_after(const model::Transformer& m, const NamedArrays& weights,
                                 const std::vector<int>& tokens) {
  lower::Workload work;
  work.queries = work.keys = std::ssize(tokens);
  const program::Program program = lower::lower_serving(m, {}, {}, work, {});
  ServedSequences kept;
  Array row{{1, std::ssize(tokens)}, {tokens.begin(), tokens.end()}};
  return run_serving(program, m, weights, row, kept).logits.values;
}

TEST(Server, GreedyTokensAreThoseOfWholePasses) {
  const model::Transformer m = small_decoder(2);
  const NamedArrays weights = random_for(m);
  const std::vector<Prompt> prompts = some_prompts(m);
  const ServerReport report = Server(m, weights, {.slots = 3}).serve(prompts).value();
  for (std::size_t i = 0; i < prompts.size(); ++i) {
    std::vector<int> tokens = prompts[i].tokens;
    for (std::int64_t n = 0; n < prompts[i].wanted; ++n) {
      const std::vector<double> logits = logits_after(m, weights, tokens);
      tokens.push_back(static_cast<int>(std::max_element(logits.begin(), logits.end()) - logits.begin()));
    }
    tokens.erase(tokens.begin(), tokens.begin() + std::ssize(prompts[i].tokens));
    EXPECT_EQ(report.requests[i].tokens, tokens) << i;
  }
  EXPECT_GT(report.requests.back().started, 1);  // it had to wait for a slot
  EXPECT_GT(report.mean_batch, 1.0);
}

TEST(Server, StrategiesBatchesAndDraftsChangeNoGreedyToken) {
  const model::Transformer m = small_decoder(3);
  const NamedArrays weights = random_for(m);
  const std::vector<Prompt> prompts = some_prompts(m);
  const ServerReport one = Server(m, weights, {.slots = 1}).serve(prompts).value();
  const auto same = [&](const ServerOptions& options) {
    ASSERT_TRUE(check_server(m, options));
    const ServerReport report = Server(m, weights, options).serve(prompts).value();
    for (std::size_t i = 0; i < prompts.size(); ++i) EXPECT_EQ(report.requests[i].tokens, one.requests[i].tokens) << i;
    EXPECT_NEAR(report.moved.value(), report.stated.value(), 1e-9 * report.stated.value());
    EXPECT_EQ(report.handed, report.cached);
    EXPECT_EQ(report.handed > Bytes(0), options.prefill.has_value());
    if (options.drafts > 0) EXPECT_GE(report.drafted, report.accepted);
  };
  using enum lower::CacheScheme;
  same({.slots = 4});
  same({.parallelism = {.tensor = 2}});
  same({.parallelism = {.data = 2, .tensor = 2}, .scheme = {batch, {}}});
  same({.parallelism = {.tensor = 2}, .scheme = {lower::CacheScheme::sequence, {}}, .drafts = 2});
  same({.drafts = 3, .draft_layers = 2});
  same({.parallelism = {.data = 2}, .drafts = 1, .prefill = lower::Parallelism{.tensor = 2}});
}

TEST(Server, SampledDraftsAreDistributedAsTheModelIs) {
  model::Transformer m = small_decoder(2);
  m.vocabulary = 4;
  const NamedArrays weights = random_for(m);
  constexpr int count = 4000;
  const Sampling sampling{.temperature = 0.7};
  const std::vector<Prompt> prompts(count, Prompt{{1}, 3});  // the second of three tokens is drafted
  const ServerReport report =
      Server(m, weights, {.slots = count, .sampling = sampling, .seed = 11, .drafts = 1}).serve(prompts).value();
  EXPECT_GT(report.accepted, 0);
  EXPECT_LT(report.accepted, report.drafted);
  const Distribution first = distribution(logits_after(m, weights, {1}), sampling);
  double chi = 0;
  for (int a = 0; a < 4; ++a) {
    const Distribution second = distribution(logits_after(m, weights, {1, a}), sampling);
    for (int b = 0; b < 4; ++b) {
      const double expected = count * first[static_cast<std::size_t>(a)] * second[static_cast<std::size_t>(b)];
      const auto seen = static_cast<double>(std::count_if(
          report.requests.begin(), report.requests.end(),
          [&](const ServedRequest& request) { return request.tokens[0] == a && request.tokens[1] == b; }));
      chi += (seen - expected) * (seen - expected) / expected;
    }
  }
  EXPECT_LT(chi, 37.7);  // 15 degrees of freedom: one in a thousand is beyond
}

TEST(Server, RefusesWhatItCannotDo) {
  const model::Transformer m = small_decoder(2);
  EXPECT_FALSE(check_server(m, {.drafts = 2, .draft_layers = 2}));
  EXPECT_FALSE(check_server(m, {.parallelism = {.tensor = 3}}));
}

}  // namespace
}  // namespace assay::engine

#include "assay/predict/serving/known_profiles.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "assay/predict/serving/step_prices.h"
#include "assay/testing/serving_case.h"

namespace assay::serving {
namespace {

void expect_near(double known, double made, const std::string& what) {
  EXPECT_NEAR(known, made, 1e-12 * std::abs(made)) << what;
}

void expect_equal(const ServingProfile& known, const ServingProfile& made, const std::string& what) {
  for (const auto bytes :
       {&ServingProfile::weights, &ServingProfile::outer, &ServingProfile::cache, &ServingProfile::cache_spread,
        &ServingProfile::states, &ServingProfile::widest, &ServingProfile::gathered, &ServingProfile::boundary})
    expect_near((known.*bytes).value(), (made.*bytes).value(), what);
  for (const auto count : {&ServingProfile::queries, &ServingProfile::unit, &ServingProfile::uneven,
                           &ServingProfile::cache_groups, &ServingProfile::kernels})
    expect_near(known.*count, made.*count, what);
  EXPECT_EQ(known.together, made.together) << what;
  EXPECT_EQ(known.prompts, made.prompts) << what;
}

void expect_equal(const ServingTime& known, const ServingTime& made, const std::string& what) {
  for (const auto time : {&ServingTime::estimate, &ServingTime::lower, &ServingTime::rooflines, &ServingTime::upper,
                          &ServingTime::compute, &ServingTime::memory, &ServingTime::network})
    expect_near((known.*time).value(), (made.*time).value(), what);
  expect_near(known.kernels, made.kernels, what);
  expect_near(known.flops.value(), made.flops.value(), what);
}

/// Strategies of so many chips with stages, replicas, and experts over some of them.
std::vector<ServingStrategy> strategies(bool experts) {
  std::vector<ServingStrategy> out;
  for (const auto& [tensor, pipeline, data] : {std::tuple{2, 1, 4}, {2, 4, 1}, {2, 2, 2}, {1, 1, 8}, {1, 2, 4}})
    for (const std::int64_t expert : {1, 2, 4}) {
      if (expert > 1 && (!experts || data % expert != 0)) continue;
      ServingStrategy strategy;
      strategy.tensor = tensor, strategy.pipeline = pipeline, strategy.data = data, strategy.expert = expert;
      out.push_back(strategy);
      if (tensor == 1 || expert > 1) continue;
      strategy.scheme.cache = lower::CacheScheme::batch;
      out.push_back(strategy);
      strategy.scheme.cache = lower::CacheScheme::heads;
      strategy.expert_over.tensor = experts;
      strategy.expert = experts ? tensor : 1;
      if (experts) out.push_back(strategy);
    }
  return out;
}

TEST(KnownProfiles, StrategiesThatDifferInStagesAndReplicasShareThem) {
  for (const auto& [id, where] : {std::pair{"llama-3-8b", "h100-sxm:8"},
                                  {"mixtral-8x7b", "h200-sxm:8"},
                                  {"gemma-2-9b", "tpu-v5e:4x2"},
                                  {"jamba-v0.1", "h100-sxm:8"}}) {
    testing::MeasuredServingCase c(id, where);
    c.question.prompt = 900, c.question.output = 200;
    for (const double chunk : {HUGE_VAL, 300.0}) {
      c.question.step_tokens = chunk;
      KnownProfiles known(c.question);
      for (const ServingStrategy& strategy : strategies(std::string(id) == "mixtral-8x7b")) {
        const std::string what = std::string(id) + " tp " + std::to_string(strategy.tensor) + " pp " +
                                 std::to_string(strategy.pipeline) + " ep " + std::to_string(strategy.expert);
        const training::StageLinks links = *serving_links(c.question.setup, strategy, c.cluster);
        const ServingProfiles made = serving_profiles(c.question, strategy, links);
        ServingProfiles shared;
        shared.decode = known.decode(strategy);
        const PrefillOption option = known.prefill([&] {
          ServingStrategy way = strategy;
          way.scheme = prefill_schemes(strategy).front();
          return way;
        }());
        shared.joined = known.joined(strategy, option);
        choose_prefill(c.question, strategy, links, {&option}, shared);
        expect_equal(shared.decode, made.decode, what);
        expect_equal(shared.prefill.profile, made.prefill.profile, what);
        for (const double batch : {1.0, 3.0, 16.0, 37.0, 800.0}) {
          const ServingPoint a = serving_point(c.question, strategy, shared, links, batch),
                             b = serving_point(c.question, strategy, made, links, batch);
          expect_equal(a.decode, b.decode, what);
          expect_equal(a.prefill, b.prefill, what);
          expect_equal(a.served.step, b.served.step, what);
          EXPECT_NEAR(a.memory.total().value(), b.memory.total().value(), 1e-12 * b.memory.total().value()) << what;
          EXPECT_EQ(a.memory.max_batch, b.memory.max_batch) << what;
        }
      }
    }
  }
}

}  // namespace
}  // namespace assay::serving

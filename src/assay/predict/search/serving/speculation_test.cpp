#include "assay/predict/search/serving/speculation.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "assay/testing/serving_case.h"

namespace assay::search {
namespace {

// (1 - 0.8^5) / (1 - 0.8) = 3.3616
TEST(Speculation, TokensOfALoopAreAGeometricSum) {
  EXPECT_NEAR(expected_tokens(0.8, 4), 3.3616, 1e-12);
  EXPECT_EQ(expected_tokens(0.0, 7), 1.0);
  EXPECT_EQ(expected_tokens(1.0, 7), 8.0);
}

TEST(Speculation, ALoopIsItsDraftsAndOneCheck) {
  const testing::ServingCase c("llama-3-70b", "h100-sxm:8");
  const Draft draft{model::load_model("llama-3-8b", testing::catalogue(), "test")->model, false};
  const auto found =
      speculate(c.question, draft, c.cluster, testing::tensor_only(8), {1, 0.8, {1, 2, 3, 4, 5, 6, 7, 8}});
  ASSERT_TRUE(found);
  const training::StageLinks links = *serving::serving_links(c.question.setup, testing::tensor_only(8), c.cluster);
  const Seconds alone = serving::serving_time(c.question.setup, testing::tensor_only(8),
                                              serving::make_serving_profile(c.question.setup, testing::tensor_only(8),
                                                                            1, serving::decode_context(c.question)),
                                              links, 1)
                            .estimate;
  for (const SpeculativeLoop& loop : found->loops) {
    EXPECT_DOUBLE_EQ(loop.loop.value(),
                     (static_cast<double>(loop.length) * loop.draft_step + loop.verify_step).value());
    EXPECT_GE(loop.verify_step, alone);
    EXPECT_LE(found->loops[found->best].per_token(), loop.per_token());
  }
  // At batch 1 weights rule: checking 9 tokens costs hardly more than one, and the draft is 8.8 times smaller.
  EXPECT_LT(found->loops.back().verify_step, 1.05 * alone);
  EXPECT_GT(alone / found->loops[found->best].per_token(), 1.5);
}

TEST(Speculation, AModuleSharesEmbeddingAndHeadAndTheBatchLeavesRoomForIt) {
  // A layer of Llama 3 70B has 855,654,400 parameters, the projection before it 2 x 8192 x 8192; keys and values of
  // 1280 tokens are 8 x 128 x 2 each; all in two bytes over eight chips.
  const testing::ServingCase c("llama-3-70b", "h100-sxm:8");
  const Draft module = prediction_module(c.model);
  const serving::ServingStrategy s = testing::tensor_only(8);
  const double weights = 2.0 * (855654400.0 + 2.0 * 8192 * 8192) / 8, sequence = 2.0 * 1280 * 2048 / 8;
  const Speculation found = *speculate(c.question, module, c.cluster, s, {10, 0.8, {1}});
  EXPECT_NEAR(found.draft_memory.value(), weights + 10 * sequence, 0.001 * weights);  // norms are whole on every chip
  const training::StageLinks links = *serving::serving_links(c.question.setup, s, c.cluster);
  const serving::ServingProfiles profiles = serving::serving_profiles(c.question, s, links);
  const double most = *batch_beside_draft(c.question, module, c.cluster, s);
  EXPECT_LT(most, serving::serving_memory(c.question, profiles, 1).max_batch);
  EXPECT_LE(serving::serving_memory(c.question, profiles, most).total() + Bytes(weights + most * sequence),
            1.001 * c.question.capacity);
  EXPECT_GT(serving::serving_memory(c.question, profiles, most + 1).total() + Bytes(weights + (most + 1) * sequence),
            0.999 * c.question.capacity);
  // Stages hold the module for their own sequences, and experts stay where they are.
  serving::ServingStrategy staged;
  staged.tensor = 4;
  staged.pipeline = 2;
  EXPECT_EQ(speculate(c.question, module, c.cluster, staged, {8, 0.8, {1}})->draft_strategy.data, 2);
}

TEST(Speculation, CheckingOneTokenMoreNeverJumps) {
  testing::ServingCase c("llama-3-70b", "h100-sxm:8");
  const auto calibration = *hardware::calibration_of(c.cluster.chip, testing::catalogue());
  c.question.setup.rates =
      *kernel::kernel_rates(c.cluster.chip, Dtype::bf16, "test", &calibration->values, {.serves = true});
  const serving::ServingStrategy s = testing::tensor_only(8);
  const training::StageLinks links = *serving::serving_links(c.question.setup, s, c.cluster);
  for (std::int64_t context : {1000, 8000, 100000})
    for (double batch : {1.0, 8.0}) {  // 8 x 16 tokens fill one tile of products
      double before = 0.0;
      for (std::int64_t queries = 1; queries <= 16; ++queries) {
        const serving::ServingProfile profile = serving::make_serving_profile(c.question.setup, s, queries, context);
        const double time = serving::verify_time(c.question.setup, s, profile, links, batch).estimate.value();
        if (before > 0.0) {
          // From some rows on k is no longer split, and nothing has to be added up: measured as well.
          EXPECT_GE(time, before * 0.99) << context << ' ' << batch << ' ' << queries;
          EXPECT_LE(time, before * 1.05) << context << ' ' << batch << ' ' << queries;
        }
        before = time;
      }
    }
}

RC_GTEST_PROP(Speculation, BetterDraftsAreNeverSlowerAndLonger, ()) {
  const double a = *rc::gen::inRange(0, 100) / 100.0, b = a + *rc::gen::inRange(0, 100) / 100.0 * (1.0 - a);
  const auto k = *rc::gen::inRange<std::int64_t>(0, 30);
  RC_ASSERT(expected_tokens(b, k) >= expected_tokens(a, k));
  RC_ASSERT(expected_tokens(a, k + 1) >= expected_tokens(a, k));
  RC_ASSERT(expected_tokens(a, k) <= static_cast<double>(k) + 1.0);
}

}  // namespace
}  // namespace assay::search

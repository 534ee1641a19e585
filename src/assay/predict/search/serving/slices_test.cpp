#include "assay/predict/search/serving/slices.h"

#include <gtest/gtest.h>

#include <cmath>

#include "assay/testing/sampling.h"
#include "assay/testing/serving_case.h"

namespace assay::search {
namespace {

SliceQuestion question_of(const testing::ServingCase& c, ServingChoices choices = {}) {
  return {c.question, c.cluster.chip, choices, [&c](const SliceSize& slice) {
            return hardware::parse_cluster(c.cluster.chip.id + ":" + slice.text, testing::catalogue(), "test");
          }};
}

// 141 GB of weights need two H100 of 85.9 GB.
TEST(Slices, TheFirstThatFitsIsTheSmallest) {
  const testing::ServingCase c("llama-3-70b", "h100-sxm:1");
  ServingChoices choices;
  choices.batch = 1;
  choices.tensor = 1;  // fixed for the request's own slice; another slice is searched
  const auto first = first_slice(question_of(c, choices), 1, ServingGoal::fits);
  ASSERT_TRUE(first);
  EXPECT_EQ(first->slice.chips, 2);
  EXPECT_EQ(first->point.strategy.chips(), 2);
  const auto later = first_slice(question_of(c, choices), 3, ServingGoal::fits);
  ASSERT_TRUE(later);
  EXPECT_EQ(later->slice.chips, 4);
}

TEST(Slices, NarrowerWeightsFitWhereWideOnesDoNot) {
  const testing::ServingCase c("llama-3-70b", "h100-sxm:1");
  ServingChoices choices;
  choices.batch = 1;
  ASSERT_FALSE(c.search(choices).fits);
  const auto narrower = narrower_weights(c.question, c.cluster, choices);
  ASSERT_TRUE(narrower);
  EXPECT_EQ(narrower->weights, Dtype::fp8);  // 70.6 GB
}

TEST(Slices, ALimitIsMetWithMoreChipsBeforeNarrowerWeights) {
  if (testing::sampled_every() > 1) GTEST_SKIP() << testing::left_to_release;
  const testing::ServingCase c("llama-3-8b", "h100-sxm:1");
  ServingChoices choices;
  choices.batch = 1;
  choices.per_token = 0.75 * c.search(choices).best->decode.estimate;
  const auto more = first_meeting_slice(question_of(c, choices), 1);
  ASSERT_TRUE(more);
  EXPECT_EQ(more->formats.most(), c.question.setup.formats.most());
  EXPECT_GT(more->found.slice.chips, 1);
  EXPECT_LE(more->found.point.decode.estimate, *choices.per_token);
  choices.per_token = Seconds(1e-9);
  EXPECT_FALSE(first_meeting_slice(question_of(c, choices), 256));
}

// LLaMA 3 8B on H100 of 80 GiB: 16.06 GB in bf16 and 131,072 B of cache per token, 1280 tokens a sequence: 167.8 MB.
TEST(FormatFits, HandWorked) {
  const testing::ServingCase c("llama-3-8b", "h100-sxm:1");
  const auto fits = format_fits(c.question, c.cluster, 8.03e9, 500.0);
  ASSERT_EQ(fits.size(), 3u);
  EXPECT_DOUBLE_EQ(fits[0].weights.in(1_GB), 16.06);
  EXPECT_EQ(fits[0].token_cache, Bytes(131072.0));
  EXPECT_EQ(fits[0].sequence_cache, Bytes(1280.0 * 131072.0));
  EXPECT_EQ(fits[0].least_chips, 1);
  ASSERT_TRUE(fits[0].smallest && fits[0].for_batch && fits[0].max_batch);
  EXPECT_EQ(fits[0].smallest->slice.chips, 1);
  EXPECT_EQ(*fits[0].max_batch, std::floor((80_GiB - fits[0].weights) / fits[0].sequence_cache));  // 416
  EXPECT_EQ(fits[0].for_batch->chips, 2);
  EXPECT_EQ(fits[1].format, Dtype::fp8);
  EXPECT_EQ(2.0 * fits[1].weights, fits[0].weights);
  EXPECT_EQ(4.0 * fits[2].sequence_cache, fits[0].sequence_cache);
}

}  // namespace
}  // namespace assay::search

#include "assay/predict/serving/step_prices.h"

#include <gtest/gtest.h>

#include <string>

#include "assay/predict/serving/point.h"
#include "assay/testing/serving_case.h"

namespace assay::serving {
namespace {

void expect_equal_times(const ServingTime& known, const ServingTime& priced, const std::string& what) {
  EXPECT_NEAR(known.kernels, priced.kernels, 1e-12 * priced.kernels) << what;
  for (const auto part : {&ServingTime::estimate, &ServingTime::lower, &ServingTime::rooflines, &ServingTime::upper,
                          &ServingTime::compute, &ServingTime::memory, &ServingTime::network})
    EXPECT_NEAR((known.*part).value(), (priced.*part).value(), 1e-12 * (priced.*part).value()) << what;
  EXPECT_NEAR(known.flops.value(), priced.flops.value(), 1e-12 * priced.flops.value()) << what;
  EXPECT_NEAR(known.attention_flops.value(), priced.attention_flops.value(), 1e-12 * priced.attention_flops.value());
  EXPECT_NEAR(known.attention_bytes.value(), priced.attention_bytes.value(), 1e-12 * priced.attention_bytes.value());
}

/// Batches in no order, most of them twice.
void expect_no_other_times(testing::ServingCase& c, const ServingStrategy& strategy) {
  const ServingSetup& setup = c.question.setup;
  const auto links = serving_links(setup, strategy, c.cluster);
  ASSERT_TRUE(links);
  const ServingProfiles priced = serving_profiles(c.question, strategy, *links);
  ServingProfiles known = priced;
  kernel::TileTables tables;
  for (ServingProfile* profile : {&known.decode, &known.prefill.profile, &known.joined})
    remember_prices(setup, tables, *profile);
  for (double batch : {64.0, 1.0, 8.0, 64.0, 3000.0, 700.0, 8.0, 65.0, 3000.0, 17.0}) {
    const std::string what = c.model.id + " on " + c.cluster.text + ", batch " + std::to_string(batch);
    const ServingPoint a = serving_point(c.question, strategy, known, *links, batch),
                       b = serving_point(c.question, strategy, priced, *links, batch);
    expect_equal_times(a.decode, b.decode, what);
    expect_equal_times(a.served.step, b.served.step, what + ", with prompts");
    for (const auto time : {&ServedRate::per_token, &ServedRate::prompts})
      EXPECT_NEAR((a.served.*time).value(), (b.served.*time).value(), 1e-12 * (b.served.*time).value()) << what;
  }
}

TEST(StepPrices, KnownPricesAreThoseOfEveryStepByItself) {
  for (const auto& [id, where] : {std::pair{"llama-3-8b", "h100-sxm:4"},
                                  {"mixtral-8x7b", "b200:4"},
                                  {"deepseek-v2-lite", "h200-sxm:4"},
                                  {"mistral-7b", "tpu-v5e:2x2"}}) {
    testing::MeasuredServingCase c(id, where);
    ServingStrategy strategy = testing::tensor_only(2);
    strategy.data = 2;
    expect_no_other_times(c, strategy);
    c.question.step_tokens = 300;  // pieces of prompts
    expect_no_other_times(c, strategy);
    strategy.data = 1, strategy.pipeline = 2;
    expect_no_other_times(c, strategy);
  }
}

}  // namespace
}  // namespace assay::serving

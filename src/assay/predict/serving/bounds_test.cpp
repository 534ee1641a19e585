#include "assay/predict/serving/bounds.h"

#include <gtest/gtest.h>

#include "assay/model/model_catalogue.h"

namespace assay::serving {
namespace {

// LLaMA 3 8B in bf16 on one H100: 7.505e9 weights of layers and head are read, 15.01 GB at 3.35 TB/s: 4.48 ms. A token
// of cache is 2 x 32 layers x 8 heads x 128 values = 131,072 bytes; decode steps see 1024 + 256 / 2 of them.
TEST(ServingBounds, HandWorked) {
  const hardware::Catalogue builtin = hardware::Catalogue::builtin();
  const model::Transformer model = model::load_model("llama-3-8b", builtin, "test")->model;
  const hardware::Chip chip = *builtin.chip("h100-sxm", "test");
  ServingQuestion question;
  question.setup.model = &model;
  question.setup.rates = *kernel::kernel_rates(chip, Dtype::bf16, "test");
  question.prompt = 1024;
  question.output = 256;
  constexpr double active = 7.5e9, batch = 8.0;
  const ServingBounds bounds = serving_bounds({question, 1.0, Dtype::bf16, active, false}, batch);
  EXPECT_NEAR(bounds.weights_read.value(), 15.01e9, 0.01e9);
  EXPECT_GT(bounds.weights, bounds.weights_read);  // rows of the embedding are looked up
  EXPECT_NEAR(bounds.weights_time.value(), 4.48e-3, 0.01e-3);
  EXPECT_NEAR(bounds.cache.value(), batch * 131072.0 * static_cast<double>(decode_context(question)), 1.0);
  EXPECT_NEAR(bounds.compute_time.value(), 2.0 * active * batch / question.setup.rates.rate(Dtype::bf16).value(), 1e-9);
  EXPECT_EQ(bounds.step(), bounds.cache_time + bounds.weights_time);
  // Given parameters say nothing of tables: all of them are read.
  const ServingBounds given = serving_bounds({question, 1.0, Dtype::bf16, active, true}, batch);
  EXPECT_EQ(given.weights_read, given.weights);
  // Four chips have four times the bandwidth.
  const ServingBounds four = serving_bounds({question, 4.0, Dtype::bf16, active, false}, batch);
  EXPECT_DOUBLE_EQ(4.0 * four.step().value(), bounds.step().value());
}

// A v5e has links of 45 GB/s, 90 GB/s along an axis, and 819 GB/s of HBM: 9.1 times as much. The MLP of LLaMA 3 8B is
// 14,336 wide: 14336 x 90e9 / 197e12 = 6.5 ways in prefill, 14336 / (8 x 9.1) = 197 in decode steps of 8 sequences.
TEST(NetworkBounds, HandWorked) {
  const hardware::Catalogue builtin = hardware::Catalogue::builtin();
  const model::Transformer model = model::load_model("llama-3-8b", builtin, "test")->model;
  const hardware::Chip chip = *builtin.chip("tpu-v5e", "test");
  ServingQuestion question;
  question.setup.model = &model;
  question.setup.rates = *kernel::kernel_rates(chip, Dtype::bf16, "test");
  const auto out = network_bounds({question, 1.0, Dtype::bf16, 7.5e9, false}, chip, 8.0);
  ASSERT_TRUE(out);
  EXPECT_EQ(out->axis, 90_GB_per_s);
  EXPECT_NEAR(out->hbm_over_axis, 9.1, 0.2);
  EXPECT_NEAR(out->prefill_ways, 6.55, 0.05);
  EXPECT_NEAR(out->decode_ways, 197.0, 5.0);
  EXPECT_FALSE(network_bounds({question, 1.0, Dtype::bf16, 7.5e9, false}, *builtin.chip("l4", "test"), 8.0));
}

}  // namespace
}  // namespace assay::serving

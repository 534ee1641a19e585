#include "assay/predict/serving/critical_batches.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <string>

#include "assay/model/model_catalogue.h"
#include "assay/testing/catalogue.h"

namespace assay::serving {
namespace {

using testing::catalogue;

std::vector<StepBalance> balance_of(const std::string& id, const std::string& where, std::int64_t tensor, double batch,
                                    Dtype weights = Dtype::bf16) {
  const model::Transformer model = model::load_model(id, catalogue(), "test")->model;
  const hardware::Cluster cluster = *hardware::parse_cluster(where, catalogue(), "test");
  ServingSetup setup;
  setup.model = &model, setup.rates = *kernel::kernel_rates(cluster.chip, Dtype::bf16, "test");
  setup.formats.weights = weights;
  ServingStrategy strategy;
  strategy.tensor = tensor;
  return step_balance(setup, strategy, 1024, batch);
}

const StepBalance& row_of(const std::vector<StepBalance>& rows, const std::string& what) {
  return *std::find_if(rows.begin(), rows.end(), [&](const StepBalance& row) { return row.what == what; });
}

// W_in of LLaMA 3 70B on one of eight chips: [B, 8192] x [8192, 3584] in bf16. Arithmetic takes 2 B k n / peak, memory
// (2 k n + 2 B (k + n)) / bandwidth: equal at B = k n / (k n bandwidth / peak - (k + n)).
TEST(StepBalance, TheCriticalBatchOfAProduct) {
  const hardware::Chip chip = *catalogue().chip("h100-sxm", "test");
  const double ridge = (chip.peak[static_cast<std::size_t>(Dtype::bf16)]->value / chip.hbm().bandwidth->value).value();
  const double k = 8192, n = 28672.0 / 8;
  const auto rows = balance_of("llama-3-70b", "h100-sxm:8", 8, 64);
  ASSERT_TRUE(row_of(rows, "W_in").critical);
  EXPECT_NEAR(*row_of(rows, "W_in").critical, k * n / (k * n / ridge - (k + n)), 0.01);
  // Half the bytes of weights: half of the numerator.
  EXPECT_NEAR(*row_of(balance_of("llama-3-70b", "h100-sxm:8", 8, 64, Dtype::fp8), "W_in").critical,
              0.5 * k * n / (k * n / ridge - (k + n)), 0.01);
}

TEST(StepBalance, AttentionIsNeverBoundByArithmetic) {
  const auto rows = balance_of("llama-3-70b", "h100-sxm:8", 8, 4096);
  EXPECT_FALSE(row_of(rows, "attention").critical);
  // Eight heads share keys and values: 2 FLOP of scores and 2 of sums for each of 8 over two values of two bytes.
  EXPECT_NEAR((row_of(rows, "attention").flops / row_of(rows, "attention").bytes).value(), 8.0, 0.1);
}

// With 2 of 8 experts picked, 4 tokens touch 8 (1 - (3/4)^4) = 5.47 on average; an expert sees a quarter of the tokens,
// so that it takes four times the batch to keep it busy.
TEST(StepBalance, FewTokensTouchFewExperts) {
  const auto rows = balance_of("mixtral-8x7b", "h100-sxm:4", 4, 4);
  const StepBalance& experts = row_of(rows, "W_in");
  EXPECT_EQ(experts.experts, 8.0);
  EXPECT_NEAR(experts.touched, 8.0 * (1.0 - std::pow(0.75, 4)), 1e-9);
  ASSERT_TRUE(experts.critical);
  EXPECT_GT(*experts.critical, 4.0 * 295.0);
}

}  // namespace
}  // namespace assay::serving

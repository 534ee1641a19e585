#include "assay/search/serving/fit.h"

#include <gtest/gtest.h>

#include "assay/testing/serving_case.h"

namespace assay::search {
namespace {

TEST(ServingFit, SlicesAreThoseThatExist) {
  const hardware::Chip v5e = *testing::catalogue().chip("tpu-v5e", "test");
  const auto text = [&](double bytes) {
    return smallest_slice({}, v5e, v5e.hbm().capacity.value.value(), bytes)->text;
  };
  EXPECT_EQ(text(35e9), "2x2");
  EXPECT_EQ(text(70e9), "4x2");
  EXPECT_EQ(text(140e9), "4x4");
  EXPECT_FALSE(smallest_slice({}, v5e, v5e.hbm().capacity.value.value(), 1e15));
  const hardware::Chip h100 = *testing::catalogue().chip("h100-sxm", "test");
  const double capacity = h100.hbm().capacity.value.value();
  EXPECT_EQ(smallest_slice({}, h100, capacity, 141e9)->text, "2");
  // 80 GiB - 1 % - 1.5 GiB = 77.7 GiB of one, 77.2 GiB of each of several: 154.4 GiB of two.
  estimate::RuntimeMemory runtime;
  runtime.hidden = 0.01;
  runtime.context = 1.5 * 1_GiB;
  runtime.communication = 0.5 * 1_GiB;
  const auto gib = [&](double n) { return (n * 1_GiB).value(); };
  EXPECT_EQ(smallest_slice(runtime, h100, capacity, gib(77.6))->text, "1");
  EXPECT_EQ(smallest_slice(runtime, h100, capacity, gib(77.8))->text, "2");
  EXPECT_EQ(smallest_slice(runtime, h100, capacity, gib(154.3))->text, "2");
  EXPECT_EQ(smallest_slice(runtime, h100, capacity, gib(154.5))->text, "4");
}

TEST(ServingFit, TheLongestContextFillsMemory) {
  const testing::ServingCase c("llama-3-8b", "h100-sxm:1");
  const auto longest = longest_context(c.question, c.cluster, testing::tensor_only(1), 16, 1 << 30);
  ASSERT_TRUE(longest);
  // 85.9 GB less 16.06 GB of weights over 16 x 131,072 B per token: 33,300 tokens, less the space of a prompt.
  EXPECT_LT(*longest, 33300);
  EXPECT_GT(*longest, 0.9 * 33300);
}

}  // namespace
}  // namespace assay::search

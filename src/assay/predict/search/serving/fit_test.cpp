#include "assay/predict/search/serving/fit.h"

#include <gtest/gtest.h>

#include "assay/testing/serving_case.h"

namespace assay::search {
namespace {

TEST(ServingFit, SlicesAreThoseThatExist) {
  const hardware::Chip v5e = *testing::catalogue().chip("tpu-v5e", "test");
  const auto text = [&](Bytes bytes) { return smallest_slice({}, v5e, v5e.hbm().capacity.value, bytes)->text; };
  EXPECT_EQ(text(35_GB), "2x2");
  EXPECT_EQ(text(70_GB), "4x2");
  EXPECT_EQ(text(140_GB), "4x4");
  EXPECT_FALSE(smallest_slice({}, v5e, v5e.hbm().capacity.value, Bytes(1e15)));
  const hardware::Chip h100 = *testing::catalogue().chip("h100-sxm", "test");
  const Bytes capacity = h100.hbm().capacity.value;
  EXPECT_EQ(smallest_slice({}, h100, capacity, 141_GB)->text, "2");
  // 80 GiB - 1 % - 1.5 GiB = 77.7 GiB on a single chip, 77.2 GiB on each of several: 154.4 GiB on two.
  numbers::RuntimeMemory runtime;
  runtime.hidden = 0.01;
  runtime.context = 1.5 * 1_GiB;
  runtime.communication = 0.5 * 1_GiB;
  EXPECT_EQ(smallest_slice(runtime, h100, capacity, 77.6_GiB)->text, "1");
  EXPECT_EQ(smallest_slice(runtime, h100, capacity, 77.8_GiB)->text, "2");
  EXPECT_EQ(smallest_slice(runtime, h100, capacity, 154.3_GiB)->text, "2");
  EXPECT_EQ(smallest_slice(runtime, h100, capacity, 154.5_GiB)->text, "4");
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

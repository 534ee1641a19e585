#include "assay/ask/verbs/ranges.h"

#include <gtest/gtest.h>

#include "assay/base/text.h"

namespace assay::verbs {
namespace {

constexpr VariedNumber swept_lengths[] = {{"seq", &parse_varied_count, "1k..8k"}};

Result<std::optional<Variation>> read_vary(const std::string& vary) {
  const auto request = parse_request(std::vector<std::string>{"models", "llama-3-8b", "--vary", vary});
  if (!request) return tl::unexpected<Error>(request.error());
  return read_variation(*request, swept_lengths);
}

TEST(Variation, DoublesUpToItsEnd) {
  const auto sweep = read_vary("seq=1k..6k");
  ASSERT_TRUE(sweep && *sweep);
  EXPECT_EQ((*sweep)->values, (std::vector<double>{1000, 2000, 4000, 6000}));
}

TEST(Variation, ListsAreTakenAsTheyAre) {
  const auto sweep = read_vary("seq=7, 3");
  ASSERT_TRUE(sweep && *sweep);
  EXPECT_EQ((*sweep)->values, (std::vector<double>{7, 3}));
}

TEST(Variation, FaultsAreNamed) {
  for (const char* text : {"seq", "batch=1..8", "seq=8..1", "seq=0..8", "seq=", "seq=1..x", "=1..2"})
    EXPECT_FALSE(read_vary(text)) << text;
}

TEST(CountsOfRange, DoubleOrTakeSteps) {
  EXPECT_EQ(*counts_of_range("3..20", "--on", 100), (std::vector<std::int64_t>{3, 6, 12, 20}));
  EXPECT_EQ(*counts_of_range("8..30:8", "--on", 100), (std::vector<std::int64_t>{8, 16, 24}));
  EXPECT_EQ(counts_of_range("1..1000:1", "--on", 10)->size(), 11u);
  for (const char* text : {"8..3", "x..8", "1..8:0"}) EXPECT_FALSE(counts_of_range(text, "--on", 100)) << text;
}

TEST(ClusterRange, TakesEveryCountThatNodesAllow) {
  const hardware::Catalogue catalogue = hardware::Catalogue::builtin();
  const auto clusters = [&](const std::string& text) {
    return join(parse_cluster_range(text, "--on", catalogue)->clusters, " ");
  };
  EXPECT_EQ(clusters("h100-sxm:5..16"), "h100-sxm:5 h100-sxm:6 h100-sxm:7 h100-sxm:8 h100-sxm:16");
  EXPECT_EQ(clusters("h100-sxm:8..40:16"), "h100-sxm:8 h100-sxm:24 h100-sxm:40");
  EXPECT_EQ(clusters("tpu-v5e:1..8,a100-sxm-80:8"), "tpu-v5e:1 tpu-v5e:4 tpu-v5e:8 a100-sxm-80:8");
  EXPECT_EQ(clusters("h100-sxm:6..12"), "h100-sxm:6 h100-sxm:7 h100-sxm:8 h100-sxm:12");
}

TEST(ClusterRange, LongRangesDoubleAndAreRefinedAroundTheChoice) {
  const hardware::Catalogue catalogue = hardware::Catalogue::builtin();
  const auto range = parse_cluster_range("h100-sxm:8..512", "--on", catalogue);
  ASSERT_TRUE(range);
  EXPECT_TRUE(range->coarse);
  EXPECT_EQ(range->clusters.size(), 7u);
  EXPECT_EQ(finer_range(*range, "h100-sxm:32", catalogue),
            "h100-sxm:8,h100-sxm:16,h100-sxm:24,h100-sxm:32,h100-sxm:40,h100-sxm:48,h100-sxm:56,h100-sxm:64,"
            "h100-sxm:128,h100-sxm:256,h100-sxm:512");
}

}  // namespace
}  // namespace assay::verbs

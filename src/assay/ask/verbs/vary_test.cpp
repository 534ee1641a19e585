#include "assay/ask/verbs/vary.h"

#include <gtest/gtest.h>

#include "assay/base/text.h"

namespace assay::verbs {
namespace {

constexpr VariedNumber swept_lengths[] = {{"seq",
                                           [](std::string_view text, std::string_view where) -> Result<double> {
                                             ASSAY_TRY(count, parse_count(text, where));
                                             return static_cast<double>(count);
                                           },
                                           "1k..8k"}};

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

}  // namespace
}  // namespace assay::verbs

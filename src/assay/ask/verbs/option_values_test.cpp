#include "assay/ask/verbs/option_values.h"

#include <gtest/gtest.h>

namespace assay::verbs {
namespace {

TEST(Batch, IsAWholeNumberOfSequences) {
  std::vector<std::string> notes;
  EXPECT_EQ(parse_batch("1024seq", 4096, notes).value(), 1024.0);
  EXPECT_EQ(parse_batch("4Mi", 4096, notes).value(), 1024.0);
  EXPECT_TRUE(notes.empty());
}

// 4,000,000 / 4096 is 976.56: of 967 to 986, 976 = 16 x 61 halves most often. 977 is a prime, which no mesh divides.
TEST(Batch, AboutAsManyTokensAreSequencesThatDivide) {
  std::vector<std::string> notes;
  EXPECT_EQ(parse_batch("4M", 4096, notes).value(), 976.0);
  ASSERT_EQ(notes.size(), 1u);
  EXPECT_NE(notes[0].find("3,997,696 tokens"), std::string::npos) << notes[0];
  EXPECT_EQ(parse_batch("10000", 4096, notes).value(), 2.0);  // 2.44: nothing is within 1 %
}

TEST(Batch, LessThanOneSequenceIsAnError) {
  std::vector<std::string> notes;
  EXPECT_FALSE(parse_batch("1000", 4096, notes));
  EXPECT_FALSE(parse_batch("0seq", 4096, notes));
}

}  // namespace
}  // namespace assay::verbs

#include "assay/engine/text/tokens.h"

#include <gtest/gtest.h>

namespace assay::engine {
namespace {

constexpr std::string_view text = "the weights of the layers of the model are the weights of the step";

TEST(Tokenizer, BytesAreTokens) {
  const Tokenizer bytes;
  EXPECT_EQ(bytes.vocabulary(), 256);
  EXPECT_EQ(bytes.encode("ab"), (std::vector<int>{97, 98}));
  EXPECT_EQ(bytes.decode(bytes.encode(text)), text);
  EXPECT_EQ(bytes.decode(std::vector<int>{200, 10, 65}), "?\nA");
}

TEST(Tokenizer, LearnedPairsShortenTheTextAndKeepIt) {
  const Tokenizer pairs = Tokenizer::learned(text, 270);
  EXPECT_GT(pairs.vocabulary(), 260);
  EXPECT_LE(pairs.vocabulary(), 270);
  EXPECT_LT(pairs.encode(text).size(), text.size() / 2);
  EXPECT_EQ(pairs.decode(pairs.encode(text)), text);
  EXPECT_EQ(pairs.decode(pairs.encode("other words, too")), "other words, too");
  EXPECT_EQ(Tokenizer::learned("abc", 300).vocabulary(), 256);  // no pair occurs twice
}

TEST(Tokenizer, MergesAreReadBack) {
  const Tokenizer pairs = Tokenizer::learned(text, 270);
  EXPECT_EQ(Tokenizer::from_merges(pairs.merges(), "test")->encode(text), pairs.encode(text));
  EXPECT_EQ(Tokenizer::from_merges("", "test")->vocabulary(), 256);
  for (const char* wrong : {"1", "1 2 3", "1 -2", "300 1", "x y", "1 2,,"})
    EXPECT_FALSE(Tokenizer::from_merges(wrong, "test")) << wrong;
}

TEST(TextBatch, TargetsFollowTokens) {
  const std::vector<int> tokens = Tokenizer().encode(text);
  const TextBatch batch = text_batch(tokens, 3, 8, 5, 1);
  EXPECT_EQ(batch.tokens.shape, (Shape{3, 8}));
  for (std::size_t row = 0; row < 3; ++row)
    for (std::size_t i = 0; i + 1 < 8; ++i)
      EXPECT_EQ(batch.targets.values[8 * row + i], batch.tokens.values[8 * row + i + 1]);
  EXPECT_NE(batch.tokens, text_batch(tokens, 3, 8, 5, 2).tokens);
  EXPECT_EQ(batch.tokens, text_batch(tokens, 3, 8, 5, 1).tokens);
}

}  // namespace
}  // namespace assay::engine

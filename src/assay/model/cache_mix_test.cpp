#include "assay/model/cache_mix.h"

#include <gtest/gtest.h>

#include "assay/model/accounting.h"
#include "assay/model/model_catalogue.h"

namespace assay::model {
namespace {

Transformer of_catalogue(std::string_view id) {
  return catalogue_model(id, hardware::Catalogue::builtin(), "test")->imported.model;
}

Transformer changed(std::string_view id, const CacheMix& mix) {
  Transformer model = of_catalogue(id);
  EXPECT_TRUE(apply_cache_mix(mix, model));
  return model;
}

TEST(CacheMix, NothingChangesNothing) {
  const Transformer before = of_catalogue("llama-3-8b"), after = changed("llama-3-8b", {});
  EXPECT_EQ(after.decoder.kinds, before.decoder.kinds);
  EXPECT_EQ(after.decoder.order, before.decoder.order);
}

TEST(CacheMix, FewerHeadsShrinkTheCacheInProportion) {
  EXPECT_EQ(kv_values_per_token(changed("llama-3-8b", {.kv_heads = 2})),
            kv_values_per_token(of_catalogue("llama-3-8b")) / 4);
}

// llama-3-8b has 32 layers of 8 KV heads of 128: 2048 values a token and layer. With a window in three of four layers,
// 24 layers hold 1024 tokens and 8 hold all 8192: 2048 x (24 x 1024 + 8 x 8192).
TEST(CacheMix, LocalLayersHoldTheirWindow) {
  const Transformer model = changed("llama-3-8b", {.window = 1024, .local = 3, .period = 4});
  EXPECT_EQ(kv_values_per_sequence(model, 8192), 2048 * (24 * 1024 + 8 * 8192));
}

TEST(CacheMix, LayersThatShareHoldTheirCacheOnce) {
  const Transformer whole = of_catalogue("llama-3-8b"), half = changed("llama-3-8b", {.shared_by = 2});
  EXPECT_EQ(2 * kv_values_per_sequence(half, 4096), kv_values_per_sequence(whole, 4096));
  for (std::int64_t i = 1; i < half.decoder.layers(); i += 2) EXPECT_EQ(key_lender(half.decoder, i), i - 1);
}

TEST(CacheMix, LayersShareWithThoseOfTheirWindow) {
  const Transformer model = changed("llama-3-8b", {.window = 1024, .local = 1, .period = 2, .shared_by = 2});
  EXPECT_EQ(kv_values_per_sequence(model, 8192), 2048 * (8 * 1024 + 8 * 8192));
}

TEST(CacheMix, WithoutWindowsLayersHoldAllTokens) {
  Transformer windowed = of_catalogue("mistral-7b"), whole = of_catalogue("llama-3-8b");
  ASSERT_TRUE(remove_windows(windowed));
  EXPECT_FALSE(remove_windows(whole));
  // Both have 32 layers of 8 KV heads of 128.
  EXPECT_EQ(kv_values_per_sequence(windowed, 32768), kv_values_per_sequence(whole, 32768));
}

TEST(CacheMix, CompressedKeysAreNotMixed) {
  Transformer model = of_catalogue("deepseek-v3");
  EXPECT_EQ(apply_cache_mix({.kv_heads = 2}, model).error().where, "--kv-heads");
  EXPECT_EQ(apply_cache_mix({.window = 64}, model).error().where, "--window");
  EXPECT_EQ(apply_cache_mix({.shared_by = 2}, model).error().where, "--share-cache");
}

}  // namespace
}  // namespace assay::model

#include "assay/profile/compare/layer_reader.h"

#include <gtest/gtest.h>

namespace assay::compare {
namespace {

/// Products of the forward pass, in order; attention runs where `attends` says so.
struct Layers {
  std::vector<Product> products;
  std::vector<AttentionRun> attention;
  std::size_t calls = 0;

  void product(std::int64_t rows, std::int64_t inner, std::int64_t columns, std::int64_t experts = 0) {
    products.push_back({rows, inner, columns, experts, false, calls++});
  }
  void attends(std::int64_t heads, std::int64_t head_dim) {
    attention.push_back({calls++, {2, heads, 1024, head_dim}, {2, heads, 1024, head_dim}});
  }
};

RecoveredRun run_of(std::int64_t heads, std::int64_t head_dim) {
  RecoveredRun run;
  run.batch = 2;
  run.sequence = 1024;
  run.model.heads = heads;
  run.model.head_dim = head_dim;
  return run;
}

TEST(ReadLayers, KeysAndValuesOfOneCompressedVector) {
  // 16 heads of 128 + 64, values of 128; keys and values from 512 numbers, queries from 768; one dense layer, then
  // one with 32 experts, of which a token gets four, and a shared one.
  Layers layers;
  const auto attention = [&] {
    layers.product(2048, 1024, 768);
    layers.product(2048, 768, 16 * 192);
    layers.product(2048, 1024, 512 + 64);
    layers.product(2048, 512, 16 * (128 + 128));
    layers.attends(16, 192);
    layers.product(2048, 16 * 128, 1024);
  };
  attention();
  layers.product(2048, 1024, 4096);
  layers.product(2048, 1024, 4096);
  layers.product(2048, 4096, 1024);
  attention();
  layers.product(2048, 1024, 32);
  layers.product(4 * 2048, 1024, 2 * 640, 32);
  layers.product(4 * 2048, 640, 1024, 32);
  layers.product(2048, 1024, 640);
  layers.product(2048, 1024, 640);
  layers.product(2048, 640, 1024);
  layers.product(2048, 1024, 50000);
  RecoveredRun run = run_of(16, 192);
  ASSERT_TRUE(read_layers(layers.products, layers.attention, run));
  const RecoveredModel& model = run.model;
  EXPECT_EQ(model.hidden, 1024);
  EXPECT_EQ(model.kv_rank, 512);
  EXPECT_EQ(model.q_rank, 768);
  EXPECT_EQ(model.rope_dim, 64);
  EXPECT_EQ(model.value_dim, 128);
  EXPECT_EQ(model.experts, 32);
  EXPECT_EQ(model.experts_per_token, 4);
  EXPECT_EQ(model.intermediate, 640);
  EXPECT_EQ(model.shared, 640);
  EXPECT_EQ(model.dense_layers, 1);
  EXPECT_EQ(model.dense_width, 4096);
  EXPECT_EQ(model.vocabulary, 50000);
  const std::string text = model_argument(model, hardware::Catalogue::builtin());
  EXPECT_NE(text.find(R"("kv_lora_rank":512,"q_lora_rank":768)"), std::string::npos) << text;
  EXPECT_NE(text.find(R"("first_k_dense_replace":1)"), std::string::npos) << text;
}

TEST(ReadLayers, ValuesOfAnotherWidthNeedAProductThatMakesThem) {
  Layers layers;
  layers.product(2048, 1024, 16 * 192);
  layers.attends(16, 192);
  layers.product(2048, 16 * 128, 1024);
  layers.product(2048, 1024, 4096);
  layers.product(2048, 4096, 1024);
  RecoveredRun run = run_of(16, 192);
  EXPECT_FALSE(read_layers(layers.products, layers.attention, run));
}

}  // namespace
}  // namespace assay::compare

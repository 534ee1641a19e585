#include <gtest/gtest.h>

#include "assay/model/import/config_import.h"

namespace assay::model {
namespace {

Layer first_layer(std::string_view document) {
  const auto imported = import_config(document, "config.json");
  EXPECT_TRUE(imported) << (imported ? "" : imported.error().where + ": " + imported.error().what);
  return imported ? imported->model.decoder.kinds.front() : Layer{};
}
Activation function_of(std::string_view document) { return first_layer(document).feed_forward->function; }

TEST(Composition, FunctionsThatLibrariesWriteAsSeveralOperations) {
  EXPECT_EQ(function_of(R"({"model_type": "gpt2"})"), Activation::gelu_new);
  EXPECT_EQ(function_of(R"({"model_type": "gpt2", "activation_function": "gelu"})"), Activation::simple);
  EXPECT_EQ(function_of(R"({"model_type": "llama"})"), Activation::simple);
  EXPECT_EQ(function_of(R"({"model_type": "llama", "hidden_act": "quick_gelu"})"), Activation::quick_gelu);
  EXPECT_EQ(function_of(R"({"model_type": "llama", "hidden_act": "relu_squared"})"), Activation::relu2);
  EXPECT_EQ(function_of(R"({"model_type": "nemotron"})"), Activation::relu2);
}

TEST(Composition, JoinedProductsAreOfTheFamily) {
  const Layer phi = first_layer(R"({"model_type": "phi3"})"), llama = first_layer(R"({"model_type": "llama"})");
  EXPECT_EQ(phi.attention->joined, JoinedProjection::woven);
  EXPECT_TRUE(phi.feed_forward->joined);
  EXPECT_EQ(llama.attention->joined, JoinedProjection::none);
  EXPECT_FALSE(llama.feed_forward->joined);
  EXPECT_EQ(first_layer(R"({"model_type": "gpt2"})").attention->joined, JoinedProjection::split);
}

TEST(Composition, PartsOfHeadsThatTurn) {
  EXPECT_EQ(first_layer(R"({"model_type": "llama"})").attention->turned, 0);
  const Layer neox = first_layer(R"({"model_type": "gpt_neox", "hidden_size": 4096, "num_attention_heads": 32})");
  EXPECT_EQ(neox.attention->turned, 32);
  const Layer half =
      first_layer(R"({"model_type": "gpt_neox", "hidden_size": 4096, "num_attention_heads": 32, "rotary_pct": 0.5})");
  EXPECT_EQ(half.attention->turned, 64);
  const Layer phi = first_layer(R"({"model_type": "phi3"})");
  EXPECT_EQ(phi.attention->turned, phi.attention->head_dim);
}

}  // namespace
}  // namespace assay::model

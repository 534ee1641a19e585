#include "assay/model/import/composition.h"

#include <gtest/gtest.h>

#include "assay/model/import/config_import.h"
#include "assay/testing/catalogue.h"

namespace assay::model {
namespace {

using testing::catalogue;

Layer first_layer(std::string_view document) {
  const auto imported = import_config(document, "config.json", catalogue());
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

TEST(Composition, RotationsNormsAndLogitsOfTheFamily) {
  const auto read = [](std::string_view document) { return *import_config(document, "config.json", catalogue()); };
  const Transformer olmo = read(R"({"model_type": "olmo2"})").model, cohere = read(R"({"model_type": "cohere"})").model;
  EXPECT_EQ(olmo.decoder.kinds.front().attention->rotation, Rotation::wide);
  EXPECT_FALSE(olmo.norm.composed);
  EXPECT_EQ(cohere.decoder.kinds.front().attention->rotation, Rotation::wide_pairs);
  EXPECT_TRUE(cohere.norm.composed);
  EXPECT_EQ(cohere.logits, Logits::scaled);
  EXPECT_EQ(read(R"({"model_type": "gemma2"})").model.logits, Logits::capped);
  EXPECT_EQ(read(R"({"model_type": "gemma2", "final_logit_softcapping": null})").model.logits, Logits::plain);
  EXPECT_EQ(read(R"({"model_type": "gemma3_text", "final_logit_softcapping": 30.0})").model.logits, Logits::capped);
  EXPECT_EQ(read(R"({"model_type": "llama"})").model.logits, Logits::plain);
}

TEST(Composition, AFamilyIsOneEntryOfData) {
  hardware::Catalogue own = hardware::Catalogue::builtin();
  own.put("steps/code.toml", "[source.mine]\ntitle = \"t\"\n[family.llama]\nsource = \"mine\"\nlogits = \"capped\"\n");
  EXPECT_EQ(import_config(R"({"model_type": "llama"})", "config.json", own)->model.logits, Logits::capped);
  EXPECT_EQ(import_config(R"({"model_type": "gemma2"})", "config.json", own)->model.logits, Logits::plain);
}

TEST(Composition, FaultsOfTheFileNamePlaceRuleAndRemedy) {
  const auto read = read_family_codes(
      "[source.mine]\ntitle = \"t\"\n[family.lama]\nsource = \"mine\"\nturning = 2\nlogits = \"caped\"\nnorms = 1\n",
      "steps/code.toml", catalogue());
  ASSERT_FALSE(read);
  std::string all = read.error().where + " " + read.error().what + " " + read.error().hint;
  for (const Error& error : read.error().also) all += "\n" + error.where + " " + error.what + " " + error.hint;
  for (const char* part : {"family.lama", "unknown model type", "llama", "share of a head", "scaled, capped", "norms"})
    EXPECT_NE(all.find(part), std::string::npos) << part << " in " << all;
}

}  // namespace
}  // namespace assay::model

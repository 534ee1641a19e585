#include "assay/model/model_names.h"

#include <gtest/gtest.h>

#include <map>

#include "assay/base/toml.h"
#include "assay/model/model_catalogue.h"
#include "assay/testing/catalogue.h"

namespace assay::model {
namespace {

using testing::catalogue;

TEST(ModelNames, KnowsIdsAliasesAndRepositories) {
  const ModelNames names(catalogue());
  EXPECT_EQ(names.find("llama-3-8b"), "llama-3-8b");
  EXPECT_EQ(names.find("meta-llama/llama-2-7b-HF"), "llama-2-7b");
  EXPECT_EQ(names.find("Nemotron_3_Ultra"), "nemotron-3-ultra");
  EXPECT_EQ(names.find("llama3-8b"), "llama-3-8b");
  EXPECT_EQ(names.find("Llama 2 - 7B"), "llama-2-7b");
  EXPECT_EQ(names.find("llama-27b"), std::nullopt);
  EXPECT_EQ(names.find("Llama-3.1-8B-Instruct"), "llama-3.1-8b");
  EXPECT_EQ(names.find("LLAMA3.1_405B"), "llama-3.1-405b");
  EXPECT_EQ(names.find("llama-31-405b"), std::nullopt);
  EXPECT_EQ(names.find("deepseek-ai/DeepSeek-V2"), "deepseek-v2");  // not a few layers of it
}

// A name that two models claim would be decided by the alphabet.
TEST(ModelNames, NoNameIsClaimedTwice) {
  const ModelNames names(catalogue());
  for (const auto& [path, text] : catalogue().files("models/")) {
    const auto root = parse_toml(text, path);
    ASSERT_TRUE(root);
    EXPECT_EQ(names.find(model_id(path)), model_id(path));
    const Toml* aliases = root->find("aliases");
    for (std::size_t i = 0; aliases && i < aliases->items.size(); ++i)
      EXPECT_EQ(names.find(aliases->items[i].text), model_id(path)) << aliases->items[i].text;
    constexpr std::string_view hub = "https://huggingface.co/";
    const Toml* card = root->find("source")->find("card");
    if (const Toml* url = card ? card->find("url") : nullptr; url && url->text.starts_with(hub))
      EXPECT_EQ(names.find(std::string_view(url->text).substr(hub.size())), model_id(path)) << url->text;
  }
}

TEST(ModelNames, ACatalogueModelIsFoundByItsOtherNamesAndSaysSo) {
  const auto found = catalogue_model("Deci/DeciLM-7B", catalogue(), "models");
  ASSERT_TRUE(found);
  EXPECT_EQ(found->imported.model.id, "decilm-7b");
  ASSERT_FALSE(found->imported.notes.empty());
  EXPECT_EQ(found->imported.notes.back(), "\"Deci/DeciLM-7B\" is decilm-7b in the catalogue");
  EXPECT_FALSE(names_path("Deci/DeciLM-7B", catalogue()));
  EXPECT_TRUE(names_path("Deci/unknown", catalogue()));
}

}  // namespace
}  // namespace assay::model

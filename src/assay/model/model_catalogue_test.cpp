#include "assay/model/model_catalogue.h"

#include <gtest/gtest.h>

#include "assay/base/text.h"
#include "assay/testing/catalogue.h"

namespace assay::model {
namespace {

using testing::catalogue;

TEST(ModelCatalogue, HoldsManyModels) { EXPECT_GE(model_ids(catalogue()).size(), 60U); }

TEST(ModelCatalogue, EveryCountIsThePublishedOne) {
  for (const std::string& id : model_ids(catalogue())) {
    const auto entry = catalogue_model(id, catalogue(), "test");
    ASSERT_TRUE(entry) << id << ": " << entry.error().where << ": " << entry.error().what;
    const ParameterCounts counts = parameter_counts(entry->imported.model);
    EXPECT_TRUE(agrees(entry->published, counts))
        << id << ": counted " << human_count(comparable_total(counts, entry->published.scope)) << ", published "
        << entry->published.text;
  }
}

// Most totals are exact: a rounded one is no excuse for a model whose checkpoint can be counted.
TEST(ModelCatalogue, MostTotalsAreExact) {
  std::size_t exact = 0, all = 0;
  for (const std::string& id : model_ids(catalogue())) {
    const auto entry = catalogue_model(id, catalogue(), "test");
    ASSERT_TRUE(entry);
    ++all;
    exact += entry->published.half_unit == 0 ? 1U : 0U;
  }
  EXPECT_GT(2 * exact, all) << exact << " of " << all;
}

TEST(ModelCatalogue, AnUnknownIdHasNearNames) {
  const auto found = catalogue_model("llama-3-9b", catalogue(), "models");
  ASSERT_FALSE(found);
  EXPECT_EQ(found.error().kind, Error::Kind::missing);
  EXPECT_NE(found.error().hint.find("llama-3-8b"), std::string::npos) << found.error().hint;
}

TEST(ModelCatalogue, ReportsEveryFaultOfAFile) {
  const auto read = read_model(R"(id = "x"
wrong = 1
parameters = { value = "many", source = "nowhere" }
[source.card]
title = "t"
url = "u"
)",
                               "models/x.toml", false, catalogue());
  ASSERT_FALSE(read);
  std::string all = read.error().where + read.error().what;
  for (const Error& error : read.error().also) all += "\n" + error.where + " " + error.what;
  for (const char* part : {"wrong", "name", "\"many\"", "unknown source \"nowhere\"", "config"})
    EXPECT_NE(all.find(part), std::string::npos) << part << " not in\n" << all;
}

TEST(ModelCatalogue, RoundedTotalsAreComparedToTheirLastDigit) {
  ParameterCounts counts;
  const auto published = [](std::string_view text) {
    const std::string file = "id = \"x\"\nname = \"x\"\nparameters = { value = \"" + std::string(text) +
                             "\", source = \"s\" }\n[source.s]\ntitle = \"t\"\nurl = \"u\"\naccessed = 2026-11-01\n"
                             "[config]\nmodel_type = \"gpt2\"\n";
    const auto read = read_model(file, "x", false, catalogue());
    EXPECT_TRUE(read) << text;
    return read ? read->published : PublishedTotal{};
  };
  counts.total = 1'340'000'000;
  EXPECT_TRUE(agrees(published("1.3 B"), counts));
  EXPECT_FALSE(agrees(published("1.30 B"), counts));
  EXPECT_FALSE(agrees(published("1,340,000,001"), counts));
  EXPECT_TRUE(agrees(published("1,340,000,000"), counts));
  EXPECT_TRUE(agrees(published("~1.4 B"), counts));
}

TEST(WrittenModels, AreConfigurationsInAWord) {
  const hardware::Catalogue catalogue = hardware::Catalogue::builtin();
  const auto half = load_model(R"({"base":"llama-3-8b","num_hidden_layers":16})", catalogue, "MODEL");
  ASSERT_TRUE(half) << half.error().what;
  const auto whole = load_model("llama-3-8b", catalogue, "MODEL");
  EXPECT_EQ(half->model.decoder.layers(), 16);
  EXPECT_EQ(half->model.decoder.kinds, whole->model.decoder.kinds);
  EXPECT_EQ(half->model.vocabulary, whole->model.vocabulary);
  EXPECT_EQ(half->model.id, "custom llama-3-8b");
  const auto latent = load_model(
      R"({"model_type":"transformer","layers":4,"d_model":512,"vocabulary":1000,"heads":8,"head_dim":96,"kv_rank":64,)"
      R"("q_rank":128,"rope_dim":32,"value_dim":64,"d_ff":1024,"gated":true,"experts":16,"experts_per_token":2,)"
      R"("expert_width":256,"expert_groups":4,"groups_per_token":2,"leading_dense":1,"window":128,"full_every":2})",
      catalogue, "MODEL");
  ASSERT_TRUE(latent) << latent.error().what;
  const LayerStack& layers = latent->model.decoder;
  EXPECT_EQ(layers.kinds[layers.order[0]].attention->window, 128);
  EXPECT_EQ(layers.kinds[layers.order[1]].attention->window, 0);
  EXPECT_EQ(layers.kinds[layers.order[1]].attention->kv_rank, 64);
  EXPECT_EQ(layers.kinds[layers.order[1]].feed_forward->expert_groups, 4);
  EXPECT_EQ(layers.kinds[layers.order[0]].feed_forward->experts, 0);
  // The base may have the field under another name.
  const auto short_gpt = load_model(R"({"base":"gpt2-xl","num_hidden_layers":6})", catalogue, "MODEL");
  ASSERT_TRUE(short_gpt) << short_gpt.error().what;
  EXPECT_EQ(short_gpt->model.decoder.layers(), 6);
}

TEST(WrittenModels, SayWhatIsWrongWithThem) {
  const hardware::Catalogue catalogue = hardware::Catalogue::builtin();
  EXPECT_EQ(load_model(R"({"base":3})", catalogue, "MODEL").error().what, "base must be text, got a whole number");
  EXPECT_EQ(load_model(R"({"base":"llama-3-8c"})", catalogue, "MODEL").error().what, "unknown model \"llama-3-8c\"");
  EXPECT_FALSE(load_model("{", catalogue, "MODEL"));
  EXPECT_FALSE(load_model("{}", catalogue, "MODEL"));
}

}  // namespace
}  // namespace assay::model

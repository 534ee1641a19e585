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
                               "models/x.toml");
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
    const auto read = read_model(file, "x");
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

}  // namespace
}  // namespace assay::model

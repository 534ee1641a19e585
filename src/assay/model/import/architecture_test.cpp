#include "assay/model/import/architecture.h"

#include <gtest/gtest.h>

#include "assay/hardware/inheritance.h"
#include "assay/model/import/config_import.h"
#include "assay/testing/catalogue.h"

namespace assay::model {
namespace {

using testing::catalogue;

TEST(Architecture, EveryFileOfTheCatalogueLoads) {
  int files = 0;
  for (const auto& [path, text] : catalogue().files("architectures/")) {
    const auto read = architecture(hardware::file_stem(path), catalogue());
    EXPECT_TRUE(read) << (read ? "" : read.error().where + ": " + read.error().what);
    ++files;
  }
  EXPECT_GT(files, 100);
}

TEST(Architecture, NoTwoFilesClaimAName) {
  const auto names = family_names(catalogue());
  ASSERT_TRUE(names);
  for (const FamilyName& a : **names)
    for (const FamilyName& b : **names)
      if (&a != &b && a.id != b.id) {
        EXPECT_NE(a.model_type, b.model_type) << a.id << " and " << b.id;
        EXPECT_TRUE(a.architecture.empty() || a.architecture != b.architecture) << a.id << " and " << b.id;
      }
}

TEST(Architecture, AFamilyIsOneFile) {
  hardware::Catalogue own = hardware::Catalogue::builtin();
  own.put(
      "architectures/mine.toml",
      "base = \"llama\"\n[names]\nmine = \"MineForCausalLM\"\n[config]\nhidden_size = 1024\n"
      "num_key_value_heads = 8\ndense_layers = { count = 1 }\n[attention]\nwindow = \"i < dense_layers ? 128 : 0\"\n");
  const auto read = import_config(R"({"architectures": ["MineForCausalLM"], "num_hidden_layers": 3})", "c", own);
  ASSERT_TRUE(read) << read.error().what;
  EXPECT_EQ(read->family, "mine");
  EXPECT_EQ(read->model.d_model, 1024);
  EXPECT_EQ(read->model.decoder.kinds.size(), 2U);
  EXPECT_EQ(read->model.decoder.kinds[0].attention->window, 128);
  EXPECT_EQ(read->defaults.front(), "hidden_size not given: 1024");
  EXPECT_FALSE(import_config(R"({"model_type": "mine"})", "c", catalogue()));
}

TEST(Architecture, FaultsOfAFileNamePlaceAndRemedy) {
  hardware::Catalogue own = hardware::Catalogue::builtin();
  own.put("architectures/mine.toml",
          "base = \"llama\"\n[names]\nmine = \"\"\n[config]\nhiden = { sise = 1 }\nwidth = \"many\"\n"
          "[attention]\nhead = 3\nwindow = \"sliding_windw +\"\nchunk = \"hidden_sise\"\n[atention]\nheads = 1\n");
  const auto read = import_config(R"({"model_type": "mine"})", "c", own);
  ASSERT_FALSE(read);
  std::string all = read.error().where + " " + read.error().what + " " + read.error().hint;
  for (const Error& error : read.error().also) all += "\n" + error.where + " " + error.what + " " + error.hint;
  for (const char* part : {"architectures/mine.toml:5", "does not say what it is", "unknown key \"sise\"",
                           "expected a default", "no such field", "did you mean heads", "expected a name",
                           "unknown name \"hidden_sise\"", "did you mean hidden_size", "unknown key \"atention\""})
    EXPECT_NE(all.find(part), std::string::npos) << part << " in " << all;
}

}  // namespace
}  // namespace assay::model

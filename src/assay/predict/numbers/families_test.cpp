#include "assay/predict/numbers/families.h"

#include <gtest/gtest.h>

#include <set>

namespace assay::numbers {
namespace {

constexpr std::string_view small_family = R"(id = "new"
name = "New chips"
architectures = ["New 1"]
[source.start]
title = "assumed"
[training]
source = "start"
products = { start = 1, low = 0.5, high = 2 }
)";

TEST(Families, EachArchitectureOfTheCatalogueHasAtMostOne) {
  const Families families = *families_of(hardware::Catalogue::builtin());
  std::set<std::string> seen;
  for (const Family& family : families)
    for (const std::string& name : family.architectures) EXPECT_TRUE(seen.insert(name).second) << name;
  EXPECT_TRUE(seen.contains("Hopper"));
}

TEST(Families, AFileOfTheUserAddsOne) {
  hardware::Catalogue catalogue = hardware::Catalogue::builtin();
  catalogue.put("families/new.toml", std::string(small_family));
  const auto families = families_of(catalogue);
  ASSERT_TRUE(families) << families.error().where << ' ' << families.error().what;
  hardware::Chip chip;
  chip.architecture = "New 1";
  const Family* found = family_of(*families, chip);
  ASSERT_NE(found, nullptr);
  EXPECT_EQ(found->id, "new");
  EXPECT_FALSE(found->kernels);
  EXPECT_TRUE(found->training->at("products.slowdown").is_fitted());
  EXPECT_FALSE(found->training->contains("pointwise.slowdown"));
  chip.architecture = "New 2";
  EXPECT_EQ(family_of(*families, chip), nullptr);
}

TEST(Families, TheFileLaidOverLastHasAnArchitecture) {
  hardware::Catalogue catalogue = hardware::Catalogue::builtin();
  std::string text(small_family);
  text.replace(text.find("New 1"), 5, "Hopper");
  catalogue.put("families/new.toml", text);
  const Families families = *families_of(catalogue);
  hardware::Chip chip;
  chip.architecture = "Hopper";
  EXPECT_EQ(family_of(families, chip)->id, "new");
}

TEST(Families, AllFaultsOfAFileAreReported) {
  std::string text(small_family);
  text.replace(text.find("low = 0.5"), 9, "low = 3.0");
  text += "surprise = 1\n";
  const auto read = read_family(text, "families/other.toml");
  ASSERT_FALSE(read);
  EXPECT_EQ(read.error().also.size(), 2u);  // bounds, unknown key, and an id that is not the file's name
}

TEST(Families, AFamilyThatIsNamedHasToExist) {
  hardware::Catalogue catalogue = hardware::Catalogue::builtin();
  std::string text(catalogue.files("families/tpu.toml").front().second);
  text.replace(text.find("\"hopper\""), 8, "\"nobody\"");
  catalogue.put("families/tpu.toml", text);
  EXPECT_FALSE(families_of(catalogue));
}

}  // namespace
}  // namespace assay::numbers

#include "assay/lab/validate/rows/known_readings.h"

#include <gtest/gtest.h>

#include "assay/testing/catalogue.h"

namespace assay::validate {
namespace {

hardware::Catalogue with_readings(std::string text) {
  hardware::Catalogue catalogue = testing::catalogue();
  catalogue.put("validation/readings.toml", "[source.s]\ntitle = \"scripts\"\n" + std::move(text));
  return catalogue;
}

TEST(KnownReadings, RowsThatMatchAreRewrittenOrRefused) {
  const auto known = KnownReadings::make(with_readings(
      "[[reading]]\nsource = \"s\"\nwhere = { model = \"A*\", n_chips = \"16\" }\nset = { n_chips = \"4\" }\n"
      "[[reading]]\nsource = \"s\"\nwhere = { model = \"A*\", n_chips = \"4\", notes = \"*drafts*\" }\n"
      "refused = \"drafts\"\n"));
  ASSERT_TRUE(known);
  auto table = CsvTable::parse("model,n_chips,notes\nA1,16,with drafts\nA1,16,\nB,16,with drafts\n", "test.csv");
  ASSERT_TRUE(table);
  const std::vector<Why> refused = known->apply(*table);
  EXPECT_EQ(table->text(0, "n_chips"), "4");
  EXPECT_EQ(refused[0], "drafts");  // by what the first reading made of the row
  EXPECT_EQ(table->text(1, "n_chips"), "4");
  EXPECT_FALSE(refused[1]);
  EXPECT_EQ(table->text(2, "n_chips"), "16");
  EXPECT_FALSE(refused[2]);
}

TEST(KnownReadings, AnAbsentColumnMatchesNothing) {
  const auto known = KnownReadings::make(
      with_readings("[[reading]]\nsource = \"s\"\nwhere = { kv_precision = \"*\" }\nset = { model = \"B\" }\n"));
  ASSERT_TRUE(known);
  auto table = CsvTable::parse("model\nA\n", "test.csv");
  known->apply(*table);
  EXPECT_EQ(table->text(0, "model"), "A");
}

TEST(KnownReadings, AReadingNamesItsRowsAndSaysOneThing) {
  EXPECT_FALSE(KnownReadings::make(with_readings("[[reading]]\nsource = \"s\"\nrefused = \"drafts\"\n")));
  EXPECT_FALSE(KnownReadings::make(with_readings("[[reading]]\nsource = \"s\"\nwhere = { model = \"A\" }\n")));
}

}  // namespace
}  // namespace assay::validate

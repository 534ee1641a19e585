#include "assay/lab/validate/validation.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>
#include <array>

#include <array>
#include <cmath>

#include "assay/lab/validate/rows/csv.h"

namespace assay::validate {
namespace {

ValidationCase one(std::string group, double measured, double predicted, bool fitted = false) {
  return {"id", std::move(group), Seconds(measured), Seconds(predicted), "", fitted, 0.1};
}

TEST(Summary, ByHand) {
  // Errors +9 %, -20 %, 0, and one that was fitted.
  const std::vector<ValidationCase> cases{one("a", 10, 10.9), one("a", 20, 16), one("a", 30, 30), one("a", 1, 9, true)};
  const ValidationSummary s = summarise("a", cases);
  EXPECT_EQ(s.n, 3u);
  EXPECT_NEAR(s.mape, 0.29 / 3.0, 1e-12);
  EXPECT_NEAR(s.median, 0.09, 1e-12);
  EXPECT_NEAR(s.bias, 0.0, 1e-12);
  EXPECT_NEAR(s.p90, 0.178, 1e-12);  // between 0.09 and 0.2, at 0.8 of the way
  EXPECT_NEAR(s.within_10, 2.0 / 3.0, 1e-12);
  EXPECT_NEAR(s.within_20, 1.0, 1e-12);
  EXPECT_NEAR(s.rank.value(), 1.0, 1e-12);
  EXPECT_NEAR(s.covered.value(), 2.0 / 3.0, 1e-12);
}

TEST(Summary, RowsWithoutAnIntervalDoNotCountAsMissed) {
  std::vector<ValidationCase> cases{one("a", 10, 10.5), one("a", 10, 20), one("b", 10, 10)};
  cases[1].spread = cases[2].spread = 0.0;
  const std::vector<ValidationSummary> sums = summarise_groups(cases);
  ASSERT_EQ(sums.size(), 4u);  // a, b, all, mean of groups
  EXPECT_EQ(sums[0].covered, 1.0);
  EXPECT_EQ(sums[1].covered, std::nullopt);
  EXPECT_EQ(sums[2].covered, 1.0);
  EXPECT_EQ(sums[3].covered, 1.0);
}

TEST(Summary, RanksThatAreReversedCorrelateNegatively) {
  EXPECT_NEAR(summarise("", std::vector<ValidationCase>{one("", 1, 3), one("", 2, 2), one("", 3, 1)}).rank.value(),
              -1.0, 1e-12);
}

TEST(Summary, GroupsCountAlikeInTheMeanOfGroups) {
  std::vector<ValidationCase> cases{one("small", 1, 1.5)};
  for (int i = 0; i < 9; ++i) cases.push_back(one("large", 1, 1));
  const auto sums = summarise_groups(cases);
  ASSERT_EQ(sums.size(), 4u);
  EXPECT_EQ(sums[2].group, "all");
  EXPECT_NEAR(sums[2].mape, 0.05, 1e-12);
  EXPECT_EQ(sums[3].group, "mean of groups");
  EXPECT_NEAR(sums[3].mape, 0.25, 1e-12);
}

TEST(Split, IsByShapeAloneAndEven) {
  EXPECT_EQ(fold_of("4096x4096"), fold_of(std::string("4096") + "x4096", "calib"));
  EXPECT_EQ(fold_of("4096x4096", "test"), held_out);
  std::array<int, folds> sizes{};
  for (int i = 0; i < 1000; ++i) ++sizes[fold_of("shape " + std::to_string(i))];
  for (const int size : sizes) {
    EXPECT_GT(size, 150);
    EXPECT_LT(size, 250);
  }
}

TEST(Sets, AnUnknownOneAnswersWithTheNearest) {
  const auto set = validation_set("h200ops", "validate");
  ASSERT_FALSE(set);
  EXPECT_EQ(set.error().what, "unknown set \"h200ops\"");
  EXPECT_NE(set.error().hint.find("h200-ops"), std::string::npos);
}

TEST(Sets, ThirdPartyOnesNeedTheirData) {
  const hardware::Catalogue catalogue = hardware::Catalogue::builtin();
  for (const ValidationSet& set : validation_sets()) {
    if (!set.needs_data) continue;
    const auto result = set.run(ValidationInput(catalogue));
    ASSERT_FALSE(result);
    EXPECT_EQ(result.error().where, "--data");
    const auto missing = set.run(ValidationInput(catalogue, "no/such/directory"));
    ASSERT_FALSE(missing);
    EXPECT_EQ(missing.error().kind, Error::Kind::missing);
  }
}

TEST(Csv, QuotesCommentsAndColumns) {
  const auto table = CsvTable::parse("# about\na,b\n1,\"x, \"\"y\"\"\"\r\n\n2,z\n", "t.csv");
  ASSERT_TRUE(table);
  ASSERT_EQ(table->rows(), 2u);
  EXPECT_EQ(table->text(0, "b"), "x, \"y\"");
  EXPECT_EQ(table->number(1, "a"), 2.0);
  EXPECT_EQ(table->number(1, "b", -1.0), -1.0);
  EXPECT_EQ(table->text(0, "none"), "");
  EXPECT_EQ(table->line(0), 3);
}

TEST(Csv, WrongTablesAreRefusedWithTheirLine) {
  EXPECT_EQ(CsvTable::parse("a,b\n1\n", "t.csv").error().where, "t.csv:2");
  EXPECT_EQ(CsvTable::parse("a,a\n", "t.csv").error().what, "column \"a\" stands twice");
  EXPECT_FALSE(CsvTable::parse("", "t.csv"));
  EXPECT_FALSE(CsvTable::parse("# only a comment\n", "t.csv"));
  EXPECT_TRUE(CsvTable::parse("a,b\n1,\"no end", "t.csv"));
}

}  // namespace
}  // namespace assay::validate

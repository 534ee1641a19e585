#include "assay/predict/numbers/interval.h"

#include <gtest/gtest.h>

#include <cmath>

#include "assay/base/record_reader.h"

namespace assay::numbers {
namespace {

TEST(Interval, NothingIsKnownWithoutResiduals) { EXPECT_EQ(residual_spread({}, 0.8), 0.0); }

TEST(Interval, FourOfFiveOfNineGroupsAreTheEighthOfThem) {
  // Nine groups and the next one: 0.8 x 10 = 8, so the eighth smallest residual, whatever its sign.
  std::vector<Residual> residuals;
  for (int i = 1; i <= 9; ++i)
    residuals.push_back({std::to_string(i), (i % 2 ? 1.0 : -1.0) * std::log(1.0 + 0.1 * i), {}, {}});
  EXPECT_NEAR(residual_spread(residuals, 0.8), 0.8, 1e-12);
}

TEST(Interval, ALargeGroupWeighsNoMoreThanASmallOne) {
  std::vector<Residual> residuals;
  for (int i = 0; i < 100; ++i) residuals.push_back({"large", std::log(1.5), {}, {}});
  for (int i = 0; i < 18; ++i) residuals.push_back({std::to_string(i), std::log(1.0 + 0.01 * i), {}, {}});
  // Nineteen groups of which the large one lies farthest: 0.8 x 20 = 16 of them lie within 0.15.
  EXPECT_NEAR(residual_spread(residuals, 0.8), 0.15, 1e-12);
}

TEST(Interval, FewGroupsTakeTheWidestResidual) {
  EXPECT_NEAR(residual_spread({{"a", 0.1, {}, {}}, {"b", -0.3, {}, {}}}, 0.8), std::expm1(0.3), 1e-12);
}

TEST(Interval, ClassesWithFewGroupsAreLeftToWiderOnes) {
  std::vector<Residual> residuals;
  for (int i = 0; i < 6; ++i) {
    const std::string family = i < 5 ? "old" : "new";
    residuals.push_back({std::to_string(i), 0.1, {"dense, " + family, "dense"}, {{"chips", 8.0 * (i + 1)}}, "Hopper"});
  }
  const std::vector<IntervalClass> classes = interval_classes(residuals, 0.8);
  ASSERT_EQ(classes.size(), 2u);
  const IntervalClass* found = interval_of(classes, residuals.back().classes);
  ASSERT_NE(found, nullptr);
  EXPECT_EQ(found->name, "dense");
  EXPECT_EQ(found->groups, 6);
  EXPECT_TRUE(found->beyond(std::vector<Coordinate>{{"chips", 48.0}}, "Hopper").empty());
  EXPECT_EQ(found->beyond(std::vector<Coordinate>{{"chips", 64.0}}, "Hopper"), std::vector<std::string>{"chips"});
  EXPECT_EQ(found->beyond({}, "Ada Lovelace"), std::vector<std::string>{"hardware"});
}

TEST(Interval, ASourceOnAChipWeighsAsOneHoweverManyGroupsItHas) {
  // Twenty good groups of one source, and one of each of five others that are twice as far off.
  std::vector<Residual> residuals;
  const auto add = [&](const std::string& group, double off, const std::string& unit) {
    residuals.push_back({group, std::log1p(off), {"all"}, {}, "Hopper", unit});
  };
  for (int i = 0; i < 20; ++i) add("good " + std::to_string(i), 0.1, "known on h100");
  for (int i = 0; i < 5; ++i) add("far " + std::to_string(i), 0.2 + 0.01 * i, "source " + std::to_string(i));
  // 5.4 of six units, the most that is asked for: the last of the far ones.
  EXPECT_NEAR(residual_spread(residuals, 0.8), 0.24, 1e-12);
  for (Residual& one : residuals) one.unit.clear();
  EXPECT_NEAR(residual_spread(residuals, 0.8), 0.2, 1e-12);  // 20.8 of 25 groups
}

TEST(Interval, TheTextReadsBack) {
  const std::vector<IntervalClass> classes = {
      {"dense", 0.125, 12, 5, {{"chips", 1, 64}, {"sequence", 512, 8192}}, {"Ampere"}}, {"experts", 0.3, 7, 6, {}}};
  const auto read = [](const std::string& text) {
    RecordFile file{.name = "test.toml"};
    std::vector<IntervalClass> found;
    const auto whole = read_record("[source.fit]\ntitle = \"t\"\n" + text, file, [&](RecordReader& reader) {
      reader.sources();
      read_intervals(reader, "interval", found);
    });
    return whole ? Result<std::vector<IntervalClass>>(found) : tl::unexpected<Error>(whole.error());
  };
  const auto back = read(intervals_text(classes, "interval", "fit"));
  ASSERT_TRUE(back) << back.error().what;
  ASSERT_EQ(back->size(), 2u);
  EXPECT_EQ((*back)[0].name, "dense");
  EXPECT_DOUBLE_EQ((*back)[0].spread, 0.125);
  ASSERT_EQ((*back)[0].seen.size(), 2u);
  EXPECT_DOUBLE_EQ((*back)[0].seen[1].high, 8192);
  EXPECT_EQ((*back)[0].hardware, std::vector<std::string>{"Ampere"});
  const auto wrong = read("[interval.1]\nsource = \"fit\"\nspread = 0.1\nseen = { chips = 3 }\n");
  ASSERT_FALSE(wrong);
  EXPECT_EQ(wrong.error().also.size(), 3u);  // class, rows, groups, and what was seen
}

}  // namespace
}  // namespace assay::numbers

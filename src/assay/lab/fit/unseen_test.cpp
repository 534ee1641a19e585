#include "assay/lab/fit/unseen.h"

#include <gtest/gtest.h>

#include "assay/predict/numbers/interval.h"

namespace assay::validate {
namespace {

/// Ten chips with a group each, off by 1 to 10 %.
std::vector<ValidationCase> ten_chips() {
  std::vector<ValidationCase> cases;
  for (int i = 1; i <= 10; ++i) {
    const std::string chip = "chip-" + std::to_string(i);
    ValidationCase one{"t-" + std::to_string(i), "group " + chip, 1_s, (1.0 + 0.01 * i) * 1_s};
    one.without = {{"dense"}, chip};
    cases.push_back(one);
  }
  return cases;
}

TEST(Unseen, AChipGetsTheIntervalOfAllOthers) {
  std::vector<ValidationCase> cases = ten_chips();
  cases.back().predicted = AnyQuantity(2_s);
  cases.front().spread = 0.5;
  widen_to_unseen(cases);
  // Nine others: 0.8 x 10 = 8 of them are within 8 % of what was measured, or within 9 % without one of these.
  EXPECT_NEAR(cases.back().spread, 0.08, 1e-9);
  EXPECT_FALSE(cases.back().covered());
  EXPECT_NEAR(cases[4].spread, 0.09, 1e-9);
  EXPECT_TRUE(cases[4].covered());
  EXPECT_EQ(cases.front().spread, 0.5);  // never less than that of its class
}

TEST(Unseen, TheFileReadsBackAndWidensWhatHasNoRow) {
  const std::vector<ValidationCase> cases = ten_chips();
  const auto [path, text] = unseen_file_of(cases, "training");
  EXPECT_EQ(path, "steps/unseen/training-chip.toml");
  hardware::Catalogue catalogue = hardware::Catalogue::builtin();
  catalogue.put(path, text);
  const auto read = numbers::unseen_intervals(catalogue, "training", "chip");
  ASSERT_TRUE(read) << read.error().what;
  EXPECT_EQ(read->known.size(), 10u);
  EXPECT_NEAR(read->classes.at(0).spread, 0.09, 1e-9);
  numbers::IntervalClass own;
  own.name = "dense", own.spread = 0.05;
  const std::string names[] = {"dense"};
  const auto of = [&](std::string_view chip) {
    const numbers::AskedAbout about[] = {{&*read, chip}};
    return *numbers::interval_basis({own}, names, "steps/training.toml", about);
  };
  EXPECT_EQ(of("chip-1").file, "steps/training.toml");
  EXPECT_EQ(of("").of.spread, 0.05);
  EXPECT_NEAR(of("new-chip").of.spread, 0.09, 1e-9);
  EXPECT_NE(of("new-chip").file.find("no measured row is of this chip"), std::string::npos);
}

// Throughputs can be asked without their chip, but have no intervals of their own.
TEST(Unseen, SetsWithoutSuchFitsAreNamed) {
  const hardware::Catalogue catalogue = hardware::Catalogue::builtin();
  const auto kernels =
      left_out_results("h200-ops", catalogue, std::nullopt, [](const hardware::Catalogue&) { return Ask(); });
  ASSERT_FALSE(kernels);
  EXPECT_NE(kernels.error().what.find("inference-throughput"), std::string::npos);
  const auto intervals = left_out_results("inference-throughput", catalogue, std::nullopt);
  ASSERT_FALSE(intervals);
  EXPECT_EQ(intervals.error().what, "training, inference-tpot and inference-ttft have intervals for what has no row");
}

}  // namespace
}  // namespace assay::validate

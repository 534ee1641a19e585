// Sizes, fronts and sensitivities of `assay train`, against the same command with one thing changed by hand.
#include <gtest/gtest.h>

#include <cmath>

#include "assay/ask/verbs/request.h"
#include "assay/base/text.h"

namespace assay::verbs::train {
namespace {

report::Response ask_line(const std::string& line) {
  const hardware::Catalogue catalogue = hardware::Catalogue::builtin();
  const auto words = split_words(line);
  const auto request = parse_request(*words);
  EXPECT_TRUE(request) << line;
  auto response = ask(*request, {catalogue});
  EXPECT_TRUE(response) << line << ": " << (response ? "" : response.error().what);
  return response ? std::move(*response) : report::Response{};
}

double number(const report::Response& response, const std::string& path) {
  const auto value = report::find_path(report::Value{response.results}, path);
  EXPECT_TRUE(value) << path;
  return value ? report::numeric(*value).value_or(NAN) : NAN;
}

const std::string run = "train llama-3-8b --batch 64seq --seq 4096 --tokens 1T --recompute full --cp 1 ";

TEST(TrainSizes, EverySizeIsWhatItsOwnSearchFinds) {
  const report::Response all = ask_line(run + "--on h100-sxm:8..32 --pareto");
  const std::string sizes[] = {"8", "16", "24", "32"};
  for (std::size_t i = 0; i < std::size(sizes); ++i) {
    const report::Response alone = ask_line(run + "--on h100-sxm:" + sizes[i]);
    const std::string row = "sizes[" + std::to_string(i) + "].";
    EXPECT_EQ(number(all, row + "step_time"), number(alone, "step_time.estimate"));
    EXPECT_EQ(number(all, row + "training_time"), number(alone, "training_time.estimate"));
    EXPECT_EQ(number(all, row + "cost"), number(alone, "cost"));
  }
}

TEST(TrainSizes, ObjectivesPickTheBestOfAllSizes) {
  const std::string range = run + "--on h100-sxm:8..32 ";
  const report::Response fast = ask_line(range), cheap = ask_line(range + "--objective cost");
  double least_time = HUGE_VAL, least_cost = HUGE_VAL;
  for (int i = 0; i < 4; ++i) {
    const std::string row = "sizes[" + std::to_string(i) + "].";
    least_time = std::min(least_time, number(fast, row + "training_time"));
    least_cost = std::min(least_cost, number(fast, row + "cost"));
  }
  EXPECT_EQ(number(fast, "training_time.estimate"), least_time);
  EXPECT_EQ(number(cheap, "cost"), least_cost);
  // A deadline between the times of 8 and 16 chips wants 16, whether they are all told apart or not.
  const double deadline = std::sqrt(number(fast, "sizes[0].training_time") * number(fast, "sizes[1].training_time"));
  const std::string until = " --objective chips --deadline " + exact_number(deadline) + "s";
  EXPECT_EQ(number(ask_line(range + until), "chips"), 16);
  EXPECT_EQ(number(ask_line(run + "--on h100-sxm:8..32:1" + until + " --dp 1"), "chips"), 16);
}

TEST(TrainSizes, LongRangesAreRefinedAroundTheChoice) {
  const std::string what = run + "--objective cost --on h100-sxm:";
  const report::Response all = ask_line(what + "8..512");
  const auto chosen = static_cast<std::int64_t>(number(all, "chips"));
  for (const std::int64_t near : {chosen - 8, chosen + 8})
    if (near >= 8 && near <= 512)
      EXPECT_LE(number(all, "cost"), number(ask_line(what + std::to_string(near)), "cost")) << near;
}

TEST(WaysOut, EachFitsAndIsTheBestOfItsKind) {
  const std::string too_large = "train llama-3-8b --batch 8seq --on rtx-4090:8 --tp 8 --seq ";
  const report::Response response = ask_line(too_large + "131072");
  EXPECT_EQ(response.outcome, report::Outcome::infeasible);
  const auto ways = report::find_path(report::Value{response.results}, "ways_out");
  ASSERT_TRUE(ways && ways->items());
  int sequences = 0, clusters = 0;
  for (const report::Value& row : *ways->items()) {
    const auto change = report::find_path(row, "change");
    ASSERT_TRUE(change);
    const std::string text = report::scalar_text(*change);
    const auto with = [&](const std::string& option, const std::string& line) {
      return ask_line(line).outcome == report::Outcome::ok ? option : std::string();
    };
    if (text.starts_with("--seq ")) {
      ++sequences;
      const int longest = std::stoi(text.substr(6));
      EXPECT_EQ(with(text, too_large + std::to_string(longest)), text);
      EXPECT_EQ(with(text, too_large + std::to_string(longest + 131072 / 64)), "");
    }
    if (text.starts_with("--on ")) ++clusters;
  }
  EXPECT_EQ(sequences, 1);
  EXPECT_LE(clusters, 1);
}

TEST(TrainSizes, SaysWhenNoSizeMeetsTheDeadline) {
  const report::Response none = ask_line(run + "--on h100-sxm:8..16 --objective chips --deadline 1day");
  EXPECT_EQ(none.outcome, report::Outcome::infeasible);
  EXPECT_NE(none.headline.find("no cluster meets --deadline 24 h"), std::string::npos) << none.headline;
}

const std::string fixed =
    "train llama-3-8b --on h100-sxm:16 --batch 64seq --seq 4096 --dp 1 --fsdp 8 --tp 2 --pp 1 --cp 1 --zero 0 "
    "--micro-batch 2 --recompute full --residual sequence ";

// An elasticity is the slope between two runs whose chip was changed by hand.
TEST(TrainSensitivity, AgreesWithTheChipChangedByHand) {
  const report::Response base = ask_line(fixed + "--sensitivity");
  ASSERT_EQ(number(base, "search.feasible"), 1);
  const double hbm = number(base, "sensitivity[1].value"), step = 0.01;
  const auto at = [&](double factor, const char* which) {
    return number(ask_line(fixed + "--set memory.hbm.bandwidth=" + exact_number(hbm * factor) + "B/s"), which);
  };
  for (const auto& [key, which] :
       {std::pair{"elasticity", "step_time.estimate"}, std::pair{"lower_elasticity", "step_time.lower"}}) {
    const double slope = std::log(at(std::exp(step), which) / at(std::exp(-step), which)) / (2.0 * step);
    EXPECT_NEAR(number(base, std::string("sensitivity[1].") + key), slope, 1e-9);
  }
  EXPECT_NEAR(number(base, "sensitivity[1].step_time_if_doubled"), at(2.0, "step_time.estimate"), 1e-9);
}

TEST(TrainSensitivity, TheLimiterTurnsAtTheBreakEven) {
  const report::Response base = ask_line(fixed + "--sensitivity");
  const auto limiter_at = [&](double value) {
    const report::Response there = ask_line(fixed + "--set memory.hbm.bandwidth=" + exact_number(value) + "B/s");
    return report::scalar_text(*report::find_path(report::Value{there.results}, "limiter"));
  };
  const double turns = number(base, "sensitivity[1].break_even");
  const std::string now = report::scalar_text(*report::find_path(report::Value{base.results}, "limiter"));
  EXPECT_EQ(limiter_at(turns * 1.002), now);
  EXPECT_EQ(limiter_at(turns),
            report::scalar_text(*report::find_path(report::Value{base.results}, "sensitivity[1].limiter_then")));
  EXPECT_NE(limiter_at(turns), now);
}

}  // namespace
}  // namespace assay::verbs::train

// The solver against numbers known in closed form, through the same call that a front end makes.
#include <gtest/gtest.h>

#include "assay/ask/verbs/request.h"

namespace assay::verbs::solve {
namespace {

Result<report::Response> solve(const std::string& line) {
  const hardware::Catalogue catalogue = hardware::Catalogue::builtin();
  const auto words = split_words("solve " + line);
  if (!words) return tl::unexpected<Error>(words.error());
  const auto request = parse_request(*words);
  if (!request) return tl::unexpected<Error>(request.error());
  return ask(*request, Context{catalogue});
}

double number(const report::Response& response, const char* path) {
  const auto value = report::find_path(report::Value(response.results), path);
  return value ? report::numeric(*value).value_or(-1.0) : -1.0;
}

TEST(Solve, InvertsTheCriticalBatchOfAProduct) {
  // The roofline's own knee for these sizes rounds up to 256.
  const auto found = solve("roofline 'bf16[?,8192] @ bf16[8192,8192]' --on tpu-v5e --until compute-bound");
  ASSERT_TRUE(found) << found.error().what;
  EXPECT_EQ(number(*found, "value"), 256);
  EXPECT_EQ(number(*found, "nearest_that_fails"), 255);
}

TEST(Solve, OptionsOfTheCommandAreItsOwnWhereverItsOwnStand) {
  const std::string command = "serve llama-3-8b --on h100-sxm:1 --prompt 1000 --batch 8 --output ";
  const auto behind = solve(command + "? --until 'memory.fits=yes' --from 100"),
             before = solve("--all --from 100 --until 'memory.fits=yes' " + command + "?");
  ASSERT_TRUE(behind) << behind.error().what;
  ASSERT_TRUE(before) << before.error().what;
  // What the command itself refuses is no answer: the context of the model holds 8192 tokens.
  EXPECT_EQ(number(*behind, "value"), 7192);
  EXPECT_EQ(number(*before, "value"), 7192);
}

TEST(Solve, InvertsAScalingThreshold) {
  const std::string layer = "scaling --sizes D=8192,F=32768 --on tpu-v5p:16x16x16 ";
  const auto fsdp = solve(layer + "--fsdp 4096 --batch ? --until compute-bound");
  ASSERT_TRUE(fsdp) << fsdp.error().what;
  EXPECT_EQ(number(*fsdp, "value"), 3481600);  // 850 x 4096
}

TEST(Solve, FindsTheLargestValueOfACollective) {
  const auto found =
      solve("collective all-gather --bytes ?MB --on tpu-v5p:16x16x16 --axes X --until 'bandwidth_time<1ms'");
  ASSERT_TRUE(found) << found.error().what;
  EXPECT_EQ(number(*found, "value"), 179);  // 180 GB/s for a millisecond are 180 MB, which is not below
}

TEST(Solve, TakesTheWholeCommandInQuotes) {
  const auto found = solve(
      "'scaling --sizes D=8192,F=32768 --on tpu-v5p:16x16x16 --tp ?' --until "
      "tensor_parallel.within_limit=yes");
  ASSERT_TRUE(found) << found.error().what;
  EXPECT_EQ(number(*found, "value"), 8);  // of the powers of two that divide 4096, the last below 12.85
}

TEST(Solve, SaysThatNoValueMeetsTheCondition) {
  const auto found = solve("roofline 'dot(bf16[?])' --on tpu-v5e --until compute-bound --to 1M");
  ASSERT_TRUE(found) << found.error().what;
  EXPECT_EQ(found->outcome, report::Outcome::infeasible);
}

TEST(Solve, RefusesWhatItCannotSolve) {
  for (const char* line : {
           "roofline 'dot(bf16[8])' --on tpu-v5e --until compute-bound",           // no unknown
           "roofline 'bf16[?,?] @ bf16[?,8]' --on tpu-v5e --until compute-bound",  // three
           "roofline 'dot(bf16[?])' --on tpu-v5e",                                 // no condition
           "roofline 'dot(bf16[?])' --on tpu-v5e --until sometimes",               // no condition known
           "roofline 'dot(bf16[?])' --on tpu-v5e --until 'tiem.lower<1ms'",        // no such key
           "roofline 'dot(bf16[?])' --on tpu-v5e --until 'time.lower<1MB'",        // a unit of another kind
           "roofline 'dot(bf16[?])' --on tpu-v5e --until 'time.lower<soon'",       // no number
           "roofline 'dot(bf16[?])' --on tpu-v99 --until compute-bound",           // the command itself is refused
           "solve roofline '?' --on tpu-v5e --until compute-bound",                // of itself
       })
    EXPECT_FALSE(solve(line)) << line;
}

TEST(Solve, KeysThatHavePartsOrStandElsewhereAreNamed) {
  const std::string serve = "serve llama-3-8b --on h100-sxm:1 --batch ? --until ";
  const auto parts = solve(serve + "'decode.step_time>10ms'");
  ASSERT_FALSE(parts);
  EXPECT_NE(parts.error().hint.find("decode.step_time.estimate"), std::string::npos) << parts.error().hint;
  const auto elsewhere = solve(serve + "'step_time>10ms'");
  ASSERT_FALSE(elsewhere);
  EXPECT_NE(elsewhere.error().hint.find("decode.step_time.estimate"), std::string::npos) << elsewhere.error().hint;
  EXPECT_TRUE(solve(serve + "'decode.step_time.estimate>10ms'"));
}

}  // namespace
}  // namespace assay::verbs::solve

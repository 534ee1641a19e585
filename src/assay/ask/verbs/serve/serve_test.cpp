// What people ask `assay serve`, through the same call that a front end makes; arithmetic by hand in the comments.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "assay/ask/report/response.h"
#include "assay/ask/verbs/request.h"
#include "assay/testing/sampling.h"

namespace assay::verbs::serve {
namespace {

Result<report::Response> ask_line(const std::string& line, bool picture = false) {
  static const hardware::Catalogue catalogue = hardware::Catalogue::builtin();
  const auto words = split_words("serve " + line);
  if (!words) return tl::unexpected<Error>(words.error());
  auto request = parse_request(*words);
  if (!request) return tl::unexpected<Error>(request.error());
  if (picture) request->want_picture();
  return ask(*request, Context{catalogue});
}

report::Value value_at(const report::Response& response, const std::string& path) {
  const auto found = report::find_path(report::Value(response.results), path);
  EXPECT_TRUE(found) << path;
  return found.value_or(report::Value(0.0));
}
double number(const report::Response& response, const std::string& path) {
  return report::numeric(value_at(response, path)).value_or(-1.0);
}
std::string formats_compared(const report::Response& response) {
  const report::Value rows = value_at(response, "comparison");
  std::string text;
  for (const report::Value& row : *rows.items()) text += report::scalar_text(*row.find("formats")) + "; ";
  return text;
}
bool says(const report::Response& response, std::string_view text) {
  return std::any_of(response.notes.begin(), response.notes.end(),
                     [&](const std::string& note) { return note.find(text) != note.npos; });
}

TEST(Serve, APrefixIsAShareOrTokensAndOneIsNeither) {
  const std::string run = "llama-3-8b --on h100-sxm:1 --prompt 1000 --output 100 --batch 1 --prefix-hit ";
  for (const auto& [text, fresh] : {std::pair{"0.5", 500.0}, std::pair{"50%", 500.0}, std::pair{"600", 400.0},
                                    std::pair{"1.0", 1.0}, std::pair{"100%", 1.0}, std::pair{"1000", 1.0}}) {
    const auto answer = ask_line(run + text);
    ASSERT_TRUE(answer) << text;
    EXPECT_EQ(number(*answer, "prefill.fresh_tokens"), fresh) << text;
    EXPECT_TRUE(says(*answer, "--prefix-hit: ")) << text;
  }
  for (const char* text : {"1", "1001", "110%", "-0.1", "most"}) EXPECT_FALSE(ask_line(run + text)) << text;
}

TEST(Serve, SeveralSizesAreAnsweredForTheFirstThatServes) {
  // 131.4 GiB of weights and 0.39 GiB of cache for each sequence of 1280 tokens; two chips have 2 x 75.7 GiB besides
  // what the runtime keeps: 16 sequences fit and 64 do not.
  const auto answer = ask_line("llama-3-70b --on h100-sxm:1..8 --prompt 1024 --output 256 --batch 16");
  ASSERT_TRUE(answer) << answer.error().what;
  EXPECT_EQ(number(*answer, "chips"), 2);
  EXPECT_EQ(value_at(*answer, "comparison").items()->size(), 8u);
  EXPECT_EQ(std::count_if(answer->notes.begin(), answer->notes.end(),
                          [](const std::string& note) { return note.starts_with("kernels and collectives"); }),
            1);
  const auto tight = ask_line("llama-3-70b --on h100-sxm:1..8 --prompt 1024 --output 256 --batch 64");
  EXPECT_EQ(number(*tight, "chips"), 3);
  const auto listed = ask_line("llama-3-8b --on h100-sxm:1,b200:1 --batch 8");
  EXPECT_EQ(value_at(*listed, "comparison").items()->size(), 2u);
  EXPECT_FALSE(ask_line("llama-3-8b --on h100-sxm:1,tpu-v99:1 --batch 8"));
}

TEST(Serve, PicturesShowTheFormatsThatAreCompared) {
  const auto answer = ask_line("llama-3-8b --on h100-sxm:1 --formats fp8,int4", true);
  ASSERT_TRUE(answer) << answer.error().what;
  ASSERT_TRUE(answer->picture);
  std::string formats = formats_compared(*answer);
  // The chip multiplies in fp8, not in int4.
  EXPECT_NE(formats.find("fp8; "), std::string::npos) << formats;
  EXPECT_NE(formats.find("weights int4, cache int8, products bf16; "), std::string::npos) << formats;
  // Published in mxfp4 with bf16: other weights are other bytes.
  const auto quantised = ask_line("gpt-oss-120b --on h100-sxm:4 --batch 8 --formats bf16");
  formats = formats_compared(*quantised);
  EXPECT_NE(formats.find("bf16; "), std::string::npos) << formats;
  EXPECT_NE(formats.find("weights mxfp4"), std::string::npos) << formats;
}

TEST(Serve, TwoDirectionsBesideExpertsNameWhatSplitsAsMuch) {
  const auto answer = ask_line("mixtral-8x7b --on h100-sxm:8 --ep 2 --weights-2d 2 --batch 16");
  ASSERT_FALSE(answer);
  EXPECT_NE(answer.error().hint.find("--ep 4"), std::string::npos) << answer.error().hint;
}

TEST(Serve, ATimePerTokenIsFilledUpToTheLastSequence) {
  const std::string run = "llama-3-70b --on h100-sxm:8 --prompt 1024 --output 256 ";
  const auto best = ask_line(run + "--tpot 30ms");
  ASSERT_TRUE(best);
  const double batch = number(*best, "batch"), dp = number(*best, "strategy.dp");
  EXPECT_LE(number(*best, "served.time_per_token"), 0.030);
  const std::string same = run + "--tp " + std::to_string(static_cast<int>(number(*best, "strategy.tp"))) + " --dp " +
                           std::to_string(static_cast<int>(dp)) + " --pp " +
                           std::to_string(static_cast<int>(number(*best, "strategy.pp"))) + " --batch ";
  const auto more = ask_line(same + std::to_string(static_cast<int>(batch + dp)));
  EXPECT_GT(number(*more, "served.time_per_token"), 0.030);
}

TEST(Serve, ChipsWhoseKernelsNobodyMeasuredHaveADriverToo) {
  const auto measured = ask_line("llama-3-8b --on h100-sxm:1 --batch 1"),
             other = ask_line("llama-3-8b --on mi300x:1 --batch 1");
  ASSERT_TRUE(measured && other);
  EXPECT_GT(number(*other, "memory.driver_context"), number(*measured, "memory.driver_context"));
  // The textbook's hardware keeps nothing.
  const auto bare = ask_line("llama-3-8b --on mi300x:1 --batch 1 --set efficiency.memory=1");
  EXPECT_FALSE(report::find_path(report::Value(bare->results), "memory.driver_context"));
}

TEST(Serve, BoundsLieBelowEveryStep) {
  for (const char* model : {"llama-3-8b", "gemma-4-e2b", "flan-t5-xxl", "deepseek-v2-lite", "mixtral-8x7b",
                            "gopher-280b", "gpt2", "bart-large"})
    for (const char* rest : testing::sampled<const char*>({" --batch 1", " --batch 64", " --batch 8 --compute fp8"})) {
      const auto answer = ask_line(model + std::string(" --on h100-sxm:16 --prompt 128 --output 64") + rest);
      ASSERT_TRUE(answer) << model << answer.error().what;
      const double bound = number(*answer, "bounds.step_time");
      EXPECT_LE(bound, number(*answer, "decode.kernels_at_their_rooflines")) << model << rest;
      EXPECT_LE(bound, number(*answer, "decode.step_time.lower")) << model << rest;
      EXPECT_GT(bound, 0.0);
    }
}

TEST(Serve, WeightsAreReadAsTheyAreStored) {
  // 7.505e9 weights of layers and head in bf16: 15.0 GB at 3.35 TB/s take 4.48 ms, whatever products are made in.
  const std::string run = "llama-3-8b --on h100-sxm:1 --prompt 1024 --output 256 --batch 8 --compute fp8";
  const auto cast = ask_line(run), stored = ask_line(run + " --weights fp8");
  ASSERT_TRUE(cast && stored);
  EXPECT_GT(number(*cast, "decode.step_time.lower"), 4.48e-3);
  EXPECT_GT(number(*cast, "decode.memory_time"), 4.48e-3);
  EXPECT_TRUE(says(*cast, "--weights fp8 stores them"));
  EXPECT_LT(number(*stored, "decode.step_time.lower"), 2.7e-3);
  EXPECT_FALSE(says(*stored, "stores them"));
}

TEST(Serve, WhatWasMeasuredReplacesTheEstimateEverywhere) {
  const std::string run = "llama-3-8b --on h100-sxm:1 --prompt 1024 --output 256 --batch 8";
  const auto answer = ask_line(run + " --step-time 50ms --prefill-time 1s --vary batch=8 --chunk 512");
  ASSERT_TRUE(answer) << answer.error().what;
  EXPECT_EQ(number(*answer, "decode.step_time.estimate"), 0.05);
  EXPECT_DOUBLE_EQ(number(*answer, "decode.tokens_per_second"), 160.0);
  EXPECT_EQ(number(*answer, "prefill.time.estimate"), 1.0);
  EXPECT_DOUBLE_EQ(number(*answer, "prefill.tokens_per_second"), 1024.0);
  EXPECT_DOUBLE_EQ(number(*answer, "sweep[0].step_time"), 0.05);
  // A chunk is half of a prompt: two of 258 steps of each of 8 sequences take half of the prefill's time longer.
  const double served = number(*answer, "served.time_per_token");
  EXPECT_NEAR(number(*answer, "served.mixed_step_time.estimate"), 0.55, 0.001);
  EXPECT_NEAR(number(*answer, "served.requests_per_second"), 8.0 / (258 * 0.05 + 8 * 1.0), 0.002);
  EXPECT_DOUBLE_EQ(number(*answer, "pareto[0].latency"), served);
  EXPECT_DOUBLE_EQ(number(*answer, "served.time_to_last_token"), 1.0 + 256 * served);
  EXPECT_FALSE(says(*answer, "interval of"));
  for (const char* wish : {" --step-time 50ms --tpot 20ms", " --prefill-time 1s --ttft 100ms", " --mfu 0.01 --ttft 1s"})
    EXPECT_EQ(ask_line(run + wish)->outcome, report::Outcome::infeasible) << wish;
  for (const char* wish : {" --step-time 5ms --tpot 6ms", " --prefill-time 10ms --ttft 20ms"})
    EXPECT_EQ(ask_line(run + wish)->outcome, report::Outcome::ok) << wish;
  EXPECT_TRUE(says(*ask_line(run + " --step-time 1us"), "the lower bound on these chips"));
}

/// The answer to the arguments of a row.
Result<report::Response> ask_row(const report::Value& row) {
  static const hardware::Catalogue catalogue = hardware::Catalogue::builtin();
  const report::Members members{{"verb", "serve"}, {"arguments", *row.find("arguments")}};
  const auto request = parse_json_request(report::render_json(report::Value(members)));
  if (!request) return tl::unexpected<Error>(request.error());
  return ask(*request, Context{catalogue});
}

TEST(Serve, WhatHelpsIsWhatItsArgumentsAnswer) {
  for (const char* run : {"llama-3-8b --on h100-sxm:1 --prompt 1000 --output 100 --batch 8",
                          "llama-3-70b --on h100-sxm:16 --prompt 1000 --output 100 --tp 16 --batch 16",
                          "llama-3-8b --on tpu-v5e:2x2 --prompt 1000 --output 100 --weights int8"}) {
    const auto answer = ask_line(run);
    ASSERT_TRUE(answer) << run;
    const report::Value rows = value_at(*answer, "helps");
    EXPECT_GE(rows.items()->size(), 3u) << run;
    for (const report::Value& row : *rows.items()) {
      const std::string change = report::scalar_text(*row.find("change"));
      EXPECT_EQ(report::scalar_text(*report::find_path(row, "memory.verdict")), "fits") << run << ": " << change;
      ASSERT_TRUE(row.find("arguments")) << run << ": " << change;
      const auto changed = ask_row(row);
      ASSERT_TRUE(changed) << run << ": " << change << ": " << changed.error().what;
      EXPECT_DOUBLE_EQ(*report::numeric(*row.find("time_per_token")), number(*changed, "served.time_per_token"))
          << run << ": " << change;
    }
  }
}

}  // namespace
}  // namespace assay::verbs::serve

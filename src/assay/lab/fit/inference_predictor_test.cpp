#include "assay/lab/fit/inference_predictor.h"

#include <gtest/gtest.h>

#include "assay/testing/inference_lines.h"

namespace assay::validate {
namespace {

using testing::inference_line;
using testing::read_inference_lines;

TEST(InferencePredictor, AStaticBatchIsItsPrefillAndItsSteps) {
  const InferenceRows rows = read_inference_lines(
      inference_line("H100-SXM-80GB", "TensorRT-LLM", "0.9.0,static,16,128,128,prefill+decode,,,1280,,2024,"));
  auto predict = *InferencePredictor::make(testing::catalogue());
  InferenceRow whole = rows.rows.front(), first = whole, step = whole;
  first.id = "first", first.figure = InferenceFigure::first_token, first.measured = 1_s;
  step.id = "step", step.figure = InferenceFigure::step;
  const double prefill = predict(first)->value(), decode = predict(step)->value();
  EXPECT_NEAR(predict(whole)->value(), (prefill + 127 * decode) / 128, 1e-12);
}

TEST(InferencePredictor, MoreSequencesThanFitTakeTurns) {
  auto predict = *InferencePredictor::make(testing::catalogue());
  const auto at = [&](std::string_view batch) {
    const InferenceRows rows = read_inference_lines(
        inference_line("H100-SXM-80GB", "TensorRT-LLM",
                       "0.9.0,static," + std::string(batch) + ",2048,2048,serving,,,90000000,,2024,"));
    InferenceRow row = rows.rows.front();
    row.id = batch;
    return *predict(row);
  };
  // 80 GiB hold 25 caches of 4096 tokens beside the weights: from there on time grows with the batch.
  EXPECT_NEAR(at("800") / at("400"), 2.0, 0.1);
  EXPECT_LT(at("20") / at("10"), 1.9);
}

TEST(InferencePredictor, ARowThatBeatsTheBoundIsReportedButNotFitted) {
  const InferenceRows rows =
      read_inference_lines(inference_line("H100-SXM-80GB", "vllm", ",static,1,128,128,serving,,1,,,2024,") +
                           inference_line("H100-SXM-80GB", "vllm", ",static,1,128,128,serving,,9,,,2024,"));
  auto predict = *InferencePredictor::make(testing::catalogue());
  InferenceRow fast = rows.rows[0], usual = rows.rows[1];
  usual.id = "usual";
  EXPECT_TRUE(predict(fast));  // 13.5 GB of weights in 1 ms
  EXPECT_FALSE(predict.is_possible(fast));
  EXPECT_TRUE(predict.is_possible(usual));
}

}  // namespace
}  // namespace assay::validate

#include "assay/profile/compare/explains.h"

#include <gtest/gtest.h>

namespace assay::compare {
namespace {

const trace::Vocabulary& explained_vocabulary() {
  static const hardware::Catalogue catalogue = hardware::Catalogue::builtin();
  return **trace::vocabulary_of(catalogue);
}

MeasuredCall explained_product(std::int64_t m, std::int64_t k, std::int64_t n, trace::Ticks duration = 10) {
  MeasuredCall out;
  out.kind = MeasuredCall::Kind::product;
  out.dims = {{m, k}, {k, n}};
  out.flops = Flops(2.0 * static_cast<double>(m * k * n));
  out.kernel = "nvjet_a";
  out.category = explained_vocabulary().category(out.kernel).category;
  out.duration = out.alone = duration;
  return out;
}
MeasuredCall explained_attention() {
  MeasuredCall out;
  out.kind = MeasuredCall::Kind::attention;
  out.kernel = "flash_fwd_kernel";
  out.category = explained_vocabulary().category(out.kernel).category;
  out.duration = out.alone = 10;
  return out;
}

PredictedLine explained_line(program::Op op, double flops) {
  PredictedLine out;
  out.op = op;
  out.flops = Flops(flops);
  out.time = 10_us;
  return out;
}

Result<void> explained_check(std::vector<MeasuredCall> calls, const Prediction& prediction) {
  MeasuredStep measured;
  measured.name = "step";
  measured.calls = std::move(calls);
  return check_prediction(measured, prediction, match(measured, prediction, explained_vocabulary()),
                          explained_vocabulary());
}

Prediction explained_layer() {
  Prediction out;
  out.lines = {explained_line(program::Op::product, 2.0 * 64 * 32 * 128), explained_line(program::Op::attention, 0)};
  out.order = {0, 1};
  return out;
}

TEST(CheckPrediction, TheSameProductsAndLayersPass) {
  EXPECT_TRUE(explained_check({explained_product(64, 32, 128), explained_attention()}, explained_layer()));
}

TEST(CheckPrediction, AnotherNumberOfLayersIsRefused) {
  Prediction prediction = explained_layer();
  prediction.lines[1].runs = 2;
  std::vector<MeasuredCall> calls = {explained_product(64, 32, 128), explained_attention(), explained_attention(),
                                     explained_attention()};
  const auto result = explained_check(calls, prediction);
  ASSERT_FALSE(result);
  EXPECT_NE(result.error().what.find("attention 3 times, and the request's 2 times"), std::string::npos);
  calls.push_back(explained_attention());  // two microbatches
  EXPECT_TRUE(explained_check(calls, prediction));
}

TEST(CheckPrediction, OtherFlopAreRefused) {
  const auto more = explained_check({explained_product(64, 32, 1280), explained_attention()}, explained_layer());
  ASSERT_FALSE(more);
  EXPECT_NE(more.error().what.find("the products of a step have"), std::string::npos);
  EXPECT_FALSE(explained_check({explained_product(64, 32, 12), explained_attention()}, explained_layer()));
}

TEST(CheckPrediction, TheSameFlopInOtherSizesAreRefused) {
  // Three products of 2/5 of the FLOP each: 1.2 times the predicted ones, none or one of which fits.
  const MeasuredCall other = explained_product(64, 64, 128);
  Prediction prediction = explained_layer();
  prediction.lines[0].flops = Flops(0.61 * other.flops.value());
  prediction.lines.push_back(explained_line(program::Op::product, 0.61 * other.flops.value()));
  prediction.order = {0, 1, 2};
  const auto result = explained_check({other, explained_attention()}, prediction);
  ASSERT_FALSE(result);
  EXPECT_NE(result.error().what.find("only 0 %"), std::string::npos) << result.error().what;
}

TEST(CheckPrediction, KernelsWithoutShapesContradictNothing) {
  MeasuredCall unknown = explained_product(64, 32, 1280);
  unknown.kind = MeasuredCall::Kind::other;
  EXPECT_TRUE(explained_check({unknown}, explained_layer()));
}

TEST(CheckRecovered, LayersExplainMostFlopAndMostTime) {
  const RecoveredModel model{.layers = 1, .hidden = 32, .heads = 4, .kv_heads = 4, .head_dim = 8, .intermediate = 128};
  MeasuredStep measured;
  measured.calls = {explained_product(64, 32, 96), explained_attention(), explained_product(64, 32, 32),
                    explained_product(64, 32, 128), explained_product(64, 128, 32)};
  EXPECT_TRUE(check_recovered(measured, model, explained_vocabulary(), "test.json"));
  measured.calls.push_back(explained_product(64, 48, 320));  // of something else
  EXPECT_FALSE(check_recovered(measured, model, explained_vocabulary(), "test.json"));
  measured.calls.pop_back();
  MeasuredCall convolution = explained_product(64, 48, 320, 1000);
  convolution.kind = MeasuredCall::Kind::other;
  convolution.kernel = "implicit_convolve_sgemm";
  convolution.category = explained_vocabulary().category(convolution.kernel).category;
  measured.calls.push_back(convolution);
  const auto result = check_recovered(measured, model, explained_vocabulary(), "test.json");
  ASSERT_FALSE(result);
  EXPECT_NE(result.error().what.find("explain 100 % of the FLOP"), std::string::npos);
}

}  // namespace
}  // namespace assay::compare

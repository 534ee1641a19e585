#include "assay/predict/serving/request_lengths.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <cmath>
#include <random>

namespace assay::serving {
namespace {

Lengths parsed(const std::string& text, std::int64_t mean = 1000) { return *parse_lengths(text, mean, "test"); }

TEST(Lengths, FixedOnesAreThemselves) {
  const Lengths lengths = Lengths::fixed(300);
  EXPECT_EQ(lengths.mean(), 300.0);
  EXPECT_EQ(lengths.quantile(0.99), 300);
  EXPECT_EQ(lengths.squared_variation(), 0.0);
  const RequestLengths alike = request_lengths(Lengths::fixed(1024), Lengths::fixed(256), 0);
  EXPECT_DOUBLE_EQ(alike.context, 1024 + 128);
  EXPECT_EQ(alike.reserved, std::vector<std::int64_t>{1280});
}

// A lognormal variable has p84.13 = median x e^sigma and squared variation e^(sigma^2) - 1; the table ends at the
// 99.9th percentile, so that its tail lacks a part of the variance.
TEST(Lengths, LognormalQuantilesAndMean) {
  const Lengths lengths = parsed("lognormal:0.8");
  EXPECT_NEAR(lengths.mean(), 1000, 0.5);
  EXPECT_NEAR(static_cast<double>(lengths.quantile(0.8413)) / static_cast<double>(lengths.quantile(0.5)), std::exp(0.8),
              0.02);
  EXPECT_NEAR(lengths.squared_variation(), std::expm1(0.64), 0.05);
}

TEST(Lengths, ExponentialAndUniform) {
  EXPECT_NEAR(parsed("exponential").mean(), 1000, 0.5);
  EXPECT_NEAR(parsed("exponential").squared_variation(), 1.0, 0.02);
  EXPECT_NEAR(parsed("uniform:100..300").mean(), 200, 0.5);
  EXPECT_NEAR(parsed("uniform:100..300").squared_variation(), 200.0 * 200 / 12 / 40000, 1e-3);
}

TEST(Lengths, PercentilesAreHit) {
  const Lengths lengths = parsed("p50=300,p90=2000,p99=8000");
  EXPECT_NEAR(static_cast<double>(lengths.quantile(0.5)), 300, 6);
  EXPECT_NEAR(static_cast<double>(lengths.quantile(0.9)), 2000, 40);
  EXPECT_NEAR(static_cast<double>(lengths.quantile(0.99)), 8000, 400);
}

TEST(Lengths, WhatIsNoDistributionIsRefused) {
  for (const char* text : {"", "normal:3", "lognormal:x", "lognormal:-1", "uniform:5", "uniform:9..3", "p50=3",
                           "p50=9,p90=3", "p0=1,p50=3", "p50=1,p50=2", "@/does/not/exist"})
    EXPECT_FALSE(parse_lengths(text, 100, "test")) << text;
}

TEST(Lengths, CuttingBoundsThem) {
  Lengths lengths = parsed("lognormal:1");
  EXPECT_TRUE(lengths.cut(1500));
  EXPECT_EQ(lengths.largest(), 1500);
  EXPECT_LT(lengths.mean(), 1000);
  EXPECT_FALSE(lengths.cut(1500));
}

RC_GTEST_PROP(Lengths, ThinningKeepsTheMean, ()) {
  const auto values =
      *rc::gen::nonEmpty(rc::gen::container<std::vector<std::int64_t>>(rc::gen::inRange<std::int64_t>(1, 100000)));
  std::vector<std::int64_t> many;
  while (many.size() <= 600) many.insert(many.end(), values.begin(), values.end());
  double sum = 0.0;
  for (std::int64_t n : many) sum += static_cast<double>(n);
  const Lengths lengths = Lengths::sampled(many);
  RC_ASSERT(std::abs(lengths.mean() - sum / static_cast<double>(many.size())) < 1.0);
}

// Draw requests, decode each for its n steps, and look at all steps: what they see is what the table says.
TEST(RequestLengths, SequencesInFlightAreLengthBiased) {
  const RequestLengths lengths = request_lengths(parsed("lognormal:1", 800), parsed("exponential", 200), 16);
  std::mt19937 random(7);
  double seen = 0.0, paged = 0.0, steps = 0.0;
  for (int i = 0; i < 20000; ++i) {
    const auto p = lengths.prompt.table()[random() % lengths.prompt.table().size()];
    const auto n = lengths.output.table()[random() % lengths.output.table().size()];
    for (std::int64_t j = 0; j < n; ++j) {
      seen += static_cast<double>(p + j);
      paged += std::ceil(static_cast<double>(p + j + 1) / 16.0) * 16.0;
      steps += 1.0;
    }
  }
  EXPECT_NEAR(lengths.context, seen / steps, 0.02 * lengths.context);
  // E[n^2] / (2 E[n]) of an exponential is its mean: half of the output is not what steps see.
  EXPECT_NEAR(lengths.context, 800 + 200, 15);
  double reserved = 0.0;
  for (std::int64_t n : lengths.reserved)
    reserved += static_cast<double>(n) / static_cast<double>(lengths.reserved.size());
  EXPECT_NEAR(reserved, paged / steps, 0.02 * reserved);
  // A page is half full on average.
  EXPECT_NEAR(reserved - lengths.context, 8.0, 1.0);
}

TEST(NormalQuantile, KnownValues) {
  EXPECT_NEAR(normal_quantile(0.5), 0.0, 1e-12);
  EXPECT_NEAR(normal_quantile(0.975), 1.959963984540054, 1e-10);
  EXPECT_NEAR(normal_quantile(0.01), -2.3263478740408408, 1e-10);
  EXPECT_NEAR(normal_share(1.0), 0.8413447460685429, 1e-14);
}

}  // namespace
}  // namespace assay::serving

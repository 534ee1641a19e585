#include "assay/lab/benchmark/deployment_fit.h"

#include <gtest/gtest.h>

#include <cmath>

namespace assay::benchmark {
namespace {

/// A server whose step takes 5 ms on the device and `step` + `sequence` x load on the host, and whose first token
/// takes a step and the front end: three numbers, two figures a run.
PredictAt server(const std::vector<double>& loads, const std::vector<double>& truth, double noise = 0) {
  return [=](const std::vector<double>& factors) -> Result<Misfits> {
    const auto figures = [&](double load, double step, double sequence, double front) {
      const double token = 5.0 + 1.0 * step + 0.05 * sequence * load;
      return std::vector<double>{2.0 * token + 4.0 * front, token};
    };
    Misfits out;
    for (std::size_t i = 0; i < loads.size(); ++i) {
      auto measured = figures(loads[i], truth[0], truth[1], truth[2]);
      const auto predicted = figures(loads[i], factors[0], factors[1], factors[2]);
      for (double& x : measured) x *= 1.0 + (i % 2 == 0 ? noise : -noise);
      out.push_back({std::log(measured[0] / predicted[0]), std::log(measured[1] / predicted[1])});
    }
    return out;
  };
}

const std::vector<DeploymentNumber> numbers{{"step", 2}, {"sequence", 2}, {"front_end", 2}};

double worst(const Misfits& misfits) {
  double most = 0;
  for (const auto& row : misfits)
    for (const double one : row) most = std::max(most, std::abs(one));
  return most;
}

TEST(DeploymentFit, FindsTheNumbersOfAServer) {
  const auto fit = fit_deployment(numbers, server({1, 8, 32, 64, 128}, {1.6, 1.4, 0.7}));
  ASSERT_TRUE(fit);
  EXPECT_NEAR(fit->numbers[1].factor, 1.4, 0.05);  // moves figures most
  EXPECT_NEAR(fit->numbers[0].factor, 1.6, 0.25);
  EXPECT_NEAR(fit->numbers[2].factor, 0.7, 0.1);
  for (const FittedNumber& one : fit->numbers) EXPECT_TRUE(one.determined);
  EXPECT_GT(worst(fit->before), 0.2);
  EXPECT_LT(worst(fit->after), 0.02);
  ASSERT_TRUE(fit->of_held_out);
  EXPECT_LT(worst(*fit->of_held_out), 0.05);
}

TEST(DeploymentFit, RightNumbersStay) {
  const auto fit = fit_deployment(numbers, server({1, 32, 128}, {1, 1, 1}));
  ASSERT_TRUE(fit);
  for (const FittedNumber& one : fit->numbers) EXPECT_NEAR(one.factor, 1.0, 1e-9);
}

TEST(DeploymentFit, WhatRowsDoNotTellApartStays) {
  // At one load, host time of a step and of its sequences have the same effect: one of them is enough.
  const auto fit = fit_deployment(numbers, server({64}, {1, 1.5, 1}));
  ASSERT_TRUE(fit);
  EXPECT_FALSE(fit->of_held_out);  // a single run leaves nothing to check with
  EXPECT_FALSE(fit->numbers[0].determined);
  EXPECT_DOUBLE_EQ(fit->numbers[0].factor, 1.0);
  EXPECT_TRUE(fit->numbers[1].determined);
  EXPECT_LT(worst(fit->after), 0.03);
}

TEST(DeploymentFit, NoiseWidensTheUncertainty) {
  const auto clean = fit_deployment(numbers, server({1, 8, 32, 64, 128}, {1, 1.3, 1}));
  const auto noisy = fit_deployment(numbers, server({1, 8, 32, 64, 128}, {1, 1.3, 1}, 0.06));
  ASSERT_TRUE(clean && noisy);
  EXPECT_GT(noisy->numbers[1].spread - 1.0, 2.0 * (clean->numbers[1].spread - 1.0));
}

}  // namespace
}  // namespace assay::benchmark

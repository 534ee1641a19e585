#include "assay/engine/serving/sampling.h"

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <numeric>

#include "assay/testing/sampling.h"

namespace assay::engine {
namespace {

TEST(Sampling, ColdIsGreedyAndWarmIsSoftmax) {
  const std::vector<double> logits{0.0, 1.0, 0.5};
  EXPECT_EQ(distribution(logits, {}), (Distribution{0, 1, 0}));
  const Distribution warm = distribution(logits, {.temperature = 1});
  EXPECT_NEAR(std::accumulate(warm.begin(), warm.end(), 0.0), 1.0, 1e-15);
  EXPECT_NEAR(warm[1] / warm[0], std::exp(1.0), 1e-12);
  EXPECT_NEAR(distribution(logits, {.temperature = 0.5})[1] / distribution(logits, {.temperature = 0.5})[0],
              std::exp(2.0), 1e-12);
}

TEST(Sampling, TopPKeepsTheLikeliest) {
  const std::vector<double> logits{std::log(0.5), std::log(0.1), std::log(0.3), std::log(0.1)};
  const Distribution kept = distribution(logits, {.temperature = 1, .top_p = 0.7});
  EXPECT_NEAR(kept[0], 0.625, 1e-12);
  EXPECT_NEAR(kept[2], 0.375, 1e-12);
  EXPECT_EQ(kept[1] + kept[3], 0.0);
  EXPECT_EQ(distribution(logits, {.temperature = 1, .top_p = 0.1}), (Distribution{1, 0, 0, 0}));
}

TEST(Sampling, DrawsFollowTheDistribution) {
  const Distribution p{0.25, 0.0, 0.5, 0.25};
  EXPECT_EQ(drawn(p, 0.0), 0);
  EXPECT_EQ(drawn(p, 0.25), 2);
  EXPECT_EQ(drawn(p, 0.999999), 3);
  EXPECT_EQ(drawn(p, 1.0), 3);  // rounding must not fall off the end
}

TEST(Speculation, VerifiedDraftsAreExactlyTheTarget) {
  // What comes out, summed over all drafts: q min(1, p/q) for accepted ones, and the rest by what replaces them.
  for (std::uint64_t seed = 0; seed < 50; seed += testing::sampled_every()) {
    Draws draws(seed);
    Distribution p(6), q(6);
    for (double& each : p) each = draws.next() < 0.2 ? 0.0 : draws.next();
    for (double& each : q) each = draws.next() < 0.2 ? 0.0 : draws.next();
    p[0] += 0.1, q[1] += 0.1;
    for (Distribution* each : {&p, &q}) {
      const double sum = std::accumulate(each->begin(), each->end(), 0.0);
      for (double& one : *each) one /= sum;
    }
    Distribution out(6, 0.0);
    double rejected = 0;
    for (std::size_t x = 0; x < 6; ++x) {
      out[x] += std::min(p[x], q[x]);
      rejected += std::max(0.0, q[x] - p[x]);
    }
    // The replacement's distribution, read off the function by a fine grid of its second number.
    constexpr int grid = 100'000;
    for (std::size_t x = 0; x < 6; ++x)
      if (q[x] > p[x]) {
        for (int i = 0; i < grid; ++i) {
          const std::array<double, 2> uniform{1.0 - 1e-12, (i + 0.5) / grid};
          const Verdict verdict = verified(static_cast<int>(x), q, p, uniform);
          ASSERT_FALSE(verdict.accepted);
          out[static_cast<std::size_t>(verdict.token)] += rejected / grid;
        }
        break;  // it does not depend on the draft
      }
    for (std::size_t x = 0; x < 6; ++x) EXPECT_NEAR(out[x], p[x], 1e-4) << seed << ' ' << x;
  }
}

TEST(Speculation, ManyDrawsPassAChiSquareTest) {
  const Distribution p{0.4, 0.3, 0.2, 0.1, 0.0}, q{0.1, 0.1, 0.3, 0.3, 0.2};
  Draws draws(7);
  constexpr int count = 200'000;
  std::array<double, 5> seen{};
  int accepted = 0;
  for (int i = 0; i < count; ++i) {
    const int draft = drawn(q, draws.next());
    const std::array<double, 2> uniform{draws.next(), draws.next()};
    const Verdict verdict = verified(draft, q, p, uniform);
    accepted += verdict.accepted ? 1 : 0;
    ++seen[static_cast<std::size_t>(verdict.token)];
  }
  EXPECT_EQ(seen[4], 0.0);
  double chi = 0;
  for (std::size_t i = 0; i < 4; ++i) chi += (seen[i] - count * p[i]) * (seen[i] - count * p[i]) / (count * p[i]);
  EXPECT_LT(chi, 16.27);  // three degrees of freedom: one in a thousand is beyond
  EXPECT_NEAR(accepted / static_cast<double>(count), 0.1 + 0.1 + 0.2 + 0.1, 0.005);  // the sum of min(p, q)
}

}  // namespace
}  // namespace assay::engine

#include "assay/predict/roofline/systolic.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>

#include <cmath>
#include <cstdint>
#include <numeric>
#include <ostream>
#include <vector>

namespace assay::roofline {
namespace {

using Index = std::int64_t;

struct Product {
  SystolicArray array;
  Index m = 1, k = 1, n = 1;
};

void showValue(const Product& c, std::ostream& out) {
  out << c.array.rows << "x" << c.array.columns << (c.array.double_buffered ? " double" : " single") << " buffered, ["
      << c.m << "," << c.k << "] x [" << c.k << "," << c.n << "]";
}

// Shapes reach well past the array in both directions, so ragged tiles, one row and one PE all occur.
Product any_systolic_product() {
  const auto up_to = [](Index limit) { return *rc::gen::inRange<Index>(1, limit + 1); };
  return {{up_to(9), up_to(9), *rc::gen::arbitrary<bool>()}, up_to(20), up_to(24), up_to(24)};
}

std::vector<float> integers(Index count, Index seed) {
  std::vector<float> values(static_cast<std::size_t>(count));
  std::uint32_t state = static_cast<std::uint32_t>(seed) * 2654435761U + 1U;
  for (float& value : values) {
    state = state * 1664525U + 1013904223U;
    value = static_cast<float>(static_cast<int>(state >> 24) % 17 - 8);
  }
  return values;
}

std::vector<double> plain_product(Index m, Index k, Index n, const std::vector<float>& x, const std::vector<float>& w) {
  std::vector<double> result(static_cast<std::size_t>(m * n));
  for (Index i = 0; i < m; ++i) {
    for (Index j = 0; j < n; ++j) {
      for (Index l = 0; l < k; ++l) {
        result[static_cast<std::size_t>(i * n + j)] +=
            double{x[static_cast<std::size_t>(i * k + l)]} * double{w[static_cast<std::size_t>(l * n + j)]};
      }
    }
  }
  return result;
}

SystolicRun simulate(const Product& c) {
  return simulate_systolic(c.array, c.m, c.k, c.n, integers(c.m * c.k, 1), integers(c.k * c.n, 2));
}

SystolicCycles closed_form(const Product& c) { return systolic_cycles(c.array, c.m, c.k, c.n); }

Index sum(const std::vector<Index>& values) { return std::accumulate(values.begin(), values.end(), Index{0}); }

std::vector<double> expected_result(const Product& c) {
  return plain_product(c.m, c.k, c.n, integers(c.m * c.k, 1), integers(c.k * c.n, 2));
}

// Array 2 x 2, X 3 x 2, W 2 x 2: one tile, R = C = 2, M = 3.
//   cycles 0-1  load: two weight rows shift in                                   2
//   cycle  2    X row 0 enters; busy PE (0,0)                                    fill
//   cycle  3    row 1 enters; busy (0,0) (0,1) (1,0)                             fill
//   cycle  4    row 2 enters; busy all four, row 0 has reached (1,1)             steady
//   cycle  5    busy (0,1) (1,0) (1,1)                                           drain
//   cycle  6    busy (1,1)                                                       drain
// Total 7 = R + M + (R + C - 2) = 2 + 3 + 2; useful MACs 3 * 2 * 2 = 12 = 1 + 3 + 4 + 3 + 1; utilisation
// 12 / (7 * 4) = 3/7. Product: row (1 2) gives (1*5 + 2*7, 1*6 + 2*8) = (19, 22), and so on.
TEST(Systolic, ThreeRowsOnTwoByTwoMatchTheHandWorkedCase) {
  const std::vector<float> x{1, 2, 3, 4, 5, 6};
  const std::vector<float> w{5, 6, 7, 8};
  const SystolicRun run = simulate_systolic({.rows = 2, .columns = 2}, 3, 2, 2, x, w);
  EXPECT_EQ(run.result, (std::vector<double>{19, 22, 43, 50, 67, 78}));
  EXPECT_EQ(run.activity.useful, (std::vector<Index>{0, 0, 1, 3, 4, 3, 1}));
  EXPECT_EQ(run.cycles.total, 7);
  EXPECT_EQ(run.cycles.load, 2);
  EXPECT_EQ(run.cycles.fill, 2);
  EXPECT_EQ(run.cycles.steady, 1);
  EXPECT_EQ(run.cycles.stall, 0);
  EXPECT_EQ(run.cycles.drain, 2);
  EXPECT_EQ(run.cycles.useful_macs, 12);
  EXPECT_EQ(run.cycles.padded_macs, 0);
  EXPECT_DOUBLE_EQ(run.cycles.utilisation, 3.0 / 7.0);
}

// K = 4 on two array rows makes two tiles. M = 1 < R = 2, so the second waits R - M = 1 cycle for its weights:
// 2 load + 1 + 1 stall + 1 + 2 drain = 7. Single buffered, each tile takes 2R + C + M - 2 = 5, together 10.
TEST(Systolic, ShortTilesWaitForTheirWeights) {
  const Product buffered{{.rows = 2, .columns = 2, .double_buffered = true}, 1, 4, 2};
  EXPECT_EQ(simulate(buffered).cycles.total, 7);
  EXPECT_EQ(simulate(buffered).cycles.stall, 1);
  const Product single{{.rows = 2, .columns = 2, .double_buffered = false}, 1, 4, 2};
  EXPECT_EQ(simulate(single).cycles.total, 10);
  EXPECT_EQ(simulate(single).cycles.stall, 4);
}

TEST(Systolic, EveryTinyShapeAgreesWithTheClosedFormAndThePlainProduct) {
  for (int code = 0; code < 2 * 4 * 4 * 5 * 5 * 5; ++code) {
    int rest = code;
    const auto digit = [&rest](int base) {
      const int value = rest % base;
      rest /= base;
      return value;
    };
    const bool buffered = digit(2) == 1;
    const Product c{{digit(4) + 1, digit(4) + 1, buffered}, digit(5) + 1, digit(5) + 1, digit(5) + 1};
    const SystolicRun run = simulate(c);
    ASSERT_EQ(run.cycles, closed_form(c)) << rc::toString(c);
    ASSERT_EQ(run.result, expected_result(c)) << rc::toString(c);
  }
}

TEST(Systolic, OneProcessingElementNeedsOneCyclePerMac) {
  const Product c{{.rows = 1, .columns = 1}, 5, 3, 2};
  EXPECT_EQ(simulate(c).cycles.total, 1 + 5 * 3 * 2);
  EXPECT_EQ(simulate(c).result, expected_result(c));
}

TEST(Systolic, WideFlatAndTallThinArraysKeepManyTilesInFlight) {
  for (const bool buffered : {true, false}) {
    for (const Product& c : {Product{{1, 64, buffered}, 2, 40, 100}, Product{{64, 1, buffered}, 2, 100, 40}}) {
      EXPECT_EQ(simulate(c).cycles, closed_form(c));
      EXPECT_EQ(simulate(c).result, expected_result(c));
    }
  }
}

// TPU MXU: one bf16[8,128] x bf16[128,128] every 8 cycles (jax-ml scaling book, "How to think about TPUs").
TEST(Systolic, EightRowsOnResidentWeightsCostEightCycles) {
  const Product c{{.rows = 128, .columns = 128}, 8, 128, 128};
  EXPECT_EQ(closed_form(c).steady_cycles_per_tile, 8);
  EXPECT_EQ(simulate(c).cycles.steady_cycles_per_tile, 8);
  EXPECT_EQ(tile_interval(c.array, 8), 128);
  EXPECT_EQ(tile_interval(c.array, 4096), 4096);
}

TEST(Systolic, UtilisationApproachesOneOnlyForWholeTiles) {
  const SystolicArray array{.rows = 128, .columns = 128};
  EXPECT_GT(systolic_cycles(array, 10'000'000, 256, 512).utilisation, 0.9999);
  const SystolicCycles ragged = systolic_cycles(array, 10'000'000, 192, 128);
  EXPECT_NEAR(ragged.utilisation, 0.75, 1e-4);
  EXPECT_DOUBLE_EQ(ragged.utilisation_limit, 0.75);
}

TEST(Systolic, LongRunsAreDownSampledWithoutLosingMacs) {
  const Product c{{.rows = 4, .columns = 4}, 300, 17, 9};
  const SystolicRun run = simulate(c);
  ASSERT_GT(run.cycles.total, static_cast<Index>(SystolicActivity::max_buckets));
  EXPECT_LE(run.activity.useful.size(), SystolicActivity::max_buckets);
  EXPECT_GT(run.activity.useful.size(), SystolicActivity::max_buckets / 2);
  EXPECT_EQ(sum(run.activity.useful), run.cycles.useful_macs);
  EXPECT_EQ(sum(run.activity.padded), run.cycles.padded_macs);
}

TEST(Systolic, EstimatedWorkCoversEveryMacAndNeverOverflows) {
  const SystolicArray array{.rows = 128, .columns = 128};
  EXPECT_GE(estimated_work(array, 512, 512, 512), 512.0 * 512.0 * 512.0);
  EXPECT_TRUE(std::isfinite(estimated_work(array, Index{1} << 62, Index{1} << 62, Index{1} << 62)));
}

RC_GTEST_PROP(SystolicLaws, TheResultEqualsAPlainProduct, ()) {
  const Product c = any_systolic_product();
  RC_ASSERT(simulate(c).result == expected_result(c));
}

RC_GTEST_PROP(SystolicLaws, TheCheckedRunIsExact, ()) {
  const Product c = any_systolic_product();
  const CheckedSystolicRun checked = simulate_and_check(c.array, c.m, c.k, c.n);
  RC_ASSERT(checked.max_error == 0.0);
  RC_ASSERT(checked.run.cycles == closed_form(c));
}

RC_GTEST_PROP(SystolicLaws, SimulatedCyclesEqualTheClosedForm, ()) {
  const Product c = any_systolic_product();
  RC_ASSERT(simulate(c).cycles == closed_form(c));
}

RC_GTEST_PROP(SystolicLaws, PartsSumToTheWhole, ()) {
  const Product c = any_systolic_product();
  const SystolicRun run = simulate(c);
  const SystolicCycles& cycles = run.cycles;
  RC_ASSERT(cycles.total == cycles.load + cycles.fill + cycles.steady + cycles.stall + cycles.drain);
  RC_ASSERT(cycles.useful_macs == c.m * c.k * c.n);
  RC_ASSERT(sum(run.activity.useful) == cycles.useful_macs);
  RC_ASSERT(sum(run.activity.padded) == cycles.padded_macs);
  const Index buckets = static_cast<Index>(run.activity.useful.size());
  RC_ASSERT(buckets == (cycles.total - 1) / run.activity.cycles_per_bucket + 1);
  const Index most = c.array.rows * c.array.columns * run.activity.cycles_per_bucket;
  for (std::size_t i = 0; i < run.activity.useful.size(); ++i) {
    RC_ASSERT(run.activity.useful[i] + run.activity.padded[i] <= most);
  }
}

RC_GTEST_PROP(SystolicLaws, UtilisationStaysBelowItsLimitAndTheLimitBelowOne, ()) {
  const SystolicCycles cycles = closed_form(any_systolic_product());
  RC_ASSERT(cycles.utilisation > 0);
  RC_ASSERT(cycles.utilisation <= cycles.utilisation_limit);
  RC_ASSERT(cycles.utilisation_limit <= 1);
  RC_ASSERT(cycles.utilisation + cycles.padding_waste <= 1);
}

RC_GTEST_PROP(SystolicLaws, MoreRowsNeverLowerUtilisation, ()) {
  Product c = any_systolic_product();
  const double before = closed_form(c).utilisation;
  c.m += *rc::gen::inRange<Index>(1, 1000);
  // One part in 1e12 for rounding where both sides are equal on paper.
  RC_ASSERT(closed_form(c).utilisation >= before * (1 - 1e-12));
}

RC_GTEST_PROP(SystolicLaws, DoubleBufferingNeverCostsCycles, ()) {
  Product c = any_systolic_product();
  c.array.double_buffered = true;
  const Index buffered = closed_form(c).total;
  c.array.double_buffered = false;
  RC_ASSERT(buffered <= closed_form(c).total);
}

}  // namespace
}  // namespace assay::roofline

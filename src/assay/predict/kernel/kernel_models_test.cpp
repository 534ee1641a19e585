#include "assay/predict/kernel/kernel_models.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <cmath>
#include <tuple>

#include "assay/predict/kernel/grouped_tiles.h"
#include "assay/predict/kernel/tile_table.h"

namespace assay::kernel {
namespace {

/// A chip of 100 cores that does 1 FLOP per core and nanosecond, with 1 B/ns of memory.
CoreRates chip() {
  CoreRates c;
  c.cores = 100, c.hbm = BytesPerSecond(1e9);
  return c;
}
constexpr FlopsPerSecond peak(1e11);

hardware::MatmulCalibration ideal() {
  hardware::MatmulCalibration fit;
  fit.share.fill(1.0);
  fit.memory_share = 1.0;
  return fit;
}

MatmulShape shape(double m, double n, double k, double batch = 1) {
  return {batch, m, n, k, Bytes(2 * (m * k + k * n + m * n) * batch)};
}

TEST(Matmul, OneFullWaveOfLargeTilesByHand) {
  // 100 tiles of 128 x 256 on 100 cores, k = 1000: each core does 2 * 128 * 256 * 1000 FLOP at 1 FLOP/ns = 65.536 ms.
  MatmulShape s = shape(1280, 2560, 1000);
  s.bytes = Bytes(0);
  hardware::MatmulCalibration fit = ideal();
  fit.small_tile = 1.0;
  const MatmulTime time = matmul_time(Plain{}, {fit, chip(), peak, 1.0}, s, {}, false);
  EXPECT_EQ(time.tile.m * time.tile.n, 128.0 * 256.0);
  EXPECT_EQ(time.tile.waves, 1.0);
  EXPECT_NEAR(time.total.value(), 65.536e-3, 1e-12);
}

TEST(Matmul, AnEmptyCoreIsPaidFor) {
  // 101 tiles of 128 x 256 on 100 cores: 1.01 rounds cost half of 2 and half of 1.01, i.e. 1.505 waves; smaller tiles
  // (404 of 64 x 128 in 5 rounds of a quarter) cost 0.5 * 5/4 + 0.5 * 1.01 = 1.13, and win where they lose nothing.
  MatmulShape s = shape(128, 256 * 101, 1000);
  s.bytes = Bytes(0);
  hardware::MatmulCalibration fit = ideal();
  EXPECT_LT(matmul_time(Plain{}, {fit, chip(), peak, 1.0}, s, {}, false).tile.m, 128.0);
  fit.small_tile = 1e5;
  const MatmulTime time = matmul_time(Plain{}, {fit, chip(), peak, 1.0}, s, {}, false);
  EXPECT_NEAR(time.tile.waves, 1.505, 1e-12);
  EXPECT_NEAR(time.total.value(), 1.505 * 65.536e-3, 1e-9);
}

TEST(Matmul, ATileStartsAndEndsAsSlowlyInNarrowFormats) {
  // One wave of 128 x 256 tiles, k = 3000, and 1000 elements of bf16 to fill each: 65.536 us an element of k. A format
  // that is twice as fast halves the products alone.
  MatmulShape s = shape(1280, 2560, 3000);
  s.bytes = Bytes(0);
  hardware::MatmulCalibration fit = ideal();
  fit.small_tile = 1.0, fit.fill = 1000;
  CoreRates rates = chip();
  rates.bf16 = peak;
  EXPECT_NEAR(matmul_time(Plain{}, {fit, rates, peak, 1.0}, s, {}, false).total.value(), 4000 * 65.536e-6, 1e-9);
  EXPECT_NEAR(matmul_time(Plain{}, {fit, rates, 2.0 * peak, 1.0}, s, {}, false).total.value(),
              (1500 + 1000) * 65.536e-6, 1e-9);
}

TEST(Matmul, ACoreWaitsForItsOperands) {
  // A tile of 128 x 256 multiplies one element of k in 65.536 us and loads 384 of two bytes for it: 131.072 us through
  // a port of 768 B in that time. Smaller tiles load more for each product. Half as wide elements at the same rate of
  // products would be another format, twice as fast: both halve.
  MatmulShape s = shape(1280, 2560, 1000);
  s.bytes = Bytes(0);
  hardware::MatmulCalibration fit = ideal();
  fit.port = BytesPerSecond(768 / 131.072e-6);
  CoreRates rates = chip();
  rates.bf16 = peak;
  const MatmulTime time = matmul_time(Plain{}, {fit, rates, peak, 1.0}, s, {}, false);
  EXPECT_EQ(time.tile.m * time.tile.n, 128.0 * 256.0);
  EXPECT_NEAR(time.total.value(), 131.072e-3, 1e-9);
  EXPECT_NEAR(matmul_time(Plain{}, {fit, rates, 2.0 * peak, 1.0}, s, {}, false).total.value(), 65.536e-3, 1e-9);
}

TEST(Matmul, RowsStartWhereTheirSizeSays) {
  EXPECT_EQ(row_alignment(Dtype::bf16, 50257), 2.0);
  EXPECT_EQ(row_alignment(Dtype::bf16, 50260), 8.0);
  EXPECT_EQ(row_alignment(Dtype::bf16, 50264), 16.0);
  EXPECT_EQ(row_alignment(Dtype::bf16, 50304), cache_line);
  EXPECT_EQ(row_alignment(Dtype::fp32, 50257), 4.0);
  EXPECT_EQ(row_alignment(Dtype::fp8, 50257), 16.0);
  EXPECT_EQ(padded_row(50257, Bytes(2.0)), 50304.0);
  EXPECT_EQ(padded_row(50304, Bytes(2.0)), 50304.0);
}

TEST(Matmul, OddRowsPassThroughANarrowerPort) {
  // As above: 384 elements of two bytes for each of k, through ports of 768 B in 131.072 us, and a half and a quarter
  // of that. Matrix units wait, so that no clock drops.
  MatmulShape s = shape(1280, 2560, 1000);
  s.bytes = Bytes(0);
  hardware::MatmulCalibration fit = ideal();
  fit.droop = 0.25;
  fit.narrow_port = BytesPerSecond(768 / 262.144e-6);
  fit.scattered_port = BytesPerSecond(768 / 524.288e-6);
  CoreRates rates = chip();
  rates.bf16 = peak;
  const auto time = [&](double operands, double result) {
    s.operand_rows = operands, s.result_rows = result;
    return matmul_time(Plain{}, {fit, rates, peak, 1.0}, s, {}, false).total.value();
  };
  EXPECT_NEAR(time(8, 128), 262.144e-3, 1e-9);
  EXPECT_NEAR(time(128, 4), 262.144e-3, 1e-9);
  EXPECT_NEAR(time(2, 128), 524.288e-3, 1e-9);
  EXPECT_NEAR(time(16, 16), 1.25 * 65.536e-3, 1e-9);
  fit.narrow_port.reset();  // nobody measured such kernels
  EXPECT_NEAR(time(2, 2), 1.25 * 65.536e-3, 1e-9);
}

TEST(Matmul, RowsThatBeginInsideCacheLinesAreLoadedLonger) {
  MatmulShape s = shape(1280, 2560, 1000);
  hardware::MatmulCalibration fit = ideal();
  fit.straddle = 0.2;
  CoreRates rates = chip();
  rates.bf16 = peak;
  const auto time = [&](double rows) {
    s.operand_rows = rows;
    return matmul_time(Plain{}, {fit, rates, peak, 1.0}, s, {}, false).arithmetic;
  };
  EXPECT_EQ(time(32), time(128));  // loads are free
  fit.port = BytesPerSecond(1e6);
  EXPECT_NEAR(time(32) / time(128), 1.15, 1e-12);  // three of four rows begin inside a line of 128 bytes
}

TEST(Matmul, KernelsForOddRowsCutKIntoPartsThatFillTheCores) {
  // 33 tiles of 128 x 128 leave two thirds of 100 cores idle: three parts use 99.
  MatmulShape s = shape(128 * 3, 128 * 11, 65536);
  hardware::MatmulCalibration fit = ideal();
  fit.narrow_port = fit.scattered_port = BytesPerSecond(1e6);
  fit.small_tile = 1e5;
  const auto parts = [&] { return matmul_time(Plain{}, {fit, chip(), peak, 1.0}, s, {}).tile.split; };
  EXPECT_EQ(std::fmod(8.0, parts()), 0.0);
  s.operand_rows = 8;
  EXPECT_NE(std::fmod(8.0, parts()), 0.0);
}

TEST(Matmul, NothingHidesTheRampOfMemory) {
  // Arithmetic and memory take as long as before; 2 ms of bytes have answered in half of a millisecond, 0.1 ms in all.
  MatmulShape s = shape(1280, 2560, 1000);
  const auto ramp = [&](double bytes) {
    s.bytes = Bytes(bytes);
    const hardware::Regime steep{}, slow{Seconds(0), Seconds(0), Seconds(0.5e-3)};
    const auto total = [&](const hardware::Regime& regime) {
      return matmul_time(Plain{}, {ideal(), chip(), peak, 1.0}, s, regime, false).total.value();
    };
    return total(slow) - total(steep);
  };
  EXPECT_NEAR(ramp(2e6), 0.5e-3, 1e-12);
  EXPECT_NEAR(ramp(1e5), 0.1e-3, 1e-12);
}

hardware::MatmulCalibration grouped() {
  hardware::MatmulCalibration fit = ideal();
  fit.grouped_port = BytesPerSecond(1e12);
  fit.grouped_fill = 0.0;
  return fit;
}

TEST(Grouped, RowsOfExpertsAreRandom) {
  EXPECT_EQ(expected_units(3, 64), 1.0);
  EXPECT_NEAR(expected_units(128, 128), 1.5, 1e-12);  // as many experts have fewer rows as have more
  EXPECT_NEAR(expected_units(1e8, 1.0), 1e8 + 0.5, 1.0);
  for (double rows = 1; rows < 1000; ++rows) EXPECT_LT(expected_units(rows, 64), expected_units(rows + 1, 64) + 1e-9);
}

TEST(Grouped, PairsOfTilesHoldAnExpertByHand) {
  // 25 gradients of 300 x 512: 2 pairs of 128 rows each below the other and 2 columns of 256 are 100 tiles of pairs, on
  // 50 pairs of cores 2 waves; 65.536 us an element of k, and 10 rows of an expert are one stage of 64.
  MatmulShape s = shape(300, 512, 10, 25);
  s.bytes = Bytes(0);
  s.grouped = s.summed_rows = true;
  const MatmulTime time = matmul_time(Plain{}, {grouped(), chip(), peak, 1.0}, s, {});
  EXPECT_EQ(time.tile.m * time.tile.n, 128.0 * 256.0);
  EXPECT_NEAR(time.total.value(), 2 * 64 * 65.536e-6, 1e-12);
  // Experts of 10 rows each take a pair of tiles of 64 x 128, however few the rows: 4 columns of 25 experts.
  s = shape(10, 512, 1000, 25);
  s.bytes = Bytes(0);
  s.grouped = true;
  EXPECT_NEAR(matmul_time(Plain{}, {grouped(), chip(), peak, 1.0}, s, {}).total.value(), 2 * 1000 * 16.384e-6, 1e-12);
  // 128 random rows need a second pair as often as not; where all experts have as many, none does.
  s.m = 128;
  const double random = matmul_time(Plain{}, {grouped(), chip(), peak, 1.0}, s, {}).tile.waves;
  s.even_rows = true;
  EXPECT_EQ(random / matmul_time(Plain{}, {grouped(), chip(), peak, 1.0}, s, {}).tile.waves, 1.5);
}

TEST(Grouped, TheClockDropsOnlyWhereMatrixUnitsAreBusy) {
  hardware::MatmulCalibration fit = grouped();
  fit.droop = 0.25;
  MatmulShape s = shape(10, 512, 1000, 25);
  s.bytes = Bytes(0);
  s.grouped = true;
  const auto time = [&] { return matmul_time(Plain{}, {fit, chip(), peak, 1.0}, s, {}); };
  EXPECT_NEAR(time().sustained / time().arithmetic, 1.25, 1e-12);
  fit.grouped_port = BytesPerSecond(1e6);  // 384 B a step in 384 us
  EXPECT_EQ(time().sustained, time().arithmetic);
  EXPECT_NEAR(time().arithmetic.value(), 2 * 1000 * 384e-6, 1e-9);
}

TEST(Grouped, APlacingKernelIsLaunchedToo) {
  const hardware::Regime regime{6_us, Seconds(0), Seconds(0)};
  MatmulShape s = shape(10, 512, 1000, 25);
  const auto launches = [&](const hardware::MatmulCalibration& fit) {
    const auto total = [&](const hardware::Regime& at) {
      return matmul_time(Plain{}, {fit, chip(), peak, 1.0}, s, at).total.value();
    };
    return (total(regime) - total({})) / 6e-6;
  };
  s.grouped = true;
  EXPECT_NEAR(launches(grouped()), 2.0, 1e-6);
  EXPECT_NEAR(launches(ideal()), 1.0, 1e-6);
}

TEST(Grouped, AnExplainedTimeHasTheSameBits) {
  hardware::MatmulCalibration fit = grouped();
  fit.small_tile = 20, fit.droop = 0.1, fit.memory_share = 0.9, fit.grouped_fill = 230.0;
  fit.grouped_port = BytesPerSecond(1e7);
  for (const bool summed : {false, true})
    for (const double m : {2.0, 100.0, 129.0, 3000.0}) {
      MatmulShape s = shape(m, 2880, 1000, 32);
      s.grouped = true, s.summed_rows = summed;
      const hardware::Regime regime{Seconds(1e-6), Seconds(1e-3), Seconds(1e-6)};
      Ledger ledger;
      EXPECT_EQ(plain(matmul_time(Traced{&ledger}, {fit, chip(), peak, 0.8}, s, regime).total),
                matmul_time(Plain{}, {fit, chip(), peak, 0.8}, s, regime).total);
    }
}

TEST(Matmul, SplittingKHelpsFewTilesAndCanBeForbidden) {
  const MatmulShape s = shape(128, 128, 65536);
  const Seconds with = matmul_time(Plain{}, {ideal(), chip(), peak, 1.0}, s, {}).arithmetic;
  const Seconds without = matmul_time(Plain{}, {ideal(), chip(), peak, 1.0}, s, {}, false).arithmetic;
  EXPECT_LT(with, 0.5 * without);
}

TEST(Matmul, PartsOfKAreAddedUpAfterTheMemoryThatHidesTheTiles) {
  // Memory takes 10 s. Four tiles of 64 x 64 take 0.54 s, or 0.07 s in eight parts, which 0.1 s of adding does not
  // undo; that comes after the 10 s, and partial sums of 4 B x 8 x 128 x 128 take 0.5 ms.
  MatmulShape s = shape(128, 128, 65536);
  s.bytes = Bytes(1e10);
  hardware::MatmulCalibration fit = ideal();
  fit.split_cost = Seconds(0.1);
  const MatmulTime time = matmul_time(Plain{}, {fit, chip(), peak, 1.0}, s, {});
  EXPECT_EQ(time.tile.split, 8.0);
  EXPECT_NEAR(time.adding.value(), 0.1 + 4.0 * 8 * 128 * 128 / 1e9, 1e-9);
  EXPECT_NEAR(time.total.value(), 10.0 + time.adding.value(), 1e-6);
  EXPECT_LT(matmul_time(Plain{}, {fit, chip(), peak, 1.0}, s, {}, false).total, Seconds(10.001));
}

TEST(Matmul, TilesOfManyWidthsFillTheCores) {
  // 100 tiles of 192 x 192 on 100 cores, k = 1000: 2 * 192 * 192 * 1000 FLOP at 1 FLOP/ns = 73.728 ms. Powers of two
  // make 120 tiles of 128 x 256 or 225 of 128 x 128, whose last round is part full.
  MatmulShape s = shape(1920, 1920, 1000);
  s.bytes = Bytes(0);
  hardware::MatmulCalibration fit = ideal();
  fit.small_tile = 20.0;
  const Seconds coarse = matmul_time(Plain{}, {fit, chip(), peak, 1.0}, s, {}, false).total;
  fit.fine_tiles = true;
  const MatmulTime fine = matmul_time(Plain{}, {fit, chip(), peak, 1.0}, s, {}, false);
  EXPECT_EQ(fine.tile.m, 192.0);
  EXPECT_NEAR(fine.total.value(), 73.728e-3, 1e-9);
  EXPECT_GT(coarse, 1.05 * fine.total);
}

TEST(Matmul, NarrowFormatsReadTheirScales) {
  hardware::MatmulCalibration fit = ideal();
  const MatmulShape s = shape(1024, 1024, 1024);
  const auto time = [&](Dtype format) { return matmul_time(Plain{}, {fit, chip(), peak, 1.0, format}, s, {}).total; };
  const Seconds without = time(Dtype::fp8);
  fit.scales = 1_us;
  EXPECT_NEAR((time(Dtype::fp8) - without).value(), 1e-6, 1e-15);
  EXPECT_EQ(time(Dtype::bf16), without);
}

TEST(Matmul, AStageOfTheLoopHasALeastTime) {
  // One tile; k = 6400 in stages of 128 bytes, or 64 elements of bf16: 100 stages.
  hardware::MatmulCalibration fit = ideal();
  fit.stage = Seconds(1.0);
  MatmulShape s = shape(16, 64, 6400);
  s.bytes = Bytes(0);
  EXPECT_NEAR(matmul_time(Plain{}, {fit, chip(), peak, 1.0}, s, {}, false).arithmetic.value(), 100.0, 1e-9);
}

TEST(Matmul, TilesOfATableGiveTheSameBits) {
  hardware::MatmulCalibration fit = ideal();
  fit.fine_tiles = true;
  fit.small_tile = 20, fit.fill = 300, fit.split_cost = Seconds(3e-6), fit.droop = 0.1, fit.memory_share = 0.9;
  fit.port = BytesPerSecond(1e7);
  const CoreRates cores = chip();
  const ProductRates rates{fit, cores, peak, 0.8};
  TileTables tables;
  for (const auto& [batch, n, k] : {std::tuple{1.0, 2304.0, 7168.0}, {1.0, 128.0, 65536.0}, {16.0, 512.0, 128.0}}) {
    const std::shared_ptr<TileTable> table = tables.of(rates, shape(1, n, k));
    ASSERT_TRUE(table);
    EXPECT_EQ(tables.of(rates, shape(7, n, k, 3)), table);
    EXPECT_NE(tables.of(rates, shape(1, n, k + 1)), table);
    for (double m = 0.5; m < 20000; m += m < 1100 ? 0.5 : 999.5) {
      // Experts: a part of them has tokens.
      const MatmulShape s = shape(m, n, k, batch > 1.0 ? batch * std::fmod(m, 7.0) / 7.0 + 0.1 : batch);
      const hardware::Regime regime{Seconds(1e-6), Seconds(1e-6), Seconds(1e-6)};
      EXPECT_EQ(matmul_time(rates, s, regime, *table).total.value(),
                matmul_time(Plain{}, rates, s, regime).total.value());
    }
  }
}

TEST(Matmul, SustainedPowerCostsTheDroopAndABurstLess) {
  hardware::MatmulCalibration fit = ideal();
  fit.droop = 0.25;
  const MatmulShape s = shape(12800, 2560, 1000);
  const MatmulTime hot = matmul_time(Plain{}, {fit, chip(), peak, 1.0}, s, {});
  EXPECT_NEAR(hot.sustained / hot.arithmetic, 1.25, 1e-12);
  const hardware::Regime cool{Seconds(0), hot.arithmetic, Seconds(0)};  // as long a pause as work: half of the droop
  EXPECT_NEAR(matmul_time(Plain{}, {fit, chip(), peak, 1.0}, s, cool).sustained / hot.arithmetic, 1.125, 1e-12);
}

TEST(Matmul, ASystolicArrayMultipliesItsPadding) {
  CoreRates tpu = chip();
  tpu.systolic = true, tpu.pad_m = 8, tpu.pad_k = tpu.pad_n = 128;
  const MatmulTime one = matmul_time(Plain{}, {ideal(), tpu, peak, 1.0}, shape(1, 1, 1), {});
  EXPECT_NEAR(one.arithmetic.value(), 2.0 * 8 * 128 * 128 / 1e11, 1e-18);
}

TEST(Matmul, SmallOnesCostTheirLaunch) {
  const hardware::Regime regime{6_us, Seconds(0), Seconds(0)};
  MatmulShape s = shape(1, 1, 1);
  const Seconds time = matmul_time(Plain{}, {ideal(), chip(), FlopsPerSecond(1e15), 1.0}, s, regime).total;
  EXPECT_GT(time, 6_us);
  EXPECT_LT(time, 6.2_us);
}

RC_GTEST_PROP(Matmul, IsNeverFasterThanIdealAndGrowsWithK, ()) {
  const auto size = [] { return static_cast<double>(*rc::gen::inRange(1, 20000)); };
  const MatmulShape s = shape(size(), size(), size());
  hardware::MatmulCalibration fit = ideal();
  fit.small_tile = 20, fit.fill = 128, fit.split_cost = 4_us, fit.droop = 0.2, fit.memory_share = 0.9;
  fit.fine_tiles = *rc::gen::arbitrary<bool>();
  const hardware::Regime regime{2_us, 100_us, 1_us};
  const MatmulTime time = matmul_time(Plain{}, {fit, chip(), peak, 0.9}, s, regime);
  const Seconds ideal_time = std::max(Flops(2 * s.m * s.n * s.k) / peak, s.bytes / chip().hbm);
  RC_ASSERT(time.total >= ideal_time);
  RC_ASSERT(matmul_time(Plain{}, {fit, chip(), peak, 0.9}, shape(s.m, s.n, s.k + 64), regime).total >= time.total);
  // Twice as many products in one batch take at most twice as long.
  RC_ASSERT(matmul_time(Plain{}, {fit, chip(), peak, 0.9}, shape(s.m, s.n, s.k, 2), regime).total <=
            2.0 * (1.0 + fit.droop) * time.total);
}

TEST(Stream, ByHand) {
  // 1000 B at 1 B/ns and a share of a half: 2 us; a ramp of 250 ns adds sqrt(250 / 1000) = half of it.
  EXPECT_NEAR(stream_time(Plain{}, BytesPerSecond(1e9), 0.5, Seconds(250e-9), Bytes(1000)).value(), 3e-6, 1e-18);
  EXPECT_EQ(stream_time(Plain{}, BytesPerSecond(1e9), 0.5, 1_us, Bytes(0)), Seconds(0));
}

AttentionWork attention(double heads, std::int64_t tokens, bool causal) {
  AttentionWork work;
  work.heads = heads, work.head_dim = 128, work.queries = static_cast<double>(tokens);
  work.shape.causal = causal, work.shape.queries = work.shape.keys = tokens;
  return work;
}

TEST(Attention, ByHand) {
  // 1024 tokens are 8 x 8 tiles of 128 x 128 x 128: 4 * 128^3 FLOP each. 1e6 heads keep the cores busy; each core does
  // 64 tiles of 1e4 heads at 1 FLOP/ns, without start or tail.
  const hardware::AttentionPass fit{1.0, 0.0, 0.0, 0.0, {}, 0.0};
  const double tile = 4.0 * 128 * 128 * 128 * 1e-9;
  EXPECT_NEAR(attention_time(Plain{}, {fit, chip(), peak}, attention(1e6, 1024, false), false).value() / (64e4 * tile),
              1.0, 1e-6);
  // Causal: 36 of 64 tiles, the diagonal whole (the mean of 512.5 keys is half a key more than a whole number of
  // tiles).
  EXPECT_NEAR(attention_time(Plain{}, {fit, chip(), peak}, attention(1e6, 1024, true), false).value() / (36e4 * tile),
              1.0, 2e-3);
}

TEST(Attention, HalfOfTheShorterOfProductsAndSoftmaxIsHidden) {
  const auto time = [&](double softmax) {
    const hardware::AttentionPass fit{1.0, 1.0, softmax, 0.0};
    return attention_time(Plain{}, {fit, chip(), peak}, attention(1e6, 1024, false), false).value();
  };
  EXPECT_NEAR(time(64.0) / time(0.0), (128.0 + 32.0) / 128.0, 1e-12);
  EXPECT_NEAR(time(256.0) / time(0.0), (256.0 + 64.0) / 128.0, 1e-12);
}

TEST(Attention, KernelsExistForSomeHeads) {
  const hardware::AttentionPass fit{1.0, 1.0, 0.0, 0.0};
  const auto time = [&](double head_dim, double step) {
    AttentionWork work = attention(1e6, 1024, false);
    work.head_dim = head_dim;
    return attention_time(Plain{}, {fit, chip(), peak, step}, work, false).value();
  };
  EXPECT_EQ(time(72, 64), time(128, 64));
  EXPECT_EQ(time(72, 32), time(96, 32));
  EXPECT_EQ(time(160, 32), time(192, 32));
  EXPECT_LT(time(72, 32), time(72, 64));
}

TEST(Attention, BackwardTakesTwoAndAHalfForwardPasses) {
  const hardware::AttentionPass fit{0.7, 50.0, 0.5};
  AttentionWork work = attention(64, 4096, true);
  work.bytes = 1_GB;
  EXPECT_NEAR(attention_time(Plain{}, {fit, chip(), peak}, work, true) /
                  attention_time(Plain{}, {fit, chip(), peak}, work, false),
              2.5, 1e-12);
}

TEST(Attention, RowsStartAndTheLongestEndsLate) {
  // 16 heads of 1024 tokens are 128 rows of 8 tiles: 1.28 for each of 100 cores.
  hardware::AttentionPass fit{1.0, 1.0, 0.0, 0.0, {}, 0.0};
  const AttentionWork work = attention(16, 1024, false);
  const double tile = 4.0 * 128 * 128 * 128 * 1e-9, rows = 16 * 8 / 100.0;
  const auto time = [&] { return attention_time(Plain{}, {fit, chip(), peak}, work, false).value() / tile; };
  EXPECT_NEAR(time(), rows * 8, 1e-9);
  fit.start = Seconds(0.5 * tile);
  EXPECT_NEAR(time(), rows * 8.5, 1e-9);
  fit.tail = 0.25;
  EXPECT_NEAR(time(), rows * 8.5 + 0.25 * 8, 1e-9);
}

TEST(Attention, HeadsThatDoNotFillTheirKernelTakeLonger) {
  hardware::AttentionPass fit{1.0, 1.0, 0.0, 0.0};
  fit.uneven = 1.1, fit.part_row = 1.2;
  const auto over_even = [&](double head_dim, double step) {
    AttentionWork work = attention(1e6, 1024, false);
    work.head_dim = head_dim;
    const hardware::AttentionPass even{1.0, 1.0, 0.0, 0.0};
    return attention_time(Plain{}, {fit, chip(), peak, step}, work, false) /
           attention_time(Plain{}, {even, chip(), peak, step}, work, false);
  };
  EXPECT_NEAR(over_even(64, 32), 1.0, 1e-12);
  EXPECT_NEAR(over_even(112, 32), 1.1, 1e-12);
  EXPECT_NEAR(over_even(96, 32), 1.2, 1e-12);
  EXPECT_NEAR(over_even(80, 32), 1.1 * 1.2, 1e-12);
  EXPECT_NEAR(over_even(96, 64), 1.1, 1e-12);
}

TEST(Attention, AWindowIsCheaperThanAllKeysAndOneHeadIsBoundByItsLongestRow) {
  const hardware::AttentionPass fit{1.0, 0.0, 0.0};
  AttentionWork all = attention(1000, 8192, true), window = all;
  window.shape.window = 1024;
  EXPECT_LT(attention_time(Plain{}, {fit, chip(), peak}, window, false),
            0.4 * attention_time(Plain{}, {fit, chip(), peak}, all, false));
  const double tile = 4.0 * 128 * 128 * 128 * 1e-9;
  EXPECT_GE(attention_time(Plain{}, {fit, chip(), peak}, attention(1, 1024, true), false).value(), 8 * tile);
}

TEST(Decode, ReadsTheCacheAndPaysForEachItem) {
  // 1 MB at half of 1 B/ns: 2 ms; 200 items on 100 cores at 1 us: 2 us.
  EXPECT_NEAR(decode_time(Plain{}, {{0.5, 1.0, 1.0, 1_us}, chip()}, 200, 128, 1_MB).value(), 2.002e-3, 1e-12);
}

TEST(AttentionKernel, AutomaticIsTheBetterOneThatWasMeasured) {
  hardware::AttentionCalibration fit;
  EXPECT_EQ(attention_kernel(fit, hardware::AttentionKernel::automatic), nullptr);
  fit.flash2.emplace();
  EXPECT_EQ(attention_kernel(fit, hardware::AttentionKernel::cudnn), &*fit.flash2);
  fit.cudnn.emplace();
  EXPECT_EQ(attention_kernel(fit, hardware::AttentionKernel::automatic), &*fit.cudnn);
  EXPECT_EQ(attention_kernel(fit, hardware::AttentionKernel::flash2), &*fit.flash2);
}

}  // namespace
}  // namespace assay::kernel

#include "assay/predict/roofline/roofline.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <cmath>
#include <stdexcept>
#include <string>

#include "assay/hardware/catalogue.h"

namespace assay::roofline {
namespace {

Operation parsed(std::string_view text) {
  const Result<Operation> operation = parse_operation(text, "OP");
  if (!operation) throw std::runtime_error(operation.error().what);
  return *operation;
}

hardware::Chip builtin_chip(std::string_view id) { return *hardware::Catalogue::builtin().chip(id, "test"); }

Roof roof_of(FlopsPerSecond peak, BytesPerSecond bandwidth) {
  Roof roof;
  roof.peak = {peak, "test", "", {}};
  roof.bandwidth = {bandwidth, "test", "", {}};
  return roof;
}

/// The textbook's TPU v5e: 197 TFLOP/s in bf16, 394 in int8, 820 GB/s of HBM.
Roof v5e(Dtype dtype) {
  const hardware::Chip chip = builtin_chip("tpu-v5e");
  return roof_of(chip.peak[static_cast<std::size_t>(dtype)]->value, chip.hbm().bandwidth->value);
}

// FLOP 2 * 240 * 8192 * 8192; bytes 2 * (240 * 8192 + 8192 * 8192 + 240 * 8192). Their quotient is
// 240 * 8192 / (8192 + 2 * 240) = 226.7, below 197e12 / 820e9 = 240.2, so memory limits.
TEST(Roofline, ABatchOf240IsStillBoundByMemory) {
  const Work<Plain> work = operation_work(Plain{}, parsed("bf16[240,8192] @ bf16[8192,8192]"), {});
  const Bound<Plain> bound = roofline_bound(Plain{}, work, v5e(Dtype::bf16));
  EXPECT_EQ(work.flops, Flops(2.0 * 240 * 8192 * 8192));
  EXPECT_EQ(work.bytes, Bytes(2.0 * (240.0 * 8192 + 8192.0 * 8192 + 240.0 * 8192)));
  EXPECT_NEAR(bound.intensity.value(), 226.71, 0.01);
  EXPECT_NEAR(bound.critical_intensity.value(), 240.24, 0.01);
  EXPECT_EQ(roofline_limiter(bound), "memory");
}

// With C / W = 394e12 / 820e9 = 480.49, K = 4096, N = 16384, one byte each: compute overtakes memory where
// 2 B K N / 480.49 = K N + B (K + N), so B = K N / (2 K N / 480.49 - K - N) = 67108864 / 258857 = 259.25.
TEST(Roofline, TheKneeOfAnInt8LayerIsAt259) {
  const Operation layer = parsed("int8[B,4096] @ int8[4096,16384]");
  const Knee knee = find_knee(layer, "B", {}, v5e(Dtype::int8));
  EXPECT_NEAR(*knee.exact, 259.25, 0.005);
  EXPECT_NEAR(*knee.approximate, 480.488 / 2.0, 0.001);  // K N bytes against 2 K N FLOP per B
  Ledger ledger;
  EXPECT_NEAR(traced_knee(Traced{&ledger}, layer, "B", {}, v5e(Dtype::int8))->value(), *knee.exact, 1e-9 * 259);
}

// Each of two chips does half of 2 B D F FLOP and sends 2 * 1/2 of B F sums of two bytes over a link of 45 GB/s:
// B D F / 197e12 > 2 B F / 45e9, so D > 2 * 197e12 / 45e9 = 8755.56, whatever B and F.
TEST(Roofline, SplittingAContractionPaysFromAWidthOf8756) {
  const TrafficCounting split{std::nullopt, 2, Dtype::bf16};
  const Roof link =
      roof_of(v5e(Dtype::bf16).peak.value, builtin_chip("tpu-v5e").network.scale_up->link_bandwidth.value);
  for (const char* text : {"bf16[4096,D] @ bf16[D,8192]", "bf16[8,D] @ bf16[D,128]"})
    EXPECT_NEAR(*find_knee(parsed(text), "D", split, link).exact, 8755.56, 0.01) << text;
}

// A 512 x 512 tile does 2 * 512 * 512 FLOP per step of k and loads 2 * 512 + 2 * 512 bytes: 256 FLOP per byte.
TEST(Roofline, ATileOf512HasAnIntensityOf256) {
  const Matmul matmul = parsed("bf16[4096,4096] @ bf16[4096,4096]").matmul();
  EXPECT_EQ(tile_intensity(matmul, {512, 1024, 512}).value(), 256.0);
  EXPECT_NEAR(smallest_square_tile(matmul, v5e(Dtype::bf16)), 2 * 240.24, 0.01);
}

// N products and N - 1 additions; 2 N elements of two bytes are read and one is written: (2N - 1) / (4N + 2).
TEST(Roofline, ADotProductTendsToHalfAFlopPerByte) {
  for (double n : {1.0, 7.0, 1e6}) {
    const Work<Plain> work = operation_work(Plain{}, parsed("dot(bf16[N])").with("N", n), {});
    EXPECT_DOUBLE_EQ((work.flops / work.bytes).value(), (2 * n - 1) / (4 * n + 2));
  }
  const Knee knee = find_knee(parsed("dot(bf16[N])"), "N", {}, v5e(Dtype::bf16));
  EXPECT_FALSE(knee.exact);
  EXPECT_FALSE(knee.always_compute_bound);
  EXPECT_NEAR(knee.limit->value(), 0.5, 1e-9);
}

// 128 FLOP per byte at most, below the 480 of the chip: no B is large enough, and no formula pretends otherwise.
TEST(Roofline, ANarrowLayerHasNoKneeAndNoDerivationOfOne) {
  const Operation layer = parsed("int8[B,128] @ int8[128,128]");
  EXPECT_FALSE(find_knee(layer, "B", {}, v5e(Dtype::int8)).exact);
  Ledger ledger;
  EXPECT_FALSE(traced_knee(Traced{&ledger}, layer, "B", {}, v5e(Dtype::int8)));
}

// Rows are padded from 1 to 8, so 7 of 8 multiplications are wasted.
TEST(Roofline, OneRowFillsAnEighthOfAPaddedTile) {
  const auto padding = pad_to_unit(parsed("bf16[1,128] @ bf16[128,128]").matmul(), builtin_chip("tpu-v5e"));
  EXPECT_EQ(padding->m, 8);
  EXPECT_EQ(padding->utilisation, 0.125);
  EXPECT_EQ(padding->flops, Flops(2.0 * 8 * 128 * 128));
}

double real(double low, double high) {  // spread evenly over the decades between
  return low * std::pow(high / low, static_cast<double>(*rc::gen::inRange(0, 1'000'001)) / 1e6);
}
double count(int most) { return *rc::gen::inRange(1, most + 1); }
Dtype any_dtype() {
  const auto all = all_dtypes();
  return all[*rc::gen::inRange<std::size_t>(0, all.size())].dtype;
}
Matmul any_matmul() { return {count(8), count(9000), count(9000), count(9000), any_dtype(), any_dtype(), any_dtype()}; }
Roof any_roof() {
  Roof roof = roof_of(FlopsPerSecond(real(1e9, 1e16)), BytesPerSecond(real(1e6, 1e13)));
  roof.compute_efficiency.value = real(0.05, 1);
  roof.memory_efficiency.value = real(0.05, 1);
  roof.chips = count(9000);
  return roof;
}
Bound<Plain> bound_of(const Matmul& matmul, const Roof& roof) {
  return roofline_bound(Plain{}, matmul_work(Plain{}, matmul, {}), roof);
}

RC_GTEST_PROP(RooflineLaws, MoreBandwidthOrMorePeakNeverTakesLonger, ()) {
  const Matmul matmul = any_matmul();
  const Roof roof = any_roof();
  Roof better = roof;
  if (*rc::gen::arbitrary<bool>()) better.bandwidth.value *= real(1, 100);
  if (*rc::gen::arbitrary<bool>()) better.peak.value *= real(1, 100);
  const Bound<Plain> before = bound_of(matmul, roof), after = bound_of(matmul, better);
  RC_ASSERT(after.lower <= before.lower);
  RC_ASSERT(after.upper <= before.upper);
  RC_ASSERT(after.estimate <= before.estimate);
}

RC_GTEST_PROP(RooflineLaws, ScalingBothRatesScalesEveryTime, ()) {
  const Matmul matmul = any_matmul();
  const Roof roof = any_roof();
  const double s = std::ldexp(1.0, *rc::gen::inRange(-8, 9));  // a power of two, so that the law holds exactly
  Roof scaled = roof;
  scaled.peak.value *= s;
  scaled.bandwidth.value *= s;
  const Bound<Plain> before = bound_of(matmul, roof), after = bound_of(matmul, scaled);
  RC_ASSERT(s * after.compute == before.compute);
  RC_ASSERT(s * after.memory == before.memory);
  RC_ASSERT(s * after.lower == before.lower);
  RC_ASSERT(s * after.upper == before.upper);
  RC_ASSERT(s * after.estimate == before.estimate);
  RC_ASSERT(after.critical_intensity == before.critical_intensity);
}

RC_GTEST_PROP(RooflineLaws, TheBoundsEncloseEachOther, ()) {
  const Bound<Plain> bound = bound_of(any_matmul(), any_roof());
  RC_ASSERT(bound.lower == std::max(bound.compute, bound.memory));
  RC_ASSERT(bound.upper == bound.compute + bound.memory);
  RC_ASSERT(bound.lower <= bound.upper);
  RC_ASSERT(bound.upper <= 2.0 * bound.lower);
  RC_ASSERT(bound.lower <= bound.estimate);
}

RC_GTEST_PROP(RooflineLaws, BytesAreThoseOfTheThreeTensors, ()) {
  const Matmul g = any_matmul();
  const Bytes left = storage(g.a, g.batch * g.m * g.k), right = storage(g.b, g.batch * g.k * g.n);
  RC_ASSERT(matmul_work(Plain{}, g, {}).bytes == left + right + storage(g.out, g.batch * g.m * g.n));
}

template <class A, class B>
bool same_bits(A a, B b) {
  return plain(a) == plain(b);
}
bool same_work(const Work<Plain>& a, const Work<Traced>& b) {
  return same_bits(a.flops, b.flops) && same_bits(a.bytes, b.bytes);
}

RC_GTEST_PROP(RooflineLaws, PlainAndTracedAgreeBitForBit, ()) {
  const Matmul matmul = any_matmul();
  const Tile tile{count(600), count(600), count(600)};
  const auto functions = pointwise_functions();
  const Pointwise pointwise{&functions[*rc::gen::inRange<std::size_t>(0, functions.size())], count(1'000'000),
                            count(1'000'000), any_dtype(), any_dtype()};
  const double chips = 1 + count(64);
  const Dtype sums = any_dtype();
  Ledger ledger;
  const Traced num{&ledger};
  const Work<Plain> work = matmul_work(Plain{}, matmul, {});
  const Work<Traced> traced = matmul_work(num, matmul, {});
  RC_ASSERT(same_work(work, traced));
  RC_ASSERT(same_work(tiled_matmul_work(Plain{}, matmul, tile, {}), tiled_matmul_work(num, matmul, tile, {})));
  RC_ASSERT(
      same_work(split_matmul_work(Plain{}, matmul, chips, sums, {}), split_matmul_work(num, matmul, chips, sums, {})));
  RC_ASSERT(same_work(pointwise_work(Plain{}, pointwise), pointwise_work(num, pointwise)));
  const Roof roof = any_roof();
  const Bound<Plain> a = roofline_bound(Plain{}, work, roof);
  const Bound<Traced> b = roofline_bound(num, traced, roof);
  RC_ASSERT(same_bits(a.compute, b.compute) && same_bits(a.memory, b.memory));
  RC_ASSERT(same_bits(a.lower, b.lower) && same_bits(a.upper, b.upper) && same_bits(a.estimate, b.estimate));
  RC_ASSERT(same_bits(a.intensity, b.intensity) && same_bits(a.critical_intensity, b.critical_intensity));
  RC_ASSERT(same_bits(a.achieved, b.achieved));
  RC_ASSERT(ledger.at(limiter(ledger, b.lower.id)).name == roofline_limiter(a));
}

RC_GTEST_PROP(RooflineLaws, AtTheKneeArithmeticTakesAsLongAsBytes, ()) {
  const std::string a(name(any_dtype())), b(name(any_dtype()));
  const std::string letter = *rc::gen::elementOf(std::vector<std::string>{"M", "K", "N"});
  Operation operation = parsed(a + "[M,K] @ " + b + "[K,N]");
  for (const std::string& other : operation.free_sizes())
    if (other != letter) operation = operation.with(other, count(9000));
  Roof roof = any_roof();
  const TrafficCounting counting =
      *rc::gen::arbitrary<bool>() ? TrafficCounting{} : TrafficCounting{std::nullopt, 1 + count(8), any_dtype()};
  const Knee knee = find_knee(operation, letter, counting, roof);
  Ledger ledger;
  const auto traced = traced_knee(Traced{&ledger}, operation, letter, counting, roof);
  RC_ASSERT(knee.exact.has_value() == traced.has_value());
  RC_ASSERT(!(knee.exact && knee.always_compute_bound));
  if (!knee.exact) return;
  RC_ASSERT(std::abs(traced->value() / *knee.exact - 1) < 1e-9);
  const Bound<Plain> at =
      roofline_bound(Plain{}, operation_work(Plain{}, operation.with(letter, *knee.exact), counting), roof);
  RC_ASSERT(std::abs(at.compute / at.memory - 1) < 1e-9);
}

RC_GTEST_PROP(RooflineLaws, PaddingAddsArithmeticAndNeverRemovesIt, ()) {
  const Matmul matmul = any_matmul();
  const auto padding = pad_to_unit(matmul, builtin_chip("tpu-v5e"));
  RC_ASSERT(padding->flops >= matmul_work(Plain{}, matmul, {}).flops);
  RC_ASSERT(padding->utilisation > 0);
  RC_ASSERT(padding->utilisation <= 1);
}

/// Walks the blocks of a tiled product as a kernel would; a block is loaded whole, also where it hangs over the edge.
double walked_bytes(const Matmul& g, const Tile& tile) {
  double bytes = 0;
  for (double e = 0; e < g.batch; ++e)
    for (double i = 0; i < g.m; i += tile.m)
      for (double j = 0; j < g.n; j += tile.n) {
        for (double p = 0; p < g.k; p += tile.k)
          bytes += storage(g.a, tile.m * tile.k).value() + storage(g.b, tile.k * tile.n).value();
        bytes += storage(g.out, tile.m * tile.n).value();
      }
  return bytes;
}

RC_GTEST_PROP(RooflineLaws, TiledTrafficIsWhatAWalkOverTheTilesCounts, ()) {
  const Matmul matmul{count(3), count(40), count(40), count(40), any_dtype(), any_dtype(), any_dtype()};
  const Tile tile{count(40), count(40), count(40)};
  const Bytes tiled = tiled_matmul_work(Plain{}, matmul, tile, {}).bytes;
  RC_ASSERT(tiled.value() == walked_bytes(matmul, tile));
  RC_ASSERT(tiled >= matmul_work(Plain{}, matmul, {}).bytes);
}

TEST(AttentionWork, ByHand) {
  // 2 sequences x 4 heads, 8 queries over 8 keys of size 16: 4 * 8 * 8 * 8 * 16 FLOP without a mask. Queries and
  // results have 2 * 2 * 4 * 8 * 16 elements, keys and values half as many, 2 bytes each.
  const auto work = [](const char* text) { return operation_work(Plain{}, *parse_operation(text, "test"), {}); };
  const Work<Plain> full = work("attention(bf16[2,4,8,16], bf16[2,2,8,16])");
  EXPECT_EQ(full.flops, Flops(32768));
  EXPECT_EQ(full.bytes, Bytes(6144));
  const Work<Plain> causal = work("attention(bf16[2,4,8,16], bf16[2,2,8,16], causal)");
  EXPECT_EQ(causal.flops, Flops(32768 * 4.5 / 8));  // a query sees 4.5 of 8 keys
  const Work<Plain> backward = work("attention_backward(bf16[2,4,8,16], bf16[2,2,8,16])");
  EXPECT_EQ(backward.flops, 2.5 * full.flops);
  EXPECT_EQ(backward.bytes, 2.0 * full.bytes);
  EXPECT_EQ(work("attention(bf16[2,4,1,16], bf16[2,2,8,16], window=2)").bytes, Bytes(512 + 512));
}

TEST(GroupedWork, ReadsTheMatricesThatHaveRows) {
  // One row reaches one of 8 matrices.
  const Matmul one = parse_operation("grouped(bf16[1,64] @ bf16[8,64,32])", "test")->matmul();
  EXPECT_TRUE(one.grouped);
  EXPECT_NEAR(one.batch, 1.0, 1e-12);
  EXPECT_NEAR(one.m, 1.0, 1e-12);
  const Matmul even = parse_operation("grouped(bf16[8,4,64] @ bf16[8,64,32])", "test")->matmul();
  EXPECT_EQ(even.batch, 8.0);
  EXPECT_EQ(even.m, 4.0);
  EXPECT_TRUE(even.even_rows);
  EXPECT_FALSE(one.even_rows);
  const Matmul gradient = parse_operation("grouped(bf16[64,1000] @ bf16[1000,32] -> bf16[8,64,32])", "test")->matmul();
  EXPECT_NEAR(gradient.batch * gradient.k, 1000.0, 1e-9);
  EXPECT_EQ(gradient.m, 64.0);
  EXPECT_EQ(gradient.batch, 8.0);
  EXPECT_TRUE(gradient.summed_rows);
}

}  // namespace
}  // namespace assay::roofline

#include "assay/base/units.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <cmath>
#include <set>
#include <string>
#include <type_traits>

namespace assay {
namespace {

// What the compiler can prove needs no run.
static_assert(400_Gbit_per_s == 50_GB_per_s);
static_assert(1_GiB != 1_GB);
static_assert(1_TiB == 1024_GiB && 1_GiB == 1024_MiB && 1_MiB == 1024_KiB && 1_KiB == 1024_B);
static_assert(1_day == 24_h && 1_h == 3600_s);
static_assert(std::is_same_v<decltype(1_TFLOP / 1_s), FlopsPerSecond>);
static_assert(std::is_same_v<decltype(1_TFLOP_per_s / 1_TB_per_s), FlopsPerByte>);
static_assert(std::is_same_v<decltype(1_GB / 2_GB), double>, "a ratio is a plain number");
static_assert(std::is_same_v<decltype(1_GHz * 1_s), double>, "cycles are a plain number");
static_assert(std::is_same_v<decltype(1.0 / 1_s), Hertz>);
static_assert(std::is_same_v<decltype(1_W * 1_s), Joules>);
static_assert(!std::is_convertible_v<double, Bytes> && !std::is_convertible_v<Bytes, double>);
static_assert(!std::is_convertible_v<Bytes, Seconds>);

TEST(Units, AnIntensityIsARateOverABandwidth) {
  // 989 TFLOP/s over 3.35 TB/s: 989e12 / 3.35e12 = 295.2238806 FLOP/B.
  constexpr FlopsPerByte ridge = 989_TFLOP_per_s / 3.35_TB_per_s;
  EXPECT_DOUBLE_EQ(ridge.value(), 989.0 / 3.35);
}

TEST(Units, LeavingTheTypeNamesTheUnit) {
  EXPECT_DOUBLE_EQ((1500_us).in(1_ms), 1.5);
  EXPECT_DOUBLE_EQ((80_GiB).in(1_GB), 85.89934592);  // 80 x 1.073741824
  EXPECT_DOUBLE_EQ((36_USD_per_h).value(), 0.01);    // 36 / 3600
}

TEST(Units, SumsAndScalesKeepTheDimension) {
  Bytes total = 1_KiB;
  total += 1_KiB;
  total -= 24_B;
  total *= 0.5;
  EXPECT_EQ(total, 1012_B);  // (1024 + 1024 - 24) / 2
  EXPECT_EQ(-total + 1012_B, 0_B);
  EXPECT_EQ(2.0 * 3_s, 3_s * 2.0);
  EXPECT_EQ(6_s / 2.0, 3_s);
  EXPECT_LT(1_GB, 1_GiB);
}

TEST(Units, TheDimensionOfAProductIsTheSumOfTheExponents) {
  const AnyQuantity squared = (2_s * 3_s) * 1_GB;
  EXPECT_EQ(squared.dim, (Dim{.byte = 1, .sec = 2}));
  EXPECT_DOUBLE_EQ(squared.value, 6e9);
  EXPECT_EQ(AnyQuantity(1_B / (1_s * 1_s)).dim, (Dim{.byte = 1, .sec = -2}));
}

TEST(Units, NoUnitWithItsPrefixHasTwoMeanings) {
  // "min" could be a milli-"in", "kWh" a kilo-"Wh" or ...: every spelling must come from one row of the table only.
  std::set<std::string> seen;
  for (const UnitName& unit : unit_names) {
    const auto add = [&](std::string_view prefix) {
      const std::string name = std::string(prefix) + std::string(unit.name);
      EXPECT_TRUE(seen.insert(name).second) << name;
    };
    add("");
    for (const Prefix& prefix : decimal_prefixes)
      if (unit.decimal && !prefix.name.empty()) add(prefix.name);
    for (const Prefix& prefix : binary_prefixes)
      if (unit.binary && !prefix.name.empty()) add(prefix.name);
  }
}

TEST(Units, PrefixesDescendByTheirStep) {
  for (std::size_t i = 1; i < std::size(decimal_prefixes); ++i)
    EXPECT_NEAR(decimal_prefixes[i - 1].scale / decimal_prefixes[i].scale, 1000.0, 1e-9) << decimal_prefixes[i].name;
  for (std::size_t i = 1; i < std::size(binary_prefixes); ++i)
    EXPECT_EQ(binary_prefixes[i - 1].scale / binary_prefixes[i].scale, 1024.0) << binary_prefixes[i].name;
}

RC_GTEST_PROP(Units, ArithmeticIsThatOfTheBareNumbers, (double a, double b)) {
  RC_PRE(std::isfinite(a) && std::isfinite(b) && b != 0.0);
  RC_ASSERT((Flops(a) / Seconds(b)).value() == a / b);
  RC_ASSERT((BytesPerSecond(a) * Seconds(b)).value() == a * b);
  RC_ASSERT(Bytes(a) / Bytes(b) == a / b);
  RC_ASSERT((Bytes(a) + Bytes(b)).value() == a + b);
  RC_ASSERT((a < b) == (Seconds(a) < Seconds(b)));
}

}  // namespace
}  // namespace assay

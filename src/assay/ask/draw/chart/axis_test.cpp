#include "assay/ask/draw/chart/axis.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <string>

namespace assay::draw {
namespace {

constexpr double largest_double = std::numeric_limits<double>::max();

std::string texts(ScaleKind kind, AxisRange range, NumberStyle style = NumberStyle::compact, int count = 6) {
  std::string joined;
  for (const AxisTick& tick : ticks(kind, range, style, count)) {
    if (tick.text.empty()) continue;
    if (!joined.empty()) joined += "|";
    joined += tick.text;
  }
  return joined;
}

TEST(Ticks, LinearOnesStandAtRoundNumbers) {
  EXPECT_EQ(texts(ScaleKind::linear, {0, 10}), "0|2|4|6|8|10");
  EXPECT_EQ(texts(ScaleKind::linear, {0, 1}), "0|0.2|0.4|0.6|0.8|1.0");
  EXPECT_EQ(texts(ScaleKind::linear, {-3, 7}), "\u22122|0|2|4|6");
  EXPECT_EQ(texts(ScaleKind::linear, {0, 2000}), "0|500|1000|1500|2000");
  EXPECT_EQ(texts(ScaleKind::linear, {0, 5e4}), "0|10k|20k|30k|40k|50k");
}

TEST(Ticks, LinearOnesShareOneSiPrefix) {
  EXPECT_EQ(texts(ScaleKind::linear, {0, 2.1e14}, NumberStyle::si, 5), "0|50 T|100 T|150 T|200 T");
  EXPECT_EQ(texts(ScaleKind::linear, {0, 1.2e12}, NumberStyle::si, 6), "0|0.2 T|0.4 T|0.6 T|0.8 T|1.0 T|1.2 T");
  EXPECT_EQ(texts(ScaleKind::linear, {0, 5e-6}, NumberStyle::si, 5), "0|1 \u00b5|2 \u00b5|3 \u00b5|4 \u00b5|5 \u00b5");
}

TEST(Ticks, PercentagesCountHundredths) {
  EXPECT_EQ(texts(ScaleKind::linear, {0, 1}, NumberStyle::percent, 4), "0%|50%|100%");
  EXPECT_EQ(texts(ScaleKind::linear, {0, 0.01}, NumberStyle::percent, 4), "0.0%|0.5%|1.0%");
}

TEST(Ticks, LogarithmicOnesStandAtPowersOfTen) {
  EXPECT_EQ(texts(ScaleKind::log, {0.1, 1e5}), "0.1|1|10|100|1k|10k|100k");
  EXPECT_EQ(texts(ScaleKind::log, {1e11, 1e14}, NumberStyle::si, 4), "100 G|1 T|10 T|100 T");
}

TEST(Ticks, LogarithmicOnesHaveMinorOnesFromTwoToNine) {
  int minor = 0;
  for (const AxisTick& tick : ticks(ScaleKind::log, {1, 1000}, NumberStyle::compact, 3)) minor += tick.minor ? 1 : 0;
  EXPECT_EQ(minor, 3 * 8);
}

TEST(Ticks, AShortLogarithmicAxisIsLabelledBetweenThePowersToo) {
  EXPECT_EQ(texts(ScaleKind::log, {1, 100}), "1|2|5|10|20|50|100");
  EXPECT_EQ(texts(ScaleKind::log, {20, 40}), "20|25|30|35|40");
}

TEST(Ticks, ALongLogarithmicAxisSkipsPowers) {
  EXPECT_EQ(texts(ScaleKind::log, {1, 1e15}, NumberStyle::si, 6), "1|1 k|1 M|1 G|1 T|1 P");
  EXPECT_LE(ticks(ScaleKind::log, {1e-300, 1e300}, NumberStyle::compact, 6).size(), 10u);
}

TEST(Ticks, StayFewAndWithinTheRangeWhateverItIs) {
  for (const ScaleKind kind : {ScaleKind::linear, ScaleKind::log}) {
    for (const AxisRange wanted :
         {AxisRange{1e-300, 1e300}, AxisRange{-largest_double, largest_double}, AxisRange{5, 5}, AxisRange{0, 5e-324},
          AxisRange{1e15, 1e15 + 1}, AxisRange{-1e-9, 3}}) {
      const AxisRange range = drawable(kind, wanted);
      const auto marks = ticks(kind, range, NumberStyle::si, 6);
      EXPECT_LE(marks.size(), 60u);
      for (const AxisTick& tick : marks) {
        EXPECT_GE(tick.value, range.from - 1e-5 * (range.to - range.from)) << wanted.from;
        EXPECT_LE(tick.value, range.to + 1e-5 * (range.to - range.from)) << wanted.to;
      }
    }
  }
}

TEST(Placeable, OnlyFiniteValuesAndOnALogarithmicAxisPositiveOnes) {
  EXPECT_TRUE(placeable(ScaleKind::linear, -1));
  EXPECT_FALSE(placeable(ScaleKind::log, -1));
  EXPECT_FALSE(placeable(ScaleKind::log, 0));
  for (const double value : {std::nan(""), HUGE_VAL, -HUGE_VAL}) {
    EXPECT_FALSE(placeable(ScaleKind::linear, value));
    EXPECT_FALSE(placeable(ScaleKind::log, value));
  }
}

TEST(Position, SpreadsLogarithmicValuesByTheirRatio) {
  const AxisScale log = {ScaleKind::log, {1, 100}, 0, 200};
  EXPECT_DOUBLE_EQ(position(log, 1), 0);
  EXPECT_DOUBLE_EQ(position(log, 10), 100);
  EXPECT_DOUBLE_EQ(position(log, 100), 200);
  const AxisScale downward = {ScaleKind::linear, {0, 4}, 100, 0};
  EXPECT_DOUBLE_EQ(position(downward, 1), 75);
}

TEST(Position, IsFiniteFarOutside) {
  const AxisScale scale = {ScaleKind::linear, {0, 1e-300}, 0, 100};
  EXPECT_TRUE(std::isfinite(position(scale, 1e300)));
  EXPECT_TRUE(std::isfinite(position(scale, -1e300)));
}

TEST(Drawable, OneValueBecomesARangeAroundIt) {
  for (const double value : {5.0, -5.0, 1e-12, 1e290}) {
    const AxisRange range = drawable(ScaleKind::linear, {value, value});
    EXPECT_LT(range.from, value);
    EXPECT_GT(range.to, value);
  }
  EXPECT_LT(drawable(ScaleKind::linear, {0, 0}).from, drawable(ScaleKind::linear, {0, 0}).to);
  EXPECT_DOUBLE_EQ(drawable(ScaleKind::log, {10, 10}).from, 1);
  EXPECT_DOUBLE_EQ(drawable(ScaleKind::log, {10, 10}).to, 100);
}

TEST(Drawable, EndsAreOrderedAndReplacedIfTheyCannotBePlaced) {
  EXPECT_EQ(drawable(ScaleKind::linear, {3, 1}).from, 1);
  EXPECT_EQ(drawable(ScaleKind::linear, {HUGE_VAL, -HUGE_VAL}).to, 1);
  EXPECT_EQ(drawable(ScaleKind::log, {0, 5}).from, 1);
}

TEST(NumberText, HasThreeSignificantDigitsAndNoIdleZeros) {
  EXPECT_EQ(number_text(240, NumberStyle::compact), "240");
  EXPECT_EQ(number_text(0, NumberStyle::compact), "0");
  EXPECT_EQ(number_text(1234, NumberStyle::compact), "1.23k");
  EXPECT_EQ(number_text(999.9, NumberStyle::compact), "1k");
  EXPECT_EQ(number_text(0.0123456, NumberStyle::compact), "0.0123");
  EXPECT_EQ(number_text(1.5e-7, NumberStyle::compact), "1.5e\u22127");
  EXPECT_EQ(number_text(197e12, NumberStyle::si), "197 T");
  EXPECT_EQ(number_text(-2.5e-3, NumberStyle::si), "\u22122.5 m");
  EXPECT_EQ(number_text(1e33, NumberStyle::si), "1e33");
  EXPECT_EQ(number_text(0.425, NumberStyle::percent), "42.5%");
}

TEST(NumberText, SaysWhatIsNotANumber) {
  EXPECT_EQ(number_text(HUGE_VAL, NumberStyle::si), "\u221e");
  EXPECT_EQ(number_text(std::nan(""), NumberStyle::si), "not a number");
}

}  // namespace
}  // namespace assay::draw

#include "assay/predict/serving/power.h"

#include <gtest/gtest.h>

namespace assay::serving {
namespace {

hardware::Chip h200() { return *hardware::Catalogue::builtin().chip("h200-sxm", "test"); }
PowerLoad load() { return *power_load_of(hardware::Catalogue::builtin()); }

/// A step of one second that keeps matrix units and memory busy for these shares of it.
ServingTime step(double matrix, double memory) {
  ServingTime out;
  out.estimate = Seconds(1);
  out.compute = Seconds(matrix);
  out.memory = Seconds(memory);
  return out;
}

TEST(Power, ASteadyStreamDrawsWhatWasMeasured) {
  // H200, 700 W and 4.8 TB/s, the means of two runs: weights that stream at 3.87 TB/s through one row drew 528 W,
  // through 32 rows 646 W (at 3.81 TB/s and 122 TFLOP/s of 989).
  EXPECT_NEAR(step_energy(h200(), load(), step(3.87 / 989, 3.87 / 4.8)).value(), 528.0, 12.0);
  EXPECT_NEAR(step_energy(h200(), load(), step(122 / 989.0, 3.81 / 4.8)).value(), 646.0, 12.0);
  // bf16 matmuls half of the time: 384 TFLOP/s, 525 W.
  EXPECT_NEAR(step_energy(h200(), load(), step(383.8 / 989, 0.03)).value(), 525.0, 25.0);
}

TEST(Power, ExpertsDrawForTheRowsThatFillTheirBlocks) {
  // 64 experts with one row each in tiles of 128 rows: 586 W at 2.45 TB/s, where 2.45 of 314 TFLOP/s are of use.
  ServingTime experts = step(2.45 / 989, 2.45 / 4.8);
  EXPECT_LT(step_energy(h200(), load(), experts).value(), 400.0);
  experts.padding = Seconds(311.5 / 989);
  EXPECT_NEAR(step_energy(h200(), load(), experts).value(), 586.0, 12.0);
  // Attention over the caches of 8 sequences: 432 W at 2.215 TB/s.
  ServingTime attention = step(8.9 / 989, 2.215 / 4.8);
  attention.attention_bytes = Bytes(2.215e12);
  EXPECT_NEAR(step_energy(h200(), load(), attention).value(), 432.0, 15.0);
}

TEST(Power, StaysBetweenIdleAndTheLimit) {
  const Joules idle = step_energy(h200(), load(), step(0, 0));
  EXPECT_NEAR(idle.value(), 124.0, 1.0);
  Joules before = idle;
  for (const double busy : {0.1, 0.3, 0.5, 0.9, 1.0}) {
    const Joules now = step_energy(h200(), load(), step(busy, busy));
    EXPECT_GE(now, before);
    EXPECT_LE(now, Joules(700.0));
    before = now;
  }
  EXPECT_EQ(before, Joules(700.0));
}

}  // namespace
}  // namespace assay::serving

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
  // H200, 700 W and 4.8 TB/s: weights that stream at 3.83 TB/s through one row drew 513 W, through 32 rows 623 W (at
  // 3.77 TB/s and 121 TFLOP/s of 989).
  EXPECT_NEAR(step_energy(h200(), load(), step(3.83 / 989, 3.83 / 4.8)).value(), 513.0, 12.0);
  EXPECT_NEAR(step_energy(h200(), load(), step(120.6 / 989, 3.768 / 4.8)).value(), 622.7, 12.0);
  // bf16 matmuls half of the time: 384 TFLOP/s, 525 W.
  EXPECT_NEAR(step_energy(h200(), load(), step(383.8 / 989, 0.03)).value(), 525.0, 25.0);
}

TEST(Power, StaysBetweenIdleAndTheLimit) {
  const Joules idle = step_energy(h200(), load(), step(0, 0));
  EXPECT_NEAR(idle.value(), 120.0, 1.0);
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

#include "assay/schedule/pass_time.h"

#include <gtest/gtest.h>

namespace assay {
namespace {

TEST(PassTime, MatrixUnitsThatRestAreFasterAfterwards) {
  // Ten seconds, of which two are the price of a clock that gives way: paid in full by a pass that does nothing but
  // multiply, by half where half of it moves bytes, and never below what the host takes to start its kernels.
  PassProfile pass;
  pass.estimate = Seconds(10), pass.repeated = Seconds(5), pass.busy = Seconds(10), pass.slowed = Seconds(2);
  const auto time = [&] { return pass_time(pass, {}, StageLinks{}, true, StepEffects{}); };
  EXPECT_DOUBLE_EQ(time().compute, 10.0);
  pass.busy = Seconds(5);
  EXPECT_DOUBLE_EQ(time().compute, 9.0);
  EXPECT_DOUBLE_EQ(time().recompute, 4.5);
  pass.started = Seconds(9.5);
  EXPECT_DOUBLE_EQ(time().compute, 9.5);
  pass.started = Seconds(10);  // the host bounds it already
  EXPECT_DOUBLE_EQ(time().compute, 10.0);
}

}  // namespace
}  // namespace assay

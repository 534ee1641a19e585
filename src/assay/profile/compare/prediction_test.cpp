#include "assay/profile/compare/prediction.h"

#include <gtest/gtest.h>

namespace assay::compare {
namespace {

TEST(Prediction, GapsBeforeKernelsAreApartInAProfile) {
  Prediction prediction;
  prediction.lines.resize(2);
  prediction.lines[0].op = program::Op::norm;
  prediction.lines[1].op = program::Op::product;
  prediction.lines[1].runs = 3;
  for (PredictedLine& line : prediction.lines) line.time = 20_us;
  prediction.time = 80_us;
  prediction.launch = 2_us;
  const Prediction apart = without_gaps(prediction, 1.5_us);
  EXPECT_EQ(apart.lines[0].time, 20_us);  // no kernel that was measured alone
  EXPECT_NEAR(apart.lines[1].time.in(1_us), 18.5, 1e-9);
  EXPECT_NEAR(apart.time.in(1_us), 75.5, 1e-9);
  EXPECT_NEAR(without_gaps(prediction, 3_us).lines[1].time.in(1_us), 18.0, 1e-9);  // no more than is in the price
}

}  // namespace
}  // namespace assay::compare

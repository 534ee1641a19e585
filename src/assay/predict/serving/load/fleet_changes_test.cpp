#include "assay/predict/serving/load/fleet_changes.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

namespace assay::serving {
namespace {

// 30 requests wait, 4 a replica are wanted: 8. One less than a tenth off is left as it is. Fewer come after five
// minutes.
TEST(Scaler, UpAtOnceAndDownLater) {
  Scaler scaler({ScaleRule::By::queue, 4.0, 2, 10, 15_s, 300_s, 0.1});
  EXPECT_EQ(scaler.wanted(0.0, 2, 30.0), 8);
  EXPECT_EQ(scaler.wanted(15.0, 8, 34.0), 8);
  EXPECT_EQ(scaler.wanted(30.0, 8, 0.0), 8);
  EXPECT_EQ(scaler.wanted(314.0, 8, 0.0), 8);
  EXPECT_EQ(scaler.wanted(331.0, 8, 0.0), 2);
  EXPECT_EQ(scaler.wanted(346.0, 2, 1000.0), 10);
}

RC_GTEST_PROP(Scaler, StaysWithinItsBoundsAndMoreLoadNeverWantsFewer, ()) {
  const ScaleRule rule{ScaleRule::By::use,
                       0.1 * *rc::gen::inRange(1, 20),
                       *rc::gen::inRange(1, 4),
                       *rc::gen::inRange(4, 20),
                       15_s,
                       300_s,
                       0.1};
  Scaler less(rule), more(rule);
  for (int i = 0; i < 40; ++i) {
    const std::int64_t there = *rc::gen::inRange<std::int64_t>(rule.least, rule.most + 1);
    const double load = *rc::gen::inRange(0, 50), further = load + *rc::gen::inRange(0, 50);
    const std::int64_t few = less.wanted(15.0 * i, there, load), many = more.wanted(15.0 * i, there, further);
    RC_ASSERT(few >= rule.least);
    RC_ASSERT(many <= rule.most);
    RC_ASSERT(many >= few);
  }
}

}  // namespace
}  // namespace assay::serving

#include "assay/program/plan/bounded.h"

#include <gtest/gtest.h>

namespace assay::plan {
namespace {

const program::Mesh eight{{{"A", 2}, {"B", 2}, {"C", 2}, {"D", 2}, {"E", 2}, {"F", 2}, {"G", 2}, {"H", 2}}};

Plan moved(const char* text) {
  const ShardingExpression e = *parse_sharding(text, eight, {{"I", 256}, {"J", 256}}, Dtype::bf16);
  return BoundedPlanner(eight).reshard(e.left, e.result->sharding, byte_prices(eight));
}

TEST(BoundedPlanner, AxesThatStayAreLeftAlone) {
  // Each device holds 64 x 64 elements of 2 bytes; gathering C and D brings three times as much.
  const Plan gather = moved("x[I_AB, J_CD] -> x[I_AB, J]");
  EXPECT_EQ(gather.bytes.value(), 3 * 64 * 64 * 2);
  EXPECT_EQ(gather.tensor(gather.last()).sharding,
            parse_sharding("x[I_AB, J] -> x[I_AB, J]", eight, {{"I", 256}, {"J", 256}}, Dtype::bf16)->left.sharding);
  EXPECT_EQ(moved("x[I_AB, J_CD] -> x[I_ABEF, J_CDGH]").bytes.value(), 0.0);
  // One axis from one dimension to the other: half of what a device holds is exchanged.
  EXPECT_EQ(moved("x[I_ABE, J_CD] -> x[I_AB, J_CDE]").bytes.value(), 32 * 64 * 2 / 2);
}

TEST(BoundedPlanner, ManyMovingAxesAreGatheredAndSliced) {
  const Plan plan = moved("x[I_AB, J_CD] -> x[I_EF, J_GH]");
  EXPECT_EQ(plan.bytes.value(), 15 * 64 * 64 * 2);
  EXPECT_EQ(plan.tensor(plan.last()).dims.size(), 2u);
}

}  // namespace
}  // namespace assay::plan

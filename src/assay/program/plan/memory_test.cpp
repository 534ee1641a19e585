#include "assay/program/plan/memory.h"

#include <gtest/gtest.h>

namespace assay::plan {
namespace {

// A[4, 8_X] over two devices is gathered to 64 B in bf16, then multiplied by B[8, 2], 32 B, to C[4, 2], 16 B. At the
// product a device holds its 32 B of A, B, all of A and C: 144 B; afterwards the copy of A is gone.
TEST(PeakMemory, CopiesCountWhileTheyAreNeeded) {
  const program::Mesh mesh{{{"X", 2}}};
  const auto expression =
      parse_sharding("A[I, J_X] * B[J, K] -> C[I, K]", mesh, {{"I", 4}, {"J", 8}, {"K", 2}}, Dtype::bf16);
  ASSERT_TRUE(expression);
  Plan plan;
  const int a = plan.add(expression->left), b = plan.add(*expression->right);
  const int whole = plan.move(mesh, a, program::Collective::all_gather, 1, {});
  program::Tensor result = *expression->result;
  plan.multiply(mesh, whole, b, result);
  EXPECT_EQ(peak_memory(mesh, plan), Bytes(32 + 32 + 64 + 16));
}

TEST(PeakMemory, APlanWithoutStepsHoldsItsTensor) {
  const program::Mesh mesh{{{"X", 2}}};
  const auto expression = parse_sharding("A[I, J_X]", mesh, {{"I", 4}, {"J", 8}}, Dtype::bf16);
  Plan plan;
  plan.add(expression->left);
  EXPECT_EQ(peak_memory(mesh, plan), Bytes(32));
}

}  // namespace
}  // namespace assay::plan

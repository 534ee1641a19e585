#include "assay/program/form/sharding.h"

#include <gtest/gtest.h>

namespace assay::program {
namespace {

const Mesh mesh{{{"X", 8}, {"Y", 2}}};

Tensor tensor(std::vector<Dimension> dims, Dtype dtype) { return {"A", std::move(dims), dtype, {}}; }

TEST(AxisList, KeepsTheOrderOfItsAxes) {
  const AxisList list = AxisList{}.pushed(2).pushed(0).pushed(1);
  EXPECT_EQ(list.axes(), (std::vector<int>{2, 0, 1}));
  EXPECT_EQ(list.last(), 1);
  EXPECT_EQ(list.popped().axes(), (std::vector<int>{2, 0}));
  EXPECT_EQ(list.set(), axis_bit(0) | axis_bit(1) | axis_bit(2));
  EXPECT_TRUE(AxisList{}.empty());
}

TEST(AxisList, HoldsAllAxesOfTheLargestMesh) {
  AxisList list;
  for (int axis = max_mesh_axes; axis-- > 0;) list = list.pushed(axis);
  EXPECT_EQ(list.axes(), (std::vector<int>{7, 6, 5, 4, 3, 2, 1, 0}));
  EXPECT_EQ(list.set(), 255u);
  for (int axis = 0; axis < max_mesh_axes; ++axis, list = list.popped()) EXPECT_EQ(list.last(), axis);
  EXPECT_TRUE(list.empty());
}

// fp32[1024,4096] as [I_XY, J] on X=8, Y=2: 1024 / 16 = 64 rows of 4096 x 4 B = 1 MiB on each of 16 devices.
TEST(Sharding, LocalShapeAndBytes) {
  Tensor a = tensor({{"I", 1024}, {"J", 4096}}, Dtype::fp32);
  a.sharding.dims[0] = AxisList{}.pushed(0).pushed(1);
  EXPECT_EQ(local_shape(mesh, a), (std::vector<std::int64_t>{64, 4096}));
  EXPECT_EQ(local_bytes(mesh, a), 1_MiB);
  EXPECT_EQ(global_bytes(a), 16_MiB);
  EXPECT_EQ(replication(mesh, a), 1);
  EXPECT_FALSE(is_padded(mesh, a));
  EXPECT_EQ(tensor_text(mesh, a), "A[I_XY, J]");
}

TEST(Sharding, UnevenSizesArePaddedUp) {
  Tensor a = tensor({{"I", 10}}, Dtype::int8);
  a.sharding.dims[0] = AxisList{}.pushed(0);
  EXPECT_EQ(local_shape(mesh, a), (std::vector<std::int64_t>{2}));  // ceil(10 / 8)
  EXPECT_TRUE(is_padded(mesh, a));
}

TEST(Sharding, PartsOfAnAxisPrintAsTheAxisWhenComplete) {
  const Mesh parts{{{"X(1)", 2}, {"X(2)", 2}, {"Y", 2}}};
  Tensor a = tensor({{"I", 8}, {"J", 8}}, Dtype::bf16);
  a.sharding.dims[0] = AxisList{}.pushed(0).pushed(1).pushed(2);
  EXPECT_EQ(tensor_text(parts, a), "A[I_XY, J]");
  a.sharding.dims[0] = AxisList{}.pushed(1).pushed(0);
  EXPECT_EQ(tensor_text(parts, a), "A[I_X(2)X(1), J]");
  a.sharding.unreduced = axis_bit(2);
  EXPECT_EQ(tensor_text(parts, a), "A[I_X(2)X(1), J] {U_Y}");
}

TEST(Sharding, WordsArePrintedWithAPlus) {
  const Mesh roles{{axis_of(Role::data, 2), axis_of(Role::fsdp, 2), {"tp(1)", 2}, {"tp(2)", 2}}};
  Tensor a = tensor({{"B", 8}, {"K", 8}}, Dtype::bf16);
  a.sharding.dims[0] = AxisList{}.pushed(0).pushed(1);
  a.sharding.dims[1] = AxisList{}.pushed(2);
  EXPECT_EQ(tensor_text(roles, a), "A[B_dp+fsdp, K_tp(1)]");
  a.sharding.dims[1] = AxisList{}.pushed(2).pushed(3);
  EXPECT_EQ(tensor_text(roles, a), "A[B_dp+fsdp, K_tp]");
  EXPECT_EQ(axes_text(roles, axis_bit(1) | axis_bit(2) | axis_bit(3)), "fsdp+tp");
}

}  // namespace
}  // namespace assay::program

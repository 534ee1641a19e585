#include "assay/program/program.h"

#include <gtest/gtest.h>

namespace assay {
namespace {

TEST(TensorDims, FindsTheFirstOfAKind) {
  using enum LogicalDim;
  const Weight::Size dims[] = {{batch, 64}, {other, 3}, {d_model, 4096}, {other, 5}};
  ProgramTensor tensor;
  tensor.dims = TensorDims(dims);
  tensor.rank = 4;
  EXPECT_EQ(tensor.find(batch), 0);
  EXPECT_EQ(tensor.find(other), 1);
  EXPECT_EQ(tensor.find(d_model), 2);
  EXPECT_EQ(tensor.find(sequence), -1);
  tensor.dims.set(1, {sequence, 2048});
  EXPECT_EQ(tensor.find(other), 3);
  EXPECT_EQ(tensor.dims[1].size, 2048);
  EXPECT_EQ(tensor.dims[2].dim, d_model);
  EXPECT_EQ(tensor.dims[2].size, 4096);
  tensor.rank = 3;  // what lies behind is not a dimension
  EXPECT_EQ(tensor.find(other), -1);
}

TEST(ProgramTensor, ScalesTakeBytes) {
  ProgramTensor tensor;
  tensor.store_as(NumberFormat(Dtype::int4, 16, 32));  // 4 + 16 / 32 bits
  EXPECT_EQ(local_bytes(tensor, 64.0), Bytes(36.0));
  tensor.store_as(Dtype::fp32);
  EXPECT_EQ(local_bytes(tensor, 64.0), Bytes(256.0));
}

TEST(Program, AxesSplitTheProductOfTheirSizes) {
  Program program;
  program.set_mesh({{{"X", 2}, {"Y", 3}, {"Z", 5}}});
  EXPECT_EQ(program.ways(AxisSet{0}), 1.0);
  EXPECT_EQ(program.ways(axis_bit(0) | axis_bit(2)), 10.0);
  EXPECT_EQ(program.ways(AxisList().pushed(2).pushed(1).pushed(0)), 30.0);
}

}  // namespace
}  // namespace assay

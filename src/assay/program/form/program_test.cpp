#include "assay/program/form/program.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <cmath>

namespace assay::program {
namespace {

TEST(TensorDims, FindsTheFirstOfAKind) {
  using enum model::LogicalDim;
  const model::Weight::Size dims[] = {{batch, 64}, {other, 3}, {d_model, 4096}, {other, 5}};
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

/// Biases of queries have a dimension for heads and one for their size, which frameworks store as one.
TEST(ProgramTensor, MatricesHaveTwoDimensionsBesidesExpertsAndPartsOfHeads) {
  using enum model::LogicalDim;
  const auto is_matrix_of = [](std::initializer_list<model::LogicalDim> dims) {
    ProgramTensor weight;
    for (const model::LogicalDim dim : dims)
      weight.dims.set(weight.rank++, {static_cast<decltype(weight.dims[0].dim)>(dim), 4});
    return is_matrix(weight);
  };
  EXPECT_TRUE(is_matrix_of({d_model, heads, head_dim}));
  EXPECT_TRUE(is_matrix_of({heads, value_dim, d_model}));
  EXPECT_TRUE(is_matrix_of({experts, d_model, width}));
  EXPECT_TRUE(is_matrix_of({vocabulary, d_model}));
  EXPECT_FALSE(is_matrix_of({heads, head_dim}));
  EXPECT_FALSE(is_matrix_of({kv_heads, value_dim}));
  EXPECT_FALSE(is_matrix_of({experts, width}));
  EXPECT_FALSE(is_matrix_of({d_model}));
}

TEST(Program, AxesSplitTheProductOfTheirSizes) {
  Program program;
  program.set_mesh({{{"X", 2}, {"Y", 3}, {"Z", 5}}});
  EXPECT_EQ(program.ways(AxisSet{0}), 1.0);
  EXPECT_EQ(program.ways(axis_bit(0) | axis_bit(2)), 10.0);
  EXPECT_EQ(program.ways(AxisList().pushed(2).pushed(1).pushed(0)), 30.0);
}

// Each query is asked for each key.
RC_GTEST_PROP(AttentionShape, KeysOfAQueryAreThoseThatTheMaskLeaves, ()) {
  AttentionShape shape;
  shape.keys = *rc::gen::inRange<std::int64_t>(1, 40);
  shape.queries = *rc::gen::inRange<std::int64_t>(1, shape.keys + 1);
  (*rc::gen::arbitrary<bool>() ? shape.window : shape.chunk) = *rc::gen::inRange<std::int64_t>(1, 50);
  double met = 0.0;
  for (std::int64_t query = shape.keys - shape.queries; query < shape.keys; ++query)
    for (std::int64_t key = 0; key <= query; ++key)
      met += shape.window > 0 ? key > query - shape.window : key / shape.chunk == query / shape.chunk;
  RC_ASSERT(std::abs(shape.mean_keys() - met / static_cast<double>(shape.queries)) < 1e-9);
}

}  // namespace
}  // namespace assay::program

#include "assay/predict/search/layer/weight_splits.h"

#include <gtest/gtest.h>

namespace assay::search {
namespace {

program::Tensor matrix(std::string name, std::string rows, std::int64_t m, std::string columns, std::int64_t n) {
  return {std::move(name), {{std::move(rows), m}, {std::move(columns), n}}, Dtype::bf16, {}};
}

/// Splits on hardware where arithmetic and memory traffic are free, so that bytes received decide.
WeightSplits splits_of(std::int64_t x, std::int64_t y, std::int64_t b, std::int64_t d, std::int64_t f) {
  const program::Mesh mesh{{{"X", x}, {"Y", y}}};
  ChooserProblem problem;
  problem.tensors = {matrix("In", "B", b, "D", d), matrix("W_in", "D", d, "F", f), matrix("W_out", "F", f, "D", d)};
  problem.intermediate = matrix("Tmp", "B", b, "F", f);
  problem.result = matrix("Out", "B", b, "D", d);
  const ChooserHardware hardware{plan::byte_prices(mesh), FlopsPerSecond(1e30), BytesPerSecond(1e30), Bytes(1e30)};
  return weight_splits(mesh, problem, hardware);
}

TEST(WeightSplits, WeightsStayWhereTheyAre) {
  const WeightSplits splits = splits_of(4, 4, 8, 1024, 4096);
  ASSERT_TRUE(splits.one && splits.two);
  EXPECT_EQ(splits.one->tensors[1].sharding.dims[0].set(), 0u);
  EXPECT_EQ(splits.one->tensors[1].sharding.dims[1], splits.one->tensors[2].sharding.dims[0]);
  EXPECT_NE(splits.two->tensors[1].sharding.dims[0].set(), 0u);
  EXPECT_EQ(splits.two->tensors[1].sharding.dims[0], splits.two->tensors[2].sharding.dims[1]);
}

// In one direction a device receives 15/16 of In and of the partial sums of Out, whatever the number of devices:
// 2 x 8 x 1024 x 2 B x 15/16 = 30,720 B.
TEST(WeightSplits, OneDirectionMovesActivationsOfTheWholeWidth) {
  EXPECT_NEAR(splits_of(4, 4, 8, 1024, 4096).one->times.communication.value(), 30720.0, 1.0);
}

// In two directions parts shrink with the devices, so that many of them are faster in two and few in one.
TEST(WeightSplits, TwoDirectionsWinOnManyDevices) {
  const WeightSplits few = splits_of(2, 2, 8, 1024, 4096), many = splits_of(16, 16, 8, 1024, 4096);
  EXPECT_LT(few.one->times.lower, few.two->times.lower);
  EXPECT_LT(many.two->times.lower, many.one->times.lower);
}

TEST(WeightSplits, OneDeviceHasNothingToSplit) {
  const WeightSplits splits = splits_of(1, 1, 8, 64, 64);
  EXPECT_FALSE(splits.one || splits.two);
}

}  // namespace
}  // namespace assay::search

#include "assay/engine/layout.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "assay/testing/random_case.h"

namespace assay::engine {
namespace {

RC_GTEST_PROP(Layout, CollectUndoesDistribute, ()) {
  const testing::Choose choose = [](std::int64_t n) {
    return *rc::gen::resize(100, rc::gen::inRange<std::int64_t>(0, n));
  };
  const program::Mesh mesh = testing::random_mesh(choose);
  const program::Tensor tensor = testing::random_tensor(choose, mesh, testing::Sizes::any);
  const Array global = random_integers(global_shape(tensor), 1);
  const Shards shards = distribute(global, tensor, mesh, 2);
  for (const Array& shard : shards) RC_ASSERT(shard.shape == program::local_shape(mesh, tensor));
  const Collected collected = collect(shards, tensor, mesh);
  RC_ASSERT(collected.array == global);
  RC_ASSERT(collected.disagreement == 0.0);
}

TEST(Layout, InnerAxesSplitTheBlocksOfOuterOnes) {
  // 5 elements over X = 2: 0 1 2 | 3 4 -; each block over Y = 2: 0 1 | 2 - || 3 4 | - -.
  const program::Mesh mesh = *program::parse_mesh("X=2,Y=2", "");
  const program::AxisList xy = program::AxisList{}.pushed(0).pushed(1);
  const Extent parts[] = {{0, 2, 2}, {2, 1, 2}, {3, 2, 2}, {5, 0, 2}};
  for (std::int64_t d = 0; d < 4; ++d) {
    const Extent at = extent_on(mesh, 5, xy, coordinates(mesh, d)), expected = parts[d];
    EXPECT_EQ(at.start, expected.start);
    EXPECT_EQ(at.count, expected.count);
    EXPECT_EQ(at.size, expected.size);
  }
}

TEST(Layout, SubscriptOrderIsTraversalOrder) {
  const program::Mesh mesh = *program::parse_mesh("X=2,Y=3", "");
  const Coordinates at{1, 2};
  EXPECT_EQ(extent_on(mesh, 12, program::AxisList{}.pushed(0).pushed(1), at).start, 10);  // block 1 * 3 + 2
  EXPECT_EQ(extent_on(mesh, 12, program::AxisList{}.pushed(1).pushed(0), at).start, 10);  // block 2 * 2 + 1
  EXPECT_EQ(extent_on(mesh, 12, program::AxisList{}.pushed(1).pushed(0), {1, 0}).start, 2);
}

TEST(Layout, DifferingReplicasAndPaddingAreFound) {
  const program::Mesh mesh = *program::parse_mesh("X=2,Y=2", "");
  program::Tensor tensor{"A", {{"I", 3}}, Dtype::bf16, {}};
  tensor.sharding.dims[0] = program::AxisList{}.pushed(0);
  const Array global = random_integers({3}, 1);
  Shards shards = distribute(global, tensor, mesh);
  shards[1].values[0] += 0.5;  // a replica of device 0
  EXPECT_EQ(collect(shards, tensor, mesh).disagreement, 0.5);
  shards = distribute(global, tensor, mesh);
  shards[2].values[1] = 0.25;  // beyond the end
  EXPECT_EQ(collect(shards, tensor, mesh).disagreement, 0.25);
}

}  // namespace
}  // namespace assay::engine

#include "assay/program/plan/chunk_schedule.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

namespace assay::plan {
namespace {

// Four chunks of 1 s, three hops of 1 s: each arrives just when the one before is done, so the product takes its 4 s.
TEST(ChunkSchedule, HopsHideBehindProductsOfTheirLength) {
  EXPECT_EQ(chunk_schedule(ChunkOrder::gather_first, 4, Seconds(4), Seconds(3)).end, Seconds(4));
  EXPECT_EQ(chunk_schedule(ChunkOrder::reduce_after, 4, Seconds(4), Seconds(3)).end, Seconds(4));
}

// Three hops of 4 s: the last chunk arrives after 12 s and is then multiplied in 1 s.
TEST(ChunkSchedule, ASlowCollectiveLeavesOneChunkExposed) {
  EXPECT_EQ(chunk_schedule(ChunkOrder::gather_first, 4, Seconds(4), Seconds(12)).end, Seconds(13));
  EXPECT_EQ(chunk_schedule(ChunkOrder::reduce_after, 4, Seconds(4), Seconds(12)).end, Seconds(13));
}

TEST(ChunkSchedule, OneDeviceHasNothingToMove) {
  const ChunkSchedule alone = chunk_schedule(ChunkOrder::gather_first, 1, Seconds(2), Seconds(5));
  EXPECT_EQ(alone.end, Seconds(2));
  EXPECT_TRUE(alone.hops.empty());
}

RC_GTEST_PROP(ChunkScheduleLaw, LiesBetweenTheLargerAndTheSum, ()) {
  const auto chunks = *rc::gen::inRange<std::int64_t>(2, 64);
  const Seconds product(*rc::gen::inRange(0, 1000)), collective(*rc::gen::inRange(0, 1000));
  for (const ChunkOrder order : {ChunkOrder::gather_first, ChunkOrder::reduce_after}) {
    const Seconds end = chunk_schedule(order, chunks, product, collective).end;
    RC_ASSERT(end.value() >= std::max(product, collective).value() * (1.0 - 1e-12));
    RC_ASSERT(end.value() <= (product + collective).value() * (1.0 + 1e-12));
  }
}

}  // namespace
}  // namespace assay::plan

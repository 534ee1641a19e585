#include "assay/predict/roofline/streaming.h"

#include <gtest/gtest.h>

namespace assay::roofline {
namespace {

TEST(Streaming, OneBufferDoesOneThingAfterTheOther) {
  const StreamStage stages[] = {{"load", 0, 2_s}, {"multiply", 1, 3_s}, {"store", 0, 1_s}};
  EXPECT_EQ(stream_tiles(stages, 4, 1).time, 24_s);
}

TEST(Streaming, TwoBuffersCostTheSlowestResourcePerTile) {
  const StreamStage stages[] = {{"load", 0, 2_s}, {"multiply", 1, 5_s}};
  EXPECT_EQ(stream_tiles(stages, 10, 2).time, 2_s + 10.0 * 5_s);
  const StreamStage slow_memory[] = {{"load", 0, 2_s}, {"multiply", 1, 1_s}, {"store", 0, 2_s}};
  const StreamLimit limit = stream_limit(slow_memory);
  EXPECT_EQ(limit.names, "load and store");
  EXPECT_EQ(limit.per_tile, 4_s);
  EXPECT_GE(stream_tiles(slow_memory, 10, 2).time, 10.0 * 4_s);
  EXPECT_LE(stream_tiles(slow_memory, 10, 2).time, 10.0 * 5_s);
}

TEST(Streaming, NoResourceDoesTwoThingsAtOnce) {
  const StreamStage stages[] = {{"load", 0, 2_s}, {"multiply", 1, 3_s}, {"store", 0, 1_s}};
  const Stream stream = stream_tiles(stages, 20, 3);
  ASSERT_EQ(stream.done.size(), 60u);
  for (const StreamedTile& a : stream.done)
    for (const StreamedTile& b : stream.done)
      if (&a != &b && stages[a.stage].resource == stages[b.stage].resource)
        EXPECT_TRUE(a.end <= b.start || b.end <= a.start);
}

}  // namespace
}  // namespace assay::roofline

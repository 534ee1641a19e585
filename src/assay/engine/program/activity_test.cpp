#include "assay/engine/program/activity.h"

#include <gtest/gtest.h>

namespace assay::engine {
namespace {

using Doing = Activity::Kind;

/// X=2, Y=2; the first step moves data over X, the second over Y.
program::Program two_movements() {
  program::Program out;
  out.mesh = {{{"X", 2}, {"Y", 2}}};
  out.steps.resize(2);
  for (int axis = 0; axis < 2; ++axis) {
    out.steps[static_cast<std::size_t>(axis)].op = program::Op::collective;
    out.steps[static_cast<std::size_t>(axis)].axes = program::axis_bit(axis);
  }
  return out;
}

TEST(RankWaiting, ACollectiveBeginsWhenItsLastMemberEnters) {
  // Ranks 0 and 2 share Y=0, ranks 1 and 3 share Y=1. Rank 2 enters 3 us after rank 0, rank 1 1 us after rank 3.
  const RankActivities ranks{{{0, Doing::moves, 10_us, 20_us, 10_us}},
                             {{0, Doing::moves, 12_us, 14_us, 2_us}},
                             {{0, Doing::travels, 13_us, 21_us, 8_us}},
                             {{0, Doing::moves, 11_us, 14_us, 3_us}}};
  const auto waits = waiting(two_movements(), ranks, 1.0);
  EXPECT_NEAR(waits[0][0].in(1_us), 3.0, 1e-9);
  EXPECT_NEAR(waits[1][0].in(1_us), 0.0, 1e-9);
  EXPECT_NEAR(waits[2][0].in(1_us), 0.0, 1e-9);
  EXPECT_NEAR(waits[3][0].in(1_us), 1.0, 1e-9);
  EXPECT_NEAR(span(ranks).in(1_us), 11.0, 1e-9);
}

TEST(RankWaiting, RunsOfAStepAreToldApartAndComputingNeverWaits) {
  const RankActivities ranks{
      {{1, Doing::moves, 0_us, 5_us, 5_us}, {0, Doing::computes, 5_us, 9_us}, {1, Doing::moves, 9_us, 12_us, 3_us}},
      {{1, Doing::moves, 4_us, 5_us, 1_us}, {1, Doing::moves, 20_us, 22_us, 2_us}},
      {},
      {}};
  const auto waits = waiting(two_movements(), ranks, 1.0);
  EXPECT_NEAR(waits[0][0].in(1_us), 4.0, 1e-9);
  EXPECT_EQ(waits[0][1], Seconds(0));
  EXPECT_NEAR(waits[0][2].in(1_us), 3.0, 1e-9);  // all of it: it only sent, and was gone when the other one came
}

TEST(RankWaiting, AThreadWithoutACoreWaitsForOne) {
  const RankActivities ranks{{{0, Doing::travels, 0_us, 10_us, 2_us}}, {}, {{0, Doing::moves, 1_us, 9_us, 8_us}}, {}};
  EXPECT_NEAR(waiting(two_movements(), ranks, 1.0)[0][0].in(1_us), 8.0, 1e-9);
  EXPECT_NEAR(waiting(two_movements(), ranks, 2.0)[0][0].in(1_us), 6.0, 1e-9);  // two turns of 2 us are no waiting
  EXPECT_NEAR(waiting(two_movements(), ranks, 9.0)[0][0].in(1_us), 1.0, 1e-9);  // but the other one came later
}

TEST(RankWaiting, StagesOfAPipelineDoNotWaitForEachOther) {
  RankActivities ranks(8);
  ranks[0] = ranks[2] = {{0, Doing::moves, 0_us, 5_us, 5_us}};
  ranks[4] = ranks[6] = {{0, Doing::moves, 3_us, 5_us, 2_us}};  // the second stage
  for (const std::vector<Seconds>& rank : waiting(two_movements(), ranks, 1.0))
    for (const Seconds wait : rank) EXPECT_EQ(wait, Seconds(0));
}

}  // namespace
}  // namespace assay::engine

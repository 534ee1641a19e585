#include "assay/ask/draw/timeline/lane_shares.h"

#include <gtest/gtest.h>

namespace assay::draw {
namespace {

TEST(LaneShares, AddUpTheTimeOfEachClass) {
  const std::vector<TimelineBar> bars{{0, 0_s, 1_s, "f", 0}, {0, 1_s, 3_s, "b", 1}, {0, 3_s, Seconds(3.5), "f", 0}};
  const LaneShares shares = lane_shares({&bars[0], &bars[1], &bars[2]}, 4_s, 2, 1.0);
  ASSERT_EQ(shares.by_class.size(), 2u);
  EXPECT_DOUBLE_EQ(shares.by_class[0][0], 0.5);
  EXPECT_DOUBLE_EQ(shares.by_class[1][0], 0.5);
  EXPECT_DOUBLE_EQ(shares.by_class[0][1], 0.25);
  EXPECT_DOUBLE_EQ(shares.by_class[1][1], 0.5);
  EXPECT_DOUBLE_EQ(shares.whole[0], 0.375);
}

TEST(LaneShares, MembersShareALane) {
  const std::vector<TimelineBar> bars{{0, 0_s, 2_s, "", 0}, {0, 0_s, 1_s, "", 0}};
  EXPECT_DOUBLE_EQ(lane_shares({&bars[0], &bars[1]}, 2_s, 1, 2.0).by_class[0][0], 0.75);
}

TEST(LaneShares, EqualColumnsAreOneArea) {
  LaneShares shares{{{0.5, 0.5, 0.0, 0.0, 0.0, 0.0, 0.0, 0.5}, {0.5, 0.5, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0}}, {}};
  const auto areas = share_areas(shares);
  ASSERT_EQ(areas.size(), 3u);
  EXPECT_EQ(areas[0].outline.size(), 4u);
  EXPECT_EQ(areas[2].colour_class, 1u);
  EXPECT_DOUBLE_EQ(areas[2].outline.front().y, 1.0);
}

}  // namespace
}  // namespace assay::draw

#include "assay/program/plan/routes.h"

#include <gtest/gtest.h>

namespace assay::plan {
namespace {

using program::AxisList;
using program::Collective;

constexpr int x = 0, y = 1, z = 2;

program::Sharding split(std::vector<AxisList> dims, program::AxisSet unreduced = 0) {
  program::Sharding sharding;
  for (std::size_t i = 0; i < dims.size(); ++i) sharding.dims[i] = dims[i];
  sharding.unreduced = unreduced;
  return sharding;
}

std::vector<MoveKind> kinds_of(const ShardingChange& change) {
  Routes routes;
  std::vector<MoveKind> kinds;
  for (const RouteMove& move : routes.find(change)) kinds.push_back(move.kind);
  return kinds;
}

TEST(Routes, SingleStepsAreWhatTheAlgebraSays) {
  const AxisList none, of_x = AxisList().pushed(x);
  EXPECT_EQ(kinds_of({split({of_x}), split({none}), 1}), std::vector<MoveKind>{Collective::all_gather});
  EXPECT_EQ(kinds_of({split({none}), split({of_x}), 1}), std::vector<MoveKind>{std::nullopt});
  EXPECT_EQ(kinds_of({split({of_x, none}), split({none, of_x}), 2}), std::vector<MoveKind>{Collective::all_to_all});
  EXPECT_EQ(kinds_of({split({none}, 1u << x), split({of_x}), 1}), std::vector<MoveKind>{Collective::reduce_scatter});
  EXPECT_EQ(kinds_of({split({}, 1u << x), split({}), 0}), std::vector<MoveKind>{Collective::all_reduce});
}

TEST(Routes, SeveralAxesMoveTogether) {
  const AxisList none, of_xyz = AxisList().pushed(x).pushed(y).pushed(z);
  Routes routes;
  const std::vector<RouteMove>& gather = routes.find({split({of_xyz}), split({none}), 1});
  ASSERT_EQ(gather.size(), 1u);
  EXPECT_EQ(gather.front().axes, 7u);
  const std::vector<RouteMove>& slice = routes.find({split({none}), split({of_xyz}), 1});
  ASSERT_EQ(slice.size(), 1u);
  EXPECT_EQ(slice.front().axes, 7u);
  EXPECT_EQ(slice.front().after, split({of_xyz}));
}

TEST(Routes, SlicesComeBeforeWhatTheyMakeSmaller) {
  const AxisList none, of_x = AxisList().pushed(x), of_y = AxisList().pushed(y);
  EXPECT_EQ(kinds_of({split({of_x, none}), split({none, of_y}), 2}),
            (std::vector<MoveKind>{std::nullopt, Collective::all_gather}));
}

// Permuting devices would move fewer bytes, but frameworks gather.
TEST(Routes, DevicesAreNotPermuted) {
  const AxisList of_xy = AxisList().pushed(x).pushed(y), of_yx = AxisList().pushed(y).pushed(x);
  EXPECT_EQ(kinds_of({split({of_xy}), split({of_yx}), 1}),
            (std::vector<MoveKind>{Collective::all_gather, std::nullopt}));
}

TEST(Routes, AreFoundOnce) {
  const ShardingChange change{split({AxisList().pushed(x)}), split({AxisList()}), 1};
  Routes routes;
  EXPECT_EQ(&routes.find(change), &routes.find(change));
}

}  // namespace
}  // namespace assay::plan

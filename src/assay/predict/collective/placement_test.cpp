#include "assay/predict/collective/placement.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <vector>

#include "assay/predict/collective/simulator/links.h"
#include "assay/testing/catalogue.h"

namespace assay::collective {
namespace {

using testing::cluster;

Placement placed(const char* mesh, const char* on) {
  const auto placement = Placement::make(*program::parse_mesh(mesh, "test"), cluster(on), "test");
  EXPECT_TRUE(placement) << (placement ? "" : placement.error().what);
  return *placement;
}
std::string text(const char* mesh, const char* on) {
  return placement_text(placed(mesh, on), *program::parse_mesh(mesh, "test"), cluster(on));
}
double gather(const CollectiveGroup& group) {
  return collective_cost(Plain{}, program::Collective::all_gather, 1_GB, group).bandwidth.value();
}

TEST(Placement, WholeAxesStayInOrder) {
  EXPECT_EQ(text("X=4,Y=8,Z=8", "tpu-v5p:4x8x8"), "X on X; Y on Y; Z on Z");
  EXPECT_TRUE(placed("X=4,Y=8,Z=8", "tpu-v5p:4x8x8").plain());
  EXPECT_EQ(text("X=8,Y=4,Z=8", "tpu-v5p:4x8x8"), "X on Y; Y on X; Z on Z");
}

TEST(Placement, OneMeshAxisTakesSeveralTorusAxes) {
  EXPECT_EQ(text("D=32,T=8", "tpu-v5p:4x8x8"), "D on X and Y; T on Z");
  const CollectiveGroup both = placed("D=32,T=8", "tpu-v5p:4x8x8").group(0b01);
  ASSERT_EQ(both.axes.size(), 2u);
  EXPECT_EQ(both.devices, 32.0);
}

TEST(Placement, PartsOfAnAxisAreLinesOfNeighboursOrInterleave) {
  const Placement parts = placed("A=4,B=4,C=16", "tpu-v5e:16x16");
  EXPECT_EQ(text("A=4,B=4,C=16", "tpu-v5e:16x16"), "A on 4 of X, 4 apart; B on 4 neighbours of X; C on Y");
  const CollectiveGroup outer = parts.group(0b001), inner = parts.group(0b010), whole = parts.group(0b011);
  EXPECT_TRUE(outer.axes[0].ring);
  EXPECT_EQ(outer.axes[0].share, 4.0);
  EXPECT_FALSE(inner.axes[0].ring);
  EXPECT_EQ(inner.axes[0].share, 1.0);
  // Together, both parts are the ring of 16.
  EXPECT_TRUE(whole.axes[0].ring);
  EXPECT_EQ(whole.axes[0].size, 16.0);
  EXPECT_EQ(whole.axes[0].share, 1.0);
}

TEST(Placement, SlicesAreJoinedByTheDataCentreNetwork) {
  const Placement slices = placed("S=4,X=16,Y=16", "4*tpu-v5e:16x16");
  const CollectiveGroup between = slices.group(0b001), mixed = slices.group(0b011);
  EXPECT_TRUE(between.axes.empty());
  EXPECT_EQ(between.levels[0].groups, 4.0);
  EXPECT_TRUE(mixed.mixed());
  // Each of the 16 chips of a row brings its own network port for its part of the array.
  EXPECT_EQ(mixed.levels[0].lanes, 16.0);
  EXPECT_EQ(mixed.devices, 64.0);
  EXPECT_GE(gather(mixed), gather(slices.group(0b010)));
}

// A node of 8 holds two groups of an inner axis of 4; an outer axis of 2 within the node uses the same level.
TEST(Placement, TheLastMeshAxisIsInnermostOnASwitchedCluster) {
  const Placement tree = placed("D=8,P=2,T=4", "h100-sxm:64");
  const CollectiveGroup inner = tree.group(0b100), outer = tree.group(0b001), skipping = tree.group(0b101);
  EXPECT_EQ(inner.levels[0].groups, 4.0);
  EXPECT_EQ(inner.levels[1].groups, 1.0);
  EXPECT_EQ(outer.levels[0].groups, 1.0);
  EXPECT_EQ(outer.levels[1].groups, 8.0);
  // Four members of each group in a node: four network ports work for one copy.
  EXPECT_EQ(skipping.levels[0].groups, 4.0);
  EXPECT_EQ(skipping.levels[1].groups, 8.0);
  EXPECT_EQ(skipping.levels[1].lanes, 4.0);
}

TEST(Placement, AllAxesTogetherAreTheWholeCluster) {
  for (const char* on : {"tpu-v5p:4x8x8", "h100-sxm:256"}) {
    const Placement all = placed("A=2,B=16,C=8", on);
    EXPECT_DOUBLE_EQ(gather(all.group(0b111)), gather(*make_group(cluster(on), {}, 1, "test"))) << on;
  }
}

TEST(Placement, SaysWhyNothingFits) {
  const auto refused = Placement::make(*program::parse_mesh("S=6,X=6", ""), cluster("9*tpu-v5e:2x2"), "--mesh");
  ASSERT_FALSE(refused);
  EXPECT_NE(refused.error().what.find("X=6"), std::string::npos) << refused.error().what;
  EXPECT_NE(refused.error().hint.find("9x2x2"), std::string::npos) << refused.error().hint;
  EXPECT_FALSE(Placement::make(*program::parse_mesh("X=5", ""), cluster("tpu-v5e:2x2"), "--mesh"));
}

/// All groups of some parts of an axis gather at once over explicit links, each along its members in order. `blocks`
/// holds the members of each group.
double gather_side_by_side(const std::vector<std::vector<std::int64_t>>& groups, std::int64_t axis, bool ring,
                           double bytes) {
  LinkNetwork network;
  network.devices = axis;
  for (int direction = 0; direction < 2; ++direction)
    for (std::int64_t chip = 0; chip < axis; ++chip)
      network.add(1_GB_per_s, Seconds(), (chip + (direction == 0 ? 1 : axis - 1)) % axis);
  constexpr int chunks = 64;
  TransferGraph graph;
  for (int chunk = 0; chunk < chunks; ++chunk)
    for (const auto& members : groups) {
      const auto n = static_cast<std::int64_t>(members.size());
      for (std::int64_t m = 0; m < n; ++m)
        for (int direction = 0; direction < 2; ++direction) {
          const std::int64_t up = ring ? n / 2 : n - 1 - m, hops = direction == 0 ? up : n - 1 - up;
          const auto place = [&](std::int64_t i) { return members[static_cast<std::size_t>((i % n + n) % n)]; };
          const std::int64_t step = direction == 0 ? 1 : -1;
          std::int64_t chip = place(m);
          std::int32_t previous = -1;
          for (std::int64_t hop = 1; hop <= hops; ++hop)
            for (const std::int64_t target = place(m + step * hop); chip != target;
                 chip = (chip + step + axis) % axis) {
              const auto link = static_cast<std::int32_t>(direction * axis + chip);
              const std::int32_t transfer = graph.add(link, Bytes(bytes / static_cast<double>(n) / chunks), true);
              if (previous >= 0) graph.order(previous, transfer);
              previous = transfer;
            }
        }
    }
  return run_transfers(network, graph).time.value();
}

TEST(Placement, InterleavedGroupsTakeAsLongAsTheRuleSays) {
  struct Case {
    std::vector<AxisPart> parts;
    std::vector<std::int64_t> first;  ///< members of the first group
    std::vector<std::int64_t> shifts;
  };
  const Case cases[] = {{{{0, 4, 4}}, {0, 4, 8, 12}, {0, 1, 2, 3}},
                        {{{0, 8, 2}}, {0, 2, 4, 6, 8, 10, 12, 14}, {0, 1}},
                        {{{0, 4, 1}}, {0, 1, 2, 3}, {0, 4, 8, 12}},
                        {{{0, 4, 2}}, {0, 2, 4, 6}, {0, 1, 8, 9}},
                        {{{0, 2, 8}, {0, 4, 1}}, {0, 1, 2, 3, 8, 9, 10, 11}, {0, 4}}};
  for (const Case& each : cases) {
    CollectiveGroup group;
    group.link = 1_GB_per_s;
    add_axis_parts(group, 16, true, each.parts.data(), each.parts.size());
    std::vector<std::vector<std::int64_t>> groups;
    for (const std::int64_t shift : each.shifts) {
      groups.push_back(each.first);
      for (std::int64_t& chip : groups.back()) chip += shift;
    }
    const double simulated = gather_side_by_side(groups, 16, group.axes[0].ring, 1e9);
    EXPECT_NEAR(simulated / gather(group), 1.0, 0.02) << each.parts[0].size << ":" << each.parts[0].stride;
  }
}

RC_GTEST_PROP(Placement, AnySizesThatDivideFit, ()) {
  // Powers of two in any order: every mesh of as many devices lies somewhere.
  std::int64_t left = 10;  // 1024 = 4 slices of 16 x 16
  std::string mesh;
  for (char name = 'A'; left > 0; ++name) {
    const std::int64_t bits = name == 'F' ? left : *rc::gen::inRange<std::int64_t>(0, left + 1);
    mesh += std::string(mesh.empty() ? "" : ",") + name + "=" + std::to_string(std::int64_t{1} << bits);
    left -= bits;
    if (name == 'F') break;
  }
  const program::Mesh parsed = *program::parse_mesh(mesh, "");
  const auto placement = Placement::make(parsed, cluster("4*tpu-v5e:16x16"), "test");
  RC_ASSERT(static_cast<bool>(placement));
  for (program::AxisSet axes = 0; axes < program::axis_bit(static_cast<int>(parsed.axes.size())); ++axes) {
    const CollectiveGroup group = placement->group(axes);
    RC_ASSERT(group.devices == program::shard_count(parsed, axes));
    double product = 1;
    for (const auto& axis : group.axes) product *= axis.size;
    for (const auto& level : group.levels) product *= level.groups;
    RC_ASSERT(product == group.devices);
  }
}

}  // namespace
}  // namespace assay::collective

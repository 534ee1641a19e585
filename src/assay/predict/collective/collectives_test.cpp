#include "assay/predict/collective/collectives.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <bit>
#include <cmath>
#include <cstdint>

#include "assay/testing/catalogue.h"

namespace assay::collective {
namespace {

using testing::cluster;

CollectiveCost<Plain> cost(program::Collective kind, Bytes bytes, const char* where,
                           const std::vector<std::string>& axes = {}, double inner = 1) {
  return collective_cost(Plain{}, kind, bytes, *make_group(cluster(where), axes, inner, "test"));
}

// A ring of 4 at 45 GB/s one way: 2 hops of a quarter both ways, 8 MiB / 4 x 2 / 45 GB/s = 8 MiB / 90 GB/s = 93.2 us.
TEST(AllGather, OnARingMovesHalfTheArrayEachWay) {
  EXPECT_DOUBLE_EQ(cost(program::Collective::all_gather, 8_MiB, "tpu-v4:4x4x4", {"X"}).bandwidth.value(),
                   (8_MiB / 90_GB_per_s).value());
}

// A line of 4: the end receives three quarters over one link.
TEST(AllGather, OnALineComesInThroughOnePort) {
  EXPECT_DOUBLE_EQ(cost(program::Collective::all_gather, 32_MiB, "tpu-v5e:4x8", {"X"}).bandwidth.value(),
                   (0.75 * 32_MiB / 45_GB_per_s).value());
}

TEST(AllGather, SmallArraysAreBoundByLatency) {
  const auto small = cost(program::Collective::all_gather, 256_B, "tpu-v4:4x4x4", {"X"});
  EXPECT_DOUBLE_EQ(small.lower.value(), 2e-6);  // two hops of 1 us
  EXPECT_GT(small.latency, small.bandwidth);
}

TEST(AllGather, SeveralAxesWorkSideBySide) {
  const auto one = cost(program::Collective::all_gather, 1_GB, "tpu-v4:4x4x4", {"X"}),
             three = cost(program::Collective::all_gather, 1_GB, "tpu-v4:4x4x4");
  EXPECT_DOUBLE_EQ(one.bandwidth / three.bandwidth, 3.0);
}

// 8 GPUs at 450 GB/s: 7/8 of 512 MiB.
TEST(AllGather, InANodeReceivesAllButItsOwnShard) {
  EXPECT_DOUBLE_EQ(cost(program::Collective::all_gather, 512_MiB, "h100-sxm:8").bandwidth.value(),
                   (0.875 * 512_MiB / 450_GB_per_s).value());
}

// 32 nodes at 400 GB/s: the leaf level is slower than the node level, 31/32 of the array.
TEST(AllGather, AcrossNodesIsBoundByTheSlowestLevel) {
  EXPECT_NEAR(cost(program::Collective::all_gather, 512_MiB, "h100-sxm:256").bandwidth.value(),
              (31.0 / 32.0 * 512_MiB / 400_GB_per_s).value(), 1e-12);
}

// An inner axis of 16 spans two nodes, so 16 network ports of 50 GB/s work for one copy; 256 / 16 = 16 groups.
TEST(AllGather, InnerShardsBringTheirPorts) {
  EXPECT_NEAR(cost(program::Collective::all_gather, 512_MiB, "h100-sxm:256", {}, 16).bandwidth.value(),
              (15.0 / 16.0 * 512_MiB / 800_GB_per_s).value(), 1e-12);
}

TEST(AllReduce, CrossesOnceWhereSwitchesAdd) {
  EXPECT_DOUBLE_EQ(cost(program::Collective::all_reduce, 1_GB, "h100-sxm:8").bandwidth.value(),
                   (1_GB / 450_GB_per_s).value());
  EXPECT_DOUBLE_EQ(cost(program::Collective::all_reduce, 1_GB, "a100-sxm-80:8").bandwidth.value(),
                   (2 * 0.875 * 1_GB / 300_GB_per_s).value());
}

TEST(AllToAll, CostsAQuarterOfAnAllGatherOnARing) {
  const auto exchange = cost(program::Collective::all_to_all, 1_GB, "tpu-v5e:16x16", {"X"}),
             gather = cost(program::Collective::all_gather, 1_GB, "tpu-v5e:16x16", {"X"});
  EXPECT_DOUBLE_EQ(exchange.bandwidth / gather.bandwidth, 0.25);
}

TEST(Collective, UnknownAxesAndKindsAreNamed) {
  EXPECT_EQ(make_group(cluster("tpu-v5e:4x4"), {"W"}, 1, "--axes").error().where, "--axes");
  EXPECT_FALSE(make_group(cluster("h100-sxm:8"), {"X"}, 1, "--axes"));
  EXPECT_FALSE(make_group(cluster("tpu-v5e:4x4"), {"X", "X"}, 1, "--axes"));
  EXPECT_NE(program::parse_collective("allgather", "").error().hint.find("all-gather"), std::string::npos);
}

// Four neighbours on a ring of 16 are a line: 3/4 of the array over one link. Every fourth chip closes a ring, whose
// links four such rings share: 4 x V / 2W.
TEST(AllGather, OnAPartOfAnAxisIsALineOrSharesItsLinks) {
  EXPECT_DOUBLE_EQ(cost(program::Collective::all_gather, 1_GB, "tpu-v5e:16x16", {"X=4"}).bandwidth.value(),
                   (0.75 * 1_GB / 45_GB_per_s).value());
  EXPECT_DOUBLE_EQ(cost(program::Collective::all_gather, 1_GB, "tpu-v5e:16x16", {"X=4:4"}).bandwidth.value(),
                   (2.0 * 1_GB / 45_GB_per_s).value());
  EXPECT_DOUBLE_EQ(cost(program::Collective::all_gather, 1_GB, "tpu-v5e:16x16", {"X=4:4"}).latency.value(), 8e-6);
}

// 4 slices, 16 chips of each with 25 Gbit/s: 3/4 of the array over 16 ports.
TEST(AllGather, AcrossSlicesAndAnAxisIsBoundByTheSlower) {
  EXPECT_DOUBLE_EQ(cost(program::Collective::all_gather, 1_GB, "4*tpu-v5e:16x16", {"X", "slices"}).bandwidth.value(),
                   (0.75 * 1_GB / (16 * 25_Gbit_per_s)).value());
}

// Among X, Y and Z, the collective uses X and the array is sharded over Z: Y is idle, and twice as many rings gather
// twice as fast.
TEST(IdleAxes, AreNeitherExchangedOverNorSharded) {
  const hardware::Cluster cube = cluster("tpu-v4:4x4x4");
  const CollectiveGroup group = *make_group(cube, {"X"}, 1, "test");
  const IdleAxes idle = idle_axes(cube, {"X"}, group, *program::parse_mesh("Z=4", "test"));
  EXPECT_EQ(idle.names, std::vector<std::string>{"Y"});
  EXPECT_EQ(idle.wider.devices, 16.0);
  EXPECT_DOUBLE_EQ(collective_cost(Plain{}, program::Collective::all_gather, 1_GB, group).bandwidth /
                       collective_cost(Plain{}, program::Collective::all_gather, 1_GB, idle.wider).bandwidth,
                   2.0);
  EXPECT_TRUE(idle_axes(cube, {}, *make_group(cube, {}, 1, "test"), {}).names.empty());
  EXPECT_EQ(idle_axes(cube, {"X=2"}, *make_group(cube, {"X=2"}, 1, "test"), {}).names.size(), 2u);
}

TEST(PointToPoint, UsesOneLinkOrOnePort) {
  EXPECT_DOUBLE_EQ(cost(program::Collective::point_to_point, 1_GB, "tpu-v4:4x4x4").bandwidth.value(),
                   (1_GB / 45_GB_per_s).value());
  EXPECT_DOUBLE_EQ(cost(program::Collective::point_to_point, 1_GB, "h100-sxm:8").bandwidth.value(),
                   (1_GB / 450_GB_per_s).value());
  EXPECT_DOUBLE_EQ(cost(program::Collective::point_to_point, 1_GB, "h100-sxm:64").bandwidth.value(),
                   (1_GB / 50_GB_per_s).value());
}

TEST(RaggedAllToAll, EvenlyFilledIsAnAllToAll) {
  for (const char* where : {"tpu-v5e:16x16", "tpu-v4:4x4x8", "h100-sxm:64"})
    EXPECT_NEAR(cost(program::Collective::ragged_all_to_all, 1_GB, where).bandwidth.value(),
                cost(program::Collective::all_to_all, 1_GB, where).bandwidth.value(), 1e-15)
        << where;
}

TEST(RaggedAllToAll, WaitsForTheBusiestDevice) {
  CollectiveGroup group = *make_group(cluster("h100-sxm:8"), {}, 1, "test");
  group.imbalance = 3;
  EXPECT_DOUBLE_EQ(collective_cost(Plain{}, program::Collective::ragged_all_to_all, 1_GB, group).bandwidth.value(),
                   (3.0 * 7.0 / 64.0 * 1_GB / 450_GB_per_s).value());
}

program::Collective any_kind() {
  return static_cast<program::Collective>(*rc::gen::inRange<std::size_t>(0, program::collective_kinds));
}

const char* any_cluster() {
  return *rc::gen::element("tpu-v5e:4x4", "tpu-v5e:8x16", "tpu-v4:4x4x8", "tpu-v5p:2x2x4", "h100-sxm:8", "h100-sxm:256",
                           "gb200-nvl72:144", "l4:4");
}

RC_GTEST_PROP(Collective, MoreBytesNeverTakeLessTime, ()) {
  const program::Collective kind = any_kind();
  const char* where = any_cluster();
  const auto bytes = static_cast<double>(*rc::gen::inRange<std::int64_t>(1, 1'000'000'000));
  const auto more = bytes * static_cast<double>(*rc::gen::inRange(1, 1000));
  const auto a = cost(kind, Bytes(bytes), where), b = cost(kind, Bytes(more), where);
  RC_ASSERT(a.lower <= b.lower);
  RC_ASSERT(a.lower <= a.upper);
  RC_ASSERT(a.upper <= 2.0 * a.lower);
}

RC_GTEST_PROP(Collective, CostsAreStraightLines, ()) {
  const program::Collective kind = any_kind();
  const CollectiveGroup group = *make_group(cluster(any_cluster()), {}, 1, "test");
  const Bytes bytes(static_cast<double>(*rc::gen::inRange<std::int64_t>(1, 1'000'000'000)));
  const CollectiveLine line = collective_line(kind, group);
  const auto exact = collective_cost(Plain{}, kind, bytes, group);
  RC_ASSERT(std::abs(line.lower(bytes) / exact.lower - 1.0) < 1e-12);
  RC_ASSERT(std::abs(line.upper(bytes) / exact.upper - 1.0) < 1e-12);
}

RC_GTEST_PROP(Collective, PlainAndTracedAgreeBitForBit, ()) {
  const program::Collective kind = any_kind();
  const CollectiveGroup group = *make_group(cluster(any_cluster()), {}, 1, "test");
  const Bytes bytes(static_cast<double>(*rc::gen::inRange<std::int64_t>(1, 1'000'000'000)));
  Ledger ledger;
  const auto plain_cost = collective_cost(Plain{}, kind, bytes, group);
  const auto traced = collective_cost(Traced{&ledger}, kind, bytes, group);
  RC_ASSERT(std::bit_cast<std::uint64_t>(plain_cost.lower.value()) ==
            std::bit_cast<std::uint64_t>(traced.lower.value()));
  RC_ASSERT(std::bit_cast<std::uint64_t>(plain_cost.upper.value()) ==
            std::bit_cast<std::uint64_t>(traced.upper.value()));
}

TEST(Collectives, NamesReadBackAsTheirKind) {
  for (const program::CollectiveFacts& each : program::all_collectives)
    EXPECT_EQ(*program::parse_collective(each.name, "test"), each.kind);
  EXPECT_EQ(program::parse_collective("all-together", "test").error().what, "unknown collective \"all-together\"");
}

// 256 GPUs: 8 chips at 450 GB/s in a node, 32 nodes at 400 GB/s; the slowest level is the closed form.
TEST(LevelTraffic, TheSlowestLevelIsTheBandwidthTerm) {
  const CollectiveGroup group = *make_group(cluster("h100-sxm:256"), {}, 1, "test");
  const std::vector<LevelTraffic> levels = level_traffic(program::Collective::all_gather, 512_MiB, group);
  ASSERT_EQ(levels.size(), 2u);
  EXPECT_EQ(levels[0].groups, 8.0);
  EXPECT_EQ(levels[1].groups, 32.0);
  EXPECT_DOUBLE_EQ(levels[1].into_child.value(), (31.0 / 32.0 * 512_MiB).value());
  EXPECT_DOUBLE_EQ(std::max(levels[0].time, levels[1].time).value(),
                   collective_cost(Plain{}, program::Collective::all_gather, 512_MiB, group).bandwidth.value());
}

TEST(LevelTraffic, SwitchesThatDoNotAddCarryAnAllReduceTwice) {
  const CollectiveGroup group = *make_group(cluster("h100-sxm:8"), {}, 1, "test");
  const auto adds = level_traffic(program::Collective::all_reduce, 1_GB, group);
  const auto plain = level_traffic(program::Collective::all_reduce, 1_GB, without_in_network_reduction(group));
  EXPECT_TRUE(adds.front().reduces);
  EXPECT_DOUBLE_EQ(plain.front().into_child / adds.front().into_child, 2.0 * 7.0 / 8.0);
}

}  // namespace
}  // namespace assay::collective

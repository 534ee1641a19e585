#include "assay/predict/collective/simulator/simulator.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>

#include <array>
#include <cmath>
#include <vector>

namespace assay::collective {
namespace {

using Kind = program::Collective;
constexpr Bytes array_bytes(1e9);
constexpr std::array spreading = {Kind::all_gather, Kind::reduce_scatter, Kind::all_reduce};

CollectiveGroup torus(const std::vector<CollectiveGroup::TorusAxis>& axes, Seconds latency = Seconds(0)) {
  CollectiveGroup group;
  for (const auto& axis : axes) group.axes.push_back(axis);
  group.link = 1_GB_per_s;
  group.hop_latency = latency;
  for (const auto& axis : axes) group.devices *= axis.size;
  return group;
}

CollectiveGroup ring(double n, Seconds latency = Seconds(0)) { return torus({{n, true}}, latency); }
CollectiveGroup line(double n, Seconds latency = Seconds(0)) { return torus({{n, false}}, latency); }

struct TestLevel {
  double groups, bandwidth;  ///< per chip, in GB/s
  bool reduces = false;
};

CollectiveGroup tree(const std::vector<TestLevel>& levels) {
  CollectiveGroup group;
  for (const TestLevel& level : levels) {
    group.levels.push_back({level.groups, group.devices, level.bandwidth * 1_GB_per_s, level.reduces});
    group.devices *= level.groups;
  }
  return group;
}

double closed(Kind kind, const CollectiveGroup& group, Bytes bytes = array_bytes) {
  return collective_cost(Plain{}, kind, bytes, group).bandwidth.value();
}

double simulated(Kind kind, const CollectiveGroup& group, const SimulationOptions& options = {},
                 Bytes bytes = array_bytes) {
  return simulate_collective(kind, bytes, group, options).time.value();
}

double ratio(Kind kind, const CollectiveGroup& group, const SimulationOptions& options = {}) {
  return simulated(kind, group, options) / closed(kind, group);
}

double any_size(int low, int high) { return *rc::gen::inRange(low, high + 1); }

std::vector<CollectiveGroup::TorusAxis> any_axes(std::size_t count, int low, int high, bool only_rings) {
  std::vector<CollectiveGroup::TorusAxis> axes;
  for (std::size_t i = 0; i < count; ++i)
    axes.push_back({any_size(low, high), only_rings || *rc::gen::arbitrary<bool>()});
  return axes;
}

// Four chips in a ring, 400 bytes, 100 B/s, 1 s latency. A shard is 100 bytes: 1 s on a link. Upwards each chip sends
// its own shard (0 s to 1 s, there at 2 s) and passes on its neighbour's (2 s to 3 s, there at 4 s); downwards only its
// own, as the shard from opposite has come the other way. So 4 s, 200 bytes up, 100 bytes down; busy 2 s and 1 s of 4
// s.
TEST(Simulator, RingOfFourOnPaper) {
  CollectiveGroup group = ring(4, Seconds(1));
  group.link = BytesPerSecond(100);
  SimulationOptions whole_shards;
  whole_shards.chunks = 1;
  const Simulation result = simulate_collective(Kind::all_gather, Bytes(400), group, whole_shards);
  EXPECT_DOUBLE_EQ(result.time.value(), 4.0);
  EXPECT_EQ(result.busiest_link, Bytes(200));
  ASSERT_EQ(result.links.size(), 2U);
  EXPECT_EQ(result.links[1].bytes, Bytes(100));
  EXPECT_DOUBLE_EQ(result.mean_load, (0.5 + 0.25) / 2.0);
  EXPECT_EQ(result.events, 3);
  // In half shards the link need not wait: 0 to 1 s its own halves, which come in at 1.5 s and 2 s and go on from 1.5 s
  // to 2 s and from 2 s to 2.5 s; the last half is there at 3.5 s.
  whole_shards.chunks = 2;
  EXPECT_DOUBLE_EQ(simulate_collective(Kind::all_gather, Bytes(400), group, whole_shards).time.value(), 3.5);
}

// Eight chips of a line, 1 GB: the last one gets 7 shards of 125 MB over one link of 1 GB/s.
TEST(Simulator, TheEndOfALineGetsAllOverOneLink) {
  const Simulation result = simulate_collective(Kind::all_gather, array_bytes, line(8));
  EXPECT_NEAR(result.time.value(), 0.875, 1e-9);
  EXPECT_NEAR(result.busiest_link.value(), 875e6, 1e-3);
}

TEST(Simulator, OneWayRoundTakesTwiceAsLong) {
  SimulationOptions one_way;
  one_way.both_directions = false;
  EXPECT_NEAR(simulated(Kind::all_gather, ring(9), one_way), 2.0 * simulated(Kind::all_gather, ring(9)), 1e-9);
  EXPECT_NEAR(simulated(Kind::all_gather, ring(8), one_way), 0.875, 1e-9);
}

TEST(Simulator, SplittingTheFarthestShardSavesOneInN) {
  SimulationOptions split;
  split.split_ties = true;
  EXPECT_NEAR(ratio(Kind::all_gather, ring(8), split), 7.0 / 8.0, 0.001);
  EXPECT_NEAR(ratio(Kind::reduce_scatter, ring(8), split), 7.0 / 8.0, 0.001);
}

RC_GTEST_PROP(Simulator, AgreesOnOneRing, ()) {
  const CollectiveGroup group = ring(any_size(2, 40));
  for (const Kind kind : spreading) RC_ASSERT(std::abs(ratio(kind, group) - 1.0) < 0.01);
}

RC_GTEST_PROP(Simulator, AgreesOnOneLine, ()) {
  const CollectiveGroup group = line(any_size(2, 24));
  for (const Kind kind : spreading) RC_ASSERT(std::abs(ratio(kind, group) - 1.0) < 0.01);
}

// The closed form of several rings counts the own shard too: the simulation takes (N - 1) / N of it.
RC_GTEST_PROP(Simulator, AgreesOnSeveralRings, ()) {
  const CollectiveGroup group = torus(any_axes(*rc::gen::element<std::size_t>(2, 3), 3, 9, true));
  const double own = (group.devices - 1.0) / group.devices;
  for (const Kind kind : spreading) RC_ASSERT(std::abs(ratio(kind, group) / own - 1.0) < 0.01);
}

RC_GTEST_PROP(Simulator, AgreesOnSeveralLines, ()) {
  auto axes = any_axes(2, 2, 7, false);
  for (auto& axis : axes) axis.ring = false;
  for (const Kind kind : spreading) RC_ASSERT(std::abs(ratio(kind, torus(axes)) - 1.0) < 0.01);
}

// A gather over a line and a ring keeps the narrow end of the line busy throughout. The reverse, first come first
// served, does not: up to 22 % are lost (8 x 4), to the order of sending and not to the wire.
RC_GTEST_PROP(Simulator, AgreesOnALineAndARing, ()) {
  const CollectiveGroup group = torus({{any_size(2, 8), false}, {any_size(3, 12), true}});
  RC_ASSERT(std::abs(ratio(Kind::all_gather, group) - 1.0) < 0.01);
  const double scattered = ratio(Kind::reduce_scatter, group);
  RC_ASSERT(scattered > 0.999 && scattered < 1.25);
}

RC_GTEST_PROP(Simulator, AgreesOnAllToAllOfEvenAxes, ()) {
  auto axes = any_axes(*rc::gen::inRange<std::size_t>(1, 3), 1, 5, false);
  for (auto& axis : axes) axis.size *= 2.0;
  RC_ASSERT(std::abs(ratio(Kind::all_to_all, torus(axes)) - 1.0) < 0.01);
}

// (n^2 - 1) / n^2: an odd axis has no half.
TEST(Simulator, OddAxesExchangeALittleFaster) {
  EXPECT_NEAR(ratio(Kind::all_to_all, ring(5)), 24.0 / 25.0, 0.005);
  EXPECT_NEAR(ratio(Kind::all_to_all, line(5)), 24.0 / 25.0, 0.005);
}

RC_GTEST_PROP(Simulator, AgreesOnOneSwitch, ()) {
  const double n = any_size(2, 64);
  for (const bool adds : {false, true})
    for (const Kind kind :
         {Kind::all_gather, Kind::reduce_scatter, Kind::all_reduce, Kind::all_to_all, Kind::broadcast, Kind::permute})
      RC_ASSERT(std::abs(ratio(kind, tree({{n, 1, adds}})) - 1.0) < 0.01);
}

RC_GTEST_PROP(Simulator, AgreesOnNodesBelowASwitch, ()) {
  const double slower = any_size(1, 12);
  const CollectiveGroup group = tree({{any_size(2, 8), 10.0}, {any_size(2, 32), 10.0 / slower}});
  for (const Kind kind : spreading) RC_ASSERT(std::abs(ratio(kind, group) - 1.0) < 0.01);
  RC_ASSERT(simulated(Kind::all_to_all, group) < 1.01 * closed(Kind::all_to_all, group));
}

TEST(Simulator, AgreesOnRootedCollectivesOfEvenRings) {
  for (const Kind kind : {Kind::broadcast, Kind::reduce})
    for (const CollectiveGroup& group :
         {ring(8), torus({{4, true}, {6, true}}), torus({{4, true}, {4, true}, {8, true}})})
      EXPECT_NEAR(ratio(kind, group), 1.0, 0.01);
}

// The ports of the trees: had two trees shared a link, it would carry more than one part.
RC_GTEST_PROP(Simulator, RootedTreesShareNoLink, ()) {
  const auto axes = any_axes(*rc::gen::inRange<std::size_t>(1, 4), 3, 5, *rc::gen::arbitrary<bool>());
  const CollectiveGroup group = torus(axes);
  bool all_closed = true;
  for (const auto& axis : axes) all_closed = all_closed && axis.ring;
  const double trees = static_cast<double>(axes.size()) * (all_closed ? 2.0 : 1.0);
  SimulationOptions whole;
  whole.use_symmetry = false;
  whole.chunks = 20;
  const Simulation all = simulate_collective(Kind::broadcast, array_bytes, group, whole);
  RC_ASSERT(std::abs(all.busiest_link.value() - 1e9 / trees) < 1.0);
  for (std::size_t chip = 1; chip < all.delivered.size(); ++chip)
    RC_ASSERT(std::abs(all.delivered[chip].value() - 1e9) < 1.0);
  SimulationOptions branch = whole;
  branch.use_symmetry = true;
  for (const Kind kind : {Kind::broadcast, Kind::reduce})
    RC_ASSERT(std::abs(simulated(kind, group, whole) / simulated(kind, group, branch) - 1.0) < 1e-9);
}

RC_GTEST_PROP(Simulator, SymmetryChangesNothing, ()) {
  const auto axes = any_axes(*rc::gen::inRange<std::size_t>(1, 4), 2, 4, false);
  const CollectiveGroup group = torus(axes, Seconds(*rc::gen::element(0.0, 1e-4, 0.01)));
  SimulationOptions one, every;
  one.chunks = every.chunks = *rc::gen::inRange(1, 4);
  every.use_symmetry = false;
  for (const Kind kind : {Kind::all_gather, Kind::reduce_scatter, Kind::all_reduce, Kind::all_to_all, Kind::permute}) {
    RC_ASSERT(std::abs(simulated(kind, group, one) / simulated(kind, group, every) - 1.0) < 1e-9);
  }
  const CollectiveGroup switched = tree({{any_size(1, 4), 10.0}, {any_size(2, 4), 1.0}, {any_size(1, 3), 1.0}});
  for (const Kind kind : {Kind::all_gather, Kind::reduce_scatter, Kind::all_reduce, Kind::all_to_all})
    RC_ASSERT(std::abs(simulated(kind, switched, one) / simulated(kind, switched, every) - 1.0) < 1e-9);
}

RC_GTEST_PROP(Simulator, EveryDeviceGetsWhatItIsMeantToGet, ()) {
  const CollectiveGroup switched = tree({{any_size(2, 6), 10.0}, {any_size(1, 5), 1.0}});
  const CollectiveGroup closed_and_open = torus(any_axes(*rc::gen::inRange<std::size_t>(1, 4), 2, 4, false));
  SimulationOptions every;
  every.use_symmetry = *rc::gen::arbitrary<bool>();
  every.chunks = 2;
  for (const CollectiveGroup& group : {switched, closed_and_open}) {
    const double others = (group.devices - 1.0) / group.devices * array_bytes.value();
    for (const Bytes got : simulate_collective(Kind::all_gather, array_bytes, group, every).delivered)
      RC_ASSERT(std::abs(got.value() - others) < 1.0);
    for (const Bytes got : simulate_collective(Kind::all_to_all, array_bytes, group, every).delivered)
      RC_ASSERT(std::abs(got.value() - others / group.devices) < 1.0);
  }
}

RC_GTEST_PROP(Simulator, NeverFasterThanTheWire, ()) {
  const CollectiveGroup group =
      torus(any_axes(*rc::gen::inRange<std::size_t>(1, 4), 2, 5, false), Seconds(*rc::gen::element(0.0, 1e-3)));
  double ports = 0;  // ports of the chip with the fewest
  for (const auto& axis : group.axes) ports += axis.ring && axis.size > 2.0 ? 2.0 : 1.0;
  const double least = (group.devices - 1.0) / group.devices / ports;
  RC_ASSERT(simulated(Kind::all_gather, group) > least * (1.0 - 1e-9));
  RC_ASSERT(simulated(Kind::reduce_scatter, group) > least * (1.0 - 1e-9));
  RC_ASSERT(simulated(Kind::all_reduce, group) > 2.0 * least * (1.0 - 1e-9));
  RC_ASSERT(simulated(Kind::all_to_all, group) > least / group.devices * (1.0 - 1e-9));
  for (const Kind kind : {Kind::broadcast, Kind::reduce})
    RC_ASSERT(simulated(kind, group) > 1.0 / ports * (1.0 - 1e-9));
}

RC_GTEST_PROP(Simulator, MoreBytesNeverTakeLessTime, ()) {
  const CollectiveGroup group = torus(any_axes(*rc::gen::inRange<std::size_t>(1, 3), 2, 5, false), 1_us);
  const CollectiveGroup switched = tree({{any_size(2, 6), 10.0}, {any_size(1, 5), 1.0}});
  const Bytes less(*rc::gen::inRange(1, 1000000)), more = less + Bytes(*rc::gen::inRange(0, 1000000));
  for (const Kind kind : {Kind::all_gather, Kind::reduce_scatter, Kind::all_reduce, Kind::all_to_all, Kind::permute,
                          Kind::broadcast, Kind::reduce})
    for (const CollectiveGroup& each : {group, switched})
      RC_ASSERT(simulated(kind, each, {}, less) <= simulated(kind, each, {}, more) * (1.0 + 1e-9));
}

// Lower: latency or bandwidth, whichever is longer. Upper: both, one after the other. From all latency to all
// bandwidth.
RC_GTEST_PROP(Simulator, LiesBetweenTheBoundsWhenLatencyCounts, ()) {
  const double n = any_size(2, 16);
  const Bytes bytes(std::pow(10.0, *rc::gen::inRange(2, 9)));
  for (const CollectiveGroup& group : {ring(n, 1_us), line(n, 1_us)})
    for (const Kind kind : spreading) {
      const CollectiveCost<Plain> bounds = collective_cost(Plain{}, kind, bytes, group);
      const double time = simulated(kind, group, {}, bytes);
      RC_ASSERT(time >= bounds.lower.value() * (1.0 - 1e-9));
      RC_ASSERT(time <= bounds.upper.value() * (1.0 + 1e-9));
    }
}

TEST(Simulator, TwoCollectivesOnOneAxisTakeTwiceAsLong) {
  const CollectiveGroup group = torus({{8, true}, {8, true}});
  const SimulatedCollective along_x{Kind::all_gather, array_bytes, {0}}, along_y{Kind::all_gather, array_bytes, {1}};
  const auto together = [&](const SimulatedCollective& a, const SimulatedCollective& b) {
    const std::array both = {a, b};
    return simulate_together(both, group).time.value();
  };
  const double alone = simulate_together({&along_x, 1}, group).time.value();
  EXPECT_NEAR(alone, closed(Kind::all_gather, ring(8)), 0.005);
  EXPECT_NEAR(together(along_x, along_x) / alone, 2.0, 0.02);
  EXPECT_NEAR(together(along_x, along_y) / alone, 1.0, 0.01);
  // A gather over both axes costs 63/64 / 4 = 0.246 s of all links by itself; with 0.5 s on the links of X, which wait
  // for parts that come over Y, it is about the sum.
  const SimulatedCollective both_axes{Kind::all_gather, array_bytes, {}};
  EXPECT_GT(together(along_x, both_axes), 0.74);
}

// One of 8 devices is sent five times its share. A switch's port to it then carries five times as much; on a ring,
// where the bytes of a link stem from many pairs, the two links into it become the bottleneck.
TEST(Simulator, AHotDestinationSlowsAnAllToAllDown) {
  SimulationOptions hot;
  hot.skew = 4.0;
  const double even = simulated(Kind::all_to_all, ring(8)), uneven = simulated(Kind::all_to_all, ring(8), hot);
  EXPECT_GT(uneven, 1.2 * even);
  EXPECT_NEAR(simulated(Kind::all_to_all, tree({{8, 1}}), hot) / simulated(Kind::all_to_all, tree({{8, 1}})), 5.0, 0.1);
}

// The last reduction step of one end of a line is the first gathering step of the other: the passes load different
// links, and each link carries the array once, not 2 (n - 1) / n times.
TEST(Simulator, OverlappedPassesOnALineTakeHalfTheTime) {
  SimulationOptions overlap;
  overlap.overlap_passes = true;
  EXPECT_NEAR(simulated(Kind::all_reduce, line(8), overlap), 1.0, 0.03);
  EXPECT_NEAR(simulated(Kind::all_reduce, line(8)), 1.75, 0.01);
}

// What lies behind the spine enters a node over the same cards as what lies behind the leaf: 127/128 of the array,
// where the closed form counts 31/32.
TEST(Simulator, LevelsAboveUseThePortsBelow) {
  const CollectiveGroup group = tree({{8, 10.0}, {32, 1.0}, {4, 1.0}});
  EXPECT_NEAR(ratio(Kind::all_gather, group), (127.0 / 128.0) / (31.0 / 32.0), 0.01);
}

// The switch of the node adds and hands each chip an eighth for its card; the eighth goes up once more to be copied.
TEST(Simulator, InNetworkReductionOverTwoLevelsSendsAnEighthTwice) {
  const CollectiveGroup node_bound = tree({{8, 1.0, true}, {32, 1.0, true}});
  EXPECT_NEAR(ratio(Kind::all_reduce, node_bound), 1.125, 0.015);
  const CollectiveGroup card_bound = tree({{8, 1.0, true}, {32, 0.1, true}});
  EXPECT_NEAR(ratio(Kind::all_reduce, card_bound), 1.0, 0.01);
}

// All of the array must enter the root, and leave it: not (n - 1) / n of it.
TEST(Simulator, RootsOfLinesAndOddRingsMoveAllOfTheArray) {
  EXPECT_NEAR(ratio(Kind::broadcast, line(8)), 1.0, 0.01);
  EXPECT_NEAR(ratio(Kind::reduce, line(8)), 1.0, 0.01);
  EXPECT_NEAR(ratio(Kind::broadcast, ring(7)), 1.0, 0.01);
  EXPECT_NEAR(ratio(Kind::reduce, tree({{8, 1}})), 1.0, 0.01);
}

TEST(Simulator, AGatherOf4096ChipsIsSmall) {
  const CollectiveGroup group = torus({{16, true}, {16, true}, {16, true}});
  const Simulation result = simulate_collective(Kind::all_gather, array_bytes, group);
  EXPECT_NEAR(result.time.value(), 4095.0 / 4096.0 / 6.0, 1e-4);
  EXPECT_LT(result.events, 200000);
  EXPECT_GT(result.mean_load, 0.999);
}

TEST(Simulator, OneParticipantIsFree) {
  EXPECT_EQ(simulate_collective(Kind::all_gather, array_bytes, torus({})).time, Seconds(0));
  EXPECT_EQ(simulate_collective(Kind::all_gather, array_bytes, tree({{1, 1}})).time, Seconds(0));
}

}  // namespace
}  // namespace assay::collective

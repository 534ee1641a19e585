#include "assay/predict/collective/collective_models.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <vector>

namespace assay::collective {
namespace {

hardware::CollectiveCalibration simple() {
  const hardware::CollectiveCurve curve{10_us, 1_us, 0.5, 0.0, Seconds(0)};
  const hardware::AcrossCurve across{50_us};
  return {curve, curve, curve, curve, 0.0, across, across, across, across};
}

/// Links of 100 GB/s in a node, interfaces of 10 GB/s per chip.
collective::CollectiveGroup group(double members, double nodes = 1, bool reduces = false) {
  collective::CollectiveGroup g;
  g.devices = members * nodes;
  g.levels.push_back({members, 1.0, 100_GB_per_s, reduces, 0});
  if (nodes > 1) g.levels.push_back({nodes, members, 10_GB_per_s, false, 1});
  return g;
}

double us(Seconds t) { return t.in(1_us); }

TEST(CollectiveEstimate, OneNodeByHand) {
  // 8 chips: latency 10 + 7 us; 7/8 of 1 GB at half of 100 GB/s = 17.5 ms; an all-reduce moves twice that.
  EXPECT_NEAR(us(collective_estimate(simple(), program::Collective::all_gather, 1_GB, group(8))), 17 + 17500, 1e-6);
  EXPECT_NEAR(us(collective_estimate(simple(), program::Collective::all_reduce, 1_GB, group(8))), 17 + 35000, 1e-6);
  // All-to-all of 8 GB in all: each chip sends 7/8 of its 1 GB.
  EXPECT_NEAR(us(collective_estimate(simple(), program::Collective::all_to_all, 8_GB, group(8))), 17 + 17500, 1e-6);
}

TEST(CollectiveEstimate, PipeliningLeavesTwiceTheRootOfStreamAndChunk) {
  hardware::CollectiveCalibration fit = simple();
  fit.all_gather.chunk = 7_us;
  // 2 sqrt(17500 * 7) = 700 us
  EXPECT_NEAR(us(collective_estimate(fit, program::Collective::all_gather, 1_GB, group(8))), 17 + 17500 + 700, 1e-6);
}

TEST(CollectiveEstimate, SmallGroupsAreSlowerByThePairTerm) {
  hardware::CollectiveCalibration fit = simple();
  fit.all_gather.pair = 1.0;
  // 2 chips: half of 1 GB at 50 / 1.5 GB/s = 15 ms
  EXPECT_NEAR(us(collective_estimate(fit, program::Collective::all_gather, 1_GB, group(2))), 11 + 15000, 1e-6);
}

TEST(CollectiveEstimate, SwitchesAddWhereTheyCanAndItPays) {
  hardware::CollectiveCalibration fit = simple();
  fit.in_network = 0.4;
  // 1 GB at 40 GB/s = 25 ms against 35 ms by ring
  EXPECT_NEAR(us(collective_estimate(fit, program::Collective::all_reduce, 1_GB, group(8, 1, true))), 17 + 25000, 1e-6);
  EXPECT_NEAR(us(collective_estimate(fit, program::Collective::all_reduce, 1_GB, group(8, 1, true),
                                     hardware::Fabric::infiniband, CollectiveAlgorithm::ring)),
              17 + 35000, 1e-6);
  EXPECT_NEAR(us(collective_estimate(fit, program::Collective::all_reduce, 1_GB, group(8))), 17 + 35000, 1e-6);
  // Two chips: a ring moves 1 GB at 50 GB/s, which is faster.
  EXPECT_NEAR(us(collective_estimate(fit, program::Collective::all_reduce, 1_GB, group(2, 1, true))), 11 + 20000, 1e-6);
}

TEST(CollectiveEstimate, AcrossNodesRingsGatherAndATreeOfNodesReduces) {
  // 2 nodes of 8: 15/16 of 1 GB over 80 GB/s = 11.719 ms, but within the node 7/8 at 50 GB/s = 17.5 ms is longer.
  hardware::CollectiveCalibration fit = simple();
  EXPECT_NEAR(us(collective_estimate(fit, program::Collective::all_gather, 1_GB, group(8, 2))), 50 + 17500, 1e-6);
  fit.all_gather.share = 1.0;
  EXPECT_NEAR(us(collective_estimate(fit, program::Collective::all_gather, 1_GB, group(8, 2))), 50 + 11718.75, 1e-6);
  fit.all_reduce.share = 1.2, fit.in_network = 0.0;
  const collective::CollectiveGroup two = group(2, 2);
  // 2 x 2 chips: 20 GB/s between nodes: up and down a tree, 50 ms; twice around a ring 2 * 3/4 = 75 ms.
  EXPECT_NEAR(us(collective_estimate(fit, program::Collective::all_reduce, 1_GB, two)), 2 * 50 + 50000, 1e-6);
  EXPECT_NEAR(us(collective_estimate(fit, program::Collective::all_reduce, 1_GB, two, hardware::Fabric::infiniband,
                                     CollectiveAlgorithm::ring)),
              2 * 50 + 75000, 1e-6);
  // Four nodes pass each byte on twice: 2 * 7/8 over 20 GB/s in a ring of 2 * 3 steps between nodes.
  EXPECT_NEAR(us(collective_estimate(fit, program::Collective::all_reduce, 1_GB, group(2, 4))), 6 * 50 + 87500, 1e-6);
}

TEST(CollectiveEstimate, ChainsOfChipsBoundATreeAndRingsTakeOverWhereTheyAreFaster) {
  hardware::CollectiveCalibration fit = simple();
  fit.all_reduce.share = 10.0;
  // 80 GB/s between two nodes of 8: 12.5 ms by a tree, 23.4375 ms by a ring.
  const collective::CollectiveGroup two = group(8, 2);
  const auto time = [&] { return us(collective_estimate(fit, program::Collective::all_reduce, 1_GB, two)); };
  EXPECT_NEAR(time(), 100 + 12500, 1e-6);
  fit.tree = 50_GB_per_s;
  EXPECT_NEAR(time(), 100 + 20000, 1e-6);
  fit.tree = 25_GB_per_s;
  EXPECT_NEAR(time(), 100 + 23437.5, 1e-6);
  // One chip of a node has no chain.
  EXPECT_NEAR(us(collective_estimate(fit, program::Collective::all_reduce, 1_GB, group(1, 2))), 100 + 100000, 1e-6);
}

/// A calibration with the library's own numbers; a fabric adds `added` to each step.
hardware::CollectiveCalibration published(std::string_view architecture, Seconds added) {
  hardware::CollectiveCalibration fit = simple();
  fit.infiniband = fit.efa = fit.tcpxo = hardware::AcrossCurve{added};
  fit.run(*hardware::collective_protocols_of(hardware::Catalogue::builtin()), architecture);
  return fit;
}

TEST(CollectiveEstimate, TheLibrarysOwnStepsStartCollectivesBetweenNodes) {
  const auto started = [](std::string_view architecture, Seconds added, hardware::Fabric fabric,
                          program::Collective kind, double nodes) {
    return us(collective_estimate(published(architecture, added), kind, Bytes(0), group(8, nodes), fabric));
  };
  using enum program::Collective;
  using hardware::Fabric;
  // LL up and down a tree of 2 and 4 nodes: 6.8 + 2 (7 * 0.6 + 5), and two steps between nodes instead of one.
  EXPECT_NEAR(started("Hopper", Seconds(0), Fabric::infiniband, all_reduce, 2), 25.2, 1e-6);
  EXPECT_NEAR(started("Hopper", Seconds(0), Fabric::infiniband, all_reduce, 4), 35.2, 1e-6);
  // LL around a ring of 16: 6.6 + 14 steps of at least 1 us and one of 2.7 us.
  EXPECT_NEAR(started("Hopper", Seconds(0), Fabric::infiniband, all_gather, 2), 23.3, 1e-6);
  // A fabric that adds 20 us to a step.
  EXPECT_NEAR(started("Hopper", 20_us, Fabric::efa, all_reduce, 2), 25.2 + 2 * 20, 1e-6);
  // Only Simple runs, and received bytes are flushed: 8.4 + 2 (7 * 4 + 14 + 2 * 20).
  EXPECT_NEAR(started("Ampere", 20_us, Fabric::efa, all_reduce, 2), 172.4, 1e-6);
}

TEST(CollectiveEstimate, LongArraysFillATreeAndShortOnesHalfAsLongAsTheyTakeAgain) {
  hardware::CollectiveCalibration fit = published("Ampere", Seconds(0));
  fit.efa->runs.flushes = false;
  fit.all_reduce.share = 10.0;
  fit.chunk = 10_us;
  const auto time = [&](Bytes bytes) {
    return us(collective_estimate(fit, program::Collective::all_reduce, bytes, group(8, 2), hardware::Fabric::efa));
  };
  // 0.92 * 0.92 of 80 GB/s between two nodes; 16 hops of 10 us, d: d / (1 + d / 2 w) of w = 14.768 ms for 1 GB.
  const double moved = 1e6 / (0.92 * 0.92 * 80.0), d = 160, latency = 8.4 + 2 * (7 * 4 + 14);
  EXPECT_NEAR(time(1_GB), latency + moved + d / (1 + d / (2 * moved)), 1e-6);
  fit.efa->runs.fixed_chunks = true;
  EXPECT_NEAR(time(1_GB), latency + moved + d, 1e-6);
}

TEST(CollectiveEstimate, OneDeviceIsFree) {
  EXPECT_EQ(collective_estimate(simple(), program::Collective::all_reduce, 1_GB, group(1)), Seconds(0));
}

TEST(CollectiveEstimate, ATorusUsesItsClosedForm) {
  const hardware::Catalogue catalogue = hardware::Catalogue::builtin();
  const auto cluster = hardware::parse_cluster("tpu-v5e:8x16", catalogue, "test");
  const collective::CollectiveGroup ring = *collective::make_group(*cluster, {"Y"}, 1.0, "test");
  const collective::CollectiveCost<Plain> cost =
      collective::collective_cost(Plain{}, program::Collective::all_gather, 1_GB, ring);
  EXPECT_NEAR(us(collective_estimate(simple(), program::Collective::all_gather, 1_GB, ring)),
              10 + us(cost.latency) + us(cost.bandwidth) / 0.5, 1e-6);
}

RC_GTEST_PROP(CollectiveEstimate, MoreBytesNeverTakeLess, ()) {
  const auto members = static_cast<double>(*rc::gen::inRange(2, 9)),
             nodes = static_cast<double>(*rc::gen::inRange(1, 9));
  const auto bytes = static_cast<double>(*rc::gen::inRange(1, 1 << 30));
  const auto kind = static_cast<program::Collective>(*rc::gen::inRange(0, 4));
  hardware::CollectiveCalibration fit = simple();
  fit.in_network = 0.5, fit.infiniband = hardware::AcrossCurve{Seconds(0)}, fit.chunk = 30_us;
  const collective::CollectiveGroup g = group(members, nodes, true);
  RC_ASSERT(collective_estimate(fit, kind, Bytes(2 * bytes), g) >= collective_estimate(fit, kind, Bytes(bytes), g));
  RC_ASSERT(collective_estimate(fit, kind, Bytes(bytes), g) >=
            collective::collective_cost(Plain{}, kind, Bytes(bytes), g).lower);
}

/// Routing's share of sent copies, by trying out every choice of groups and of different experts in them.
double tried_out(const collective::Routing& r, unsigned children) {
  const auto experts = static_cast<unsigned>(r.experts), groups = static_cast<unsigned>(r.groups);
  double sum = 0, ways = 0;
  for (unsigned picked = 0; picked < 1u << groups; ++picked) {
    if (__builtin_popcount(picked) != static_cast<int>(r.picked)) continue;
    for (unsigned set = 0; set < 1u << experts; ++set) {
      if (__builtin_popcount(set) != static_cast<int>(r.copies)) continue;
      unsigned touched = 0;
      bool is_open = true;
      for (unsigned e = 0; e < experts; ++e)
        if (set >> e & 1u)
          touched |= 1u << e * children / experts, is_open &= (picked >> e * groups / experts & 1u) != 0;
      if (is_open) sum += __builtin_popcount(touched), ways += 1;
    }
  }
  return sum / ways / r.copies;
}

TEST(Routing, SendsOneCopyToAllExpertsOfAChild) {
  EXPECT_EQ((collective::Routing{1, 8, 1, 1}.sent_share(8)), 1.0);
  for (const collective::Routing& r :
       {collective::Routing{2, 8, 1, 1}, collective::Routing{4, 16, 1, 1}, collective::Routing{4, 16, 4, 2},
        collective::Routing{3, 16, 8, 3}, collective::Routing{6, 16, 8, 4}})
    for (const unsigned children : {1u, 2u, 4u, 8u, 16u})
      if (children <= r.experts) EXPECT_NEAR(r.sent_share(children), tried_out(r, children), 1e-12) << children;
}

TEST(Routing, LessLeavesANodeWhereItHoldsSeveralExpertsOfAToken) {
  collective::CollectiveGroup flat = group(2, 2), routed = flat;
  routed.routing = {8, 64, 1, 1};
  const double sent = routed.routing.sent_share(2);
  EXPECT_NEAR(sent, 2.0 / 8, 0.002);  // both nodes are reached but for a few tokens
  const auto seconds = [](const collective::CollectiveGroup& g) {
    return collective_estimate(simple(), program::Collective::all_to_all, 16_GB, g).value();
  };
  const double latency = (11 + 50) * 1e-6;
  EXPECT_NEAR((seconds(routed) - latency) / (seconds(flat) - latency), sent, 1e-9);
  EXPECT_NEAR((collective::collective_cost(Plain{}, program::Collective::all_to_all, 16_GB, routed).bandwidth /
               collective::collective_cost(Plain{}, program::Collective::all_to_all, 16_GB, flat).bandwidth),
              sent, 1e-9);
}

TEST(CollectiveEstimate, AChipHandsOnNoMoreThanItHolds) {
  // 8 GB on 8 chips of two nodes: 1 GB each, of which 3/4 goes to another place in the node, at half of 100 GB/s; and
  // half leaves a node of 4 GB at 40 GB/s, which takes longer.
  EXPECT_NEAR(us(collective_estimate(simple(), program::Collective::all_to_all, 8_GB, group(4, 2))), 13 + 50 + 50000,
              1e-6);
  collective::CollectiveGroup wide = group(4, 2);
  wide.levels[1].chip_bandwidth = 1000_GB_per_s;
  EXPECT_NEAR(us(collective_estimate(simple(), program::Collective::all_to_all, 8_GB, wide)), 13 + 50 + 15000, 1e-6);
}

}  // namespace
}  // namespace assay::collective

#include "assay/cost/efficiency_collectives.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <vector>

namespace assay {
namespace {

CollectiveCalibration simple() {
  const CollectiveCurve curve{10_us, 1_us, 0.5, 0.0, Seconds(0)};
  const AcrossCurve across{50_us, 1.0, Bytes(0)};
  return {curve, curve, curve, curve, 0.0, across, across, across};
}

/// Links of 100 GB/s in a node, interfaces of 10 GB/s per chip.
CollectiveGroup group(double members, double nodes = 1, bool reduces = false) {
  CollectiveGroup g;
  g.devices = members * nodes;
  g.levels.push_back({members, 1.0, 100_GB_per_s, reduces, 0});
  if (nodes > 1) g.levels.push_back({nodes, members, 10_GB_per_s, false, 1});
  return g;
}

double us(Seconds t) { return t.in(1_us); }

TEST(CollectiveEstimate, OneNodeByHand) {
  // 8 chips: latency 10 + 7 us; 7/8 of 1 GB at half of 100 GB/s = 17.5 ms; an all-reduce moves twice that.
  EXPECT_NEAR(us(collective_estimate(simple(), CollectiveKind::all_gather, 1_GB, group(8))), 17 + 17500, 1e-6);
  EXPECT_NEAR(us(collective_estimate(simple(), CollectiveKind::all_reduce, 1_GB, group(8))), 17 + 35000, 1e-6);
  // All-to-all of 8 GB in all: each chip sends 7/8 of its 1 GB.
  EXPECT_NEAR(us(collective_estimate(simple(), CollectiveKind::all_to_all, 8_GB, group(8))), 17 + 17500, 1e-6);
}

TEST(CollectiveEstimate, PipeliningLeavesTwiceTheRootOfStreamAndChunk) {
  CollectiveCalibration fit = simple();
  fit.all_gather.chunk = 7_us;
  // 2 sqrt(17500 * 7) = 700 us
  EXPECT_NEAR(us(collective_estimate(fit, CollectiveKind::all_gather, 1_GB, group(8))), 17 + 17500 + 700, 1e-6);
}

TEST(CollectiveEstimate, SmallGroupsAreSlowerByThePairTerm) {
  CollectiveCalibration fit = simple();
  fit.all_gather.pair = 1.0;
  // 2 chips: half of 1 GB at 50 / 1.5 GB/s = 15 ms
  EXPECT_NEAR(us(collective_estimate(fit, CollectiveKind::all_gather, 1_GB, group(2))), 11 + 15000, 1e-6);
}

TEST(CollectiveEstimate, SwitchesAddWhereTheyCanAndItPays) {
  CollectiveCalibration fit = simple();
  fit.in_network = 0.4;
  // 1 GB at 40 GB/s = 25 ms against 35 ms by ring
  EXPECT_NEAR(us(collective_estimate(fit, CollectiveKind::all_reduce, 1_GB, group(8, 1, true))), 17 + 25000, 1e-6);
  EXPECT_NEAR(us(collective_estimate(fit, CollectiveKind::all_reduce, 1_GB, group(8, 1, true), Fabric::infiniband,
                                     CollectiveAlgorithm::ring)),
              17 + 35000, 1e-6);
  EXPECT_NEAR(us(collective_estimate(fit, CollectiveKind::all_reduce, 1_GB, group(8))), 17 + 35000, 1e-6);
  // Two chips: a ring moves 1 GB at 50 GB/s, which is faster.
  EXPECT_NEAR(us(collective_estimate(fit, CollectiveKind::all_reduce, 1_GB, group(2, 1, true))), 11 + 20000, 1e-6);
}

TEST(CollectiveEstimate, AcrossNodesRingsGatherAndATreeOfNodesReduces) {
  // 2 nodes of 8: 15/16 of 1 GB over 80 GB/s = 11.719 ms, but within the node 7/8 at 50 GB/s = 17.5 ms is longer.
  CollectiveCalibration fit = simple();
  EXPECT_NEAR(us(collective_estimate(fit, CollectiveKind::all_gather, 1_GB, group(8, 2))), 17 + 50 + 17500, 1e-6);
  fit.all_gather.share = 1.0;
  EXPECT_NEAR(us(collective_estimate(fit, CollectiveKind::all_gather, 1_GB, group(8, 2))), 17 + 50 + 11718.75, 1e-6);
  // All-reduce by a tree: 2 (2 - 1) / 2 of 1 GB over 80 GB/s = 12.5 ms; by ring 2 * 15/16 = 23.4 ms.
  fit.all_reduce.share = 1.2, fit.in_network = 0.0;
  const CollectiveGroup two = group(2, 2);
  // 2 x 2 chips: 20 GB/s between nodes: 50 ms; ring 2 * 3/4 = 75 ms.
  EXPECT_NEAR(us(collective_estimate(fit, CollectiveKind::all_reduce, 1_GB, two)), 11 + 50 + 50000, 1e-6);
  EXPECT_NEAR(us(collective_estimate(fit, CollectiveKind::all_reduce, 1_GB, two, Fabric::infiniband,
                                     CollectiveAlgorithm::ring)),
              11 + 50 + 75000, 1e-6);
}

TEST(CollectiveEstimate, OneDeviceIsFree) {
  EXPECT_EQ(collective_estimate(simple(), CollectiveKind::all_reduce, 1_GB, group(1)), Seconds(0));
}

TEST(CollectiveEstimate, ATorusUsesItsClosedForm) {
  const Catalogue catalogue = Catalogue::builtin();
  const auto cluster = parse_cluster("tpu-v5e:8x16", catalogue, "test");
  const CollectiveGroup ring = *make_group(*cluster, {"Y"}, 1.0, "test");
  const CollectiveCost<Plain> cost = collective_cost(Plain{}, CollectiveKind::all_gather, 1_GB, ring);
  EXPECT_NEAR(us(collective_estimate(simple(), CollectiveKind::all_gather, 1_GB, ring)),
              10 + us(cost.latency) + us(cost.bandwidth) / 0.5, 1e-6);
}

RC_GTEST_PROP(CollectiveEstimate, MoreBytesNeverTakeLess, ()) {
  const auto members = static_cast<double>(*rc::gen::inRange(2, 9)),
             nodes = static_cast<double>(*rc::gen::inRange(1, 9));
  const auto bytes = static_cast<double>(*rc::gen::inRange(1, 1 << 30));
  const auto kind = static_cast<CollectiveKind>(*rc::gen::inRange(0, 4));
  CollectiveCalibration fit = simple();
  fit.in_network = 0.5, fit.infiniband = AcrossCurve{Seconds(0), 1.0, 2_MB};
  const CollectiveGroup g = group(members, nodes, true);
  RC_ASSERT(collective_estimate(fit, kind, Bytes(2 * bytes), g) >= collective_estimate(fit, kind, Bytes(bytes), g));
  RC_ASSERT(collective_estimate(fit, kind, Bytes(bytes), g) >= collective_cost(Plain{}, kind, Bytes(bytes), g).lower);
}

/// Copies that enter children over all copies, by trying out every choice of experts that are picked one after another,
/// where children hold one group of experts each or several, and groups are picked first.
double tried_out(int children, int copies, int groups, int picked) {
  double sum = 0, ways = 0;
  for (unsigned set = 0; set < 1u << groups; ++set) {
    if (__builtin_popcount(set) != picked) continue;
    std::vector<int> open;  // a slot of each child that lies in a picked group
    for (int child = 0; child < children; ++child)
      if (set >> (child * groups / children) & 1u) open.push_back(child);
    std::vector<std::size_t> choice(static_cast<std::size_t>(copies), 0);
    for (bool more = true; more;) {
      unsigned touched = 0;
      for (const std::size_t c : choice) touched |= 1u << open[c];
      sum += __builtin_popcount(touched), ways += 1;
      std::size_t at = 0;
      while (at < choice.size() && ++choice[at] == open.size()) choice[at++] = 0;
      more = at < choice.size();
    }
  }
  return sum / ways / copies;
}

TEST(Routing, SendsOneCopyToAllExpertsOfAChild) {
  EXPECT_EQ((Routing{1, 1, 1}.sent_share(8)), 1.0);
  EXPECT_NEAR((Routing{4, 1, 1}.sent_share(1)), 0.25, 1e-15);  // one child holds them all
  for (const int children : {2, 4, 8})
    for (const int copies : {1, 2, 4})
      EXPECT_NEAR((Routing{double(copies), 1, 1}.sent_share(children)), tried_out(children, copies, 1, 1), 1e-12);
  // Groups that are picked first leave a part of the children.
  EXPECT_NEAR((Routing{4, 4, 2}.sent_share(4)), tried_out(4, 4, 4, 2), 1e-12);
  EXPECT_NEAR((Routing{4, 4, 2}.sent_share(8)), tried_out(8, 4, 4, 2), 1e-12);
}

TEST(Routing, LessLeavesANodeWhereItHoldsSeveralExpertsOfAToken) {
  CollectiveGroup flat = group(2, 2), routed = flat;
  routed.routing = {8, 1, 1};
  const auto seconds = [](const CollectiveGroup& g) {
    return collective_estimate(simple(), CollectiveKind::all_to_all, 16_GB, g).value();
  };
  // 8 copies to one of two nodes: both are reached but for 1 of 128 tokens, so that 2 of 8 copies are sent.
  const double latency = (11 + 50) * 1e-6;
  EXPECT_NEAR((seconds(routed) - latency) / (seconds(flat) - latency), 2.0 * (1 - 1.0 / 256) / 8, 1e-9);
  EXPECT_NEAR((collective_cost(Plain{}, CollectiveKind::all_to_all, 16_GB, routed).bandwidth /
               collective_cost(Plain{}, CollectiveKind::all_to_all, 16_GB, flat).bandwidth),
              2.0 * (1 - 1.0 / 256) / 8, 1e-9);
}

}  // namespace
}  // namespace assay

#include "assay/hardware/cluster.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <string>
#include <vector>

#include "assay/testing/test_directory.h"

namespace assay::hardware {
namespace {

Result<Cluster> parse(std::string_view text, const std::vector<Override>& overrides = {}) {
  static const Catalogue catalogue = Catalogue::builtin();
  return parse_cluster(text, catalogue, "--on", overrides);
}

std::string refused(std::string_view text) {
  const auto cluster = parse(text);
  return cluster ? "accepted" : cluster.error().what;
}

/// A file that is gone at the end of the test.
class File {
 public:
  File(const std::string& name, std::string_view text) : path_(directory_.file(name)) { directory_.write(name, text); }
  const std::string& path() const { return path_; }
  std::string argument(const std::string& after = "") const { return "@" + path_ + after; }

 private:
  testing::TestDirectory directory_;
  std::string path_;
};

TEST(Cluster, AChipAloneIsOne) {
  for (const char* id : {"tpu-v5e", "h100-sxm", "l4"}) {
    const auto cluster = parse(id);
    ASSERT_TRUE(cluster) << id;
    EXPECT_EQ(cluster->chips(), 1);
    EXPECT_EQ(host_count(*cluster), 1);
    EXPECT_TRUE(cluster->levels.empty());
    EXPECT_EQ(diameter(*cluster), 0);
    EXPECT_EQ(bisection_bandwidth(*cluster), std::nullopt);
    EXPECT_EQ(scale_up_links(*cluster), 0);
  }
}

TEST(Cluster, AThousandH100ByHand) {
  // 1024 / 8 = 128 nodes of 4 switches; 128 / 32 = 4 leaf groups of 8; 4 of them under one spine of 16: 512 + 32 + 16 =
  // 560. 8 rails of 50 GB/s leave a node, 32 nodes make 12.8 TB/s; half of the 4 groups is 2 x 12.8.
  const auto cluster = parse("h100-sxm:1024");
  ASSERT_TRUE(cluster);
  ASSERT_EQ(cluster->levels.size(), 3u);
  EXPECT_EQ(cluster->levels[0].units, 128);
  EXPECT_EQ(cluster->levels[0].chip_bandwidth, 450_GB_per_s);
  EXPECT_EQ(cluster->levels[1].degree, 32);
  EXPECT_EQ(cluster->levels[1].units, 4);
  EXPECT_EQ(cluster->levels[1].chip_bandwidth, 50_GB_per_s);
  EXPECT_EQ(cluster->levels[2].degree, 4);
  EXPECT_EQ(cluster->levels[2].chips, 1024);
  EXPECT_EQ(switch_count(*cluster), 560);
  EXPECT_EQ(host_count(*cluster), 128);
  EXPECT_EQ(core_count(*cluster), 135'168);     // 1024 x 132
  EXPECT_EQ(scale_up_links(*cluster), 18'432);  // 1024 x 18
  EXPECT_EQ(diameter(*cluster), 5);             // node, leaf, spine, leaf, node
  EXPECT_EQ(*bisection_bandwidth(*cluster), 25.6_TB_per_s);
  EXPECT_EQ(total_memory(*cluster), 80_TiB);  // 1024 x 80 GiB
  EXPECT_TRUE(cluster->notes.empty());
}

// A node switch of 64 ports carries 64 x 25 GB/s, a fabric switch of 64 ports 64 x 50 GB/s. Each of the 32 leaves sends
// 32 of its 64 ports up, two to each of the 16 spines.
TEST(Cluster, SwitchesOfAThousandH100ByHand) {
  const auto cluster = parse("h100-sxm:1024");
  ASSERT_TRUE(cluster);
  EXPECT_EQ(switch_capacity(*cluster, 0), 1.6_TB_per_s);
  EXPECT_EQ(switch_capacity(*cluster, 1), 3.2_TB_per_s);
  EXPECT_EQ(switch_capacity(*cluster, 2), 3.2_TB_per_s);
  EXPECT_EQ(links_per_switch_pair(*cluster, 0), std::nullopt);
  EXPECT_EQ(links_per_switch_pair(*cluster, 1), std::nullopt);  // nodes below have no fabric switches
  EXPECT_EQ(links_per_switch_pair(*cluster, 2), 2);
}

// Along a ring of 16 all distances sum to 64, so a 16x16 torus has 16 x 64 hops along each axis: 2048 to 255 chips. The
// second slice adds as many, and one hop more to each of its 256 chips.
TEST(Cluster, MeanDistanceCountsTheStepToOtherSlices) {
  const auto one = parse("tpu-v5e:16x16"), two = parse("2*tpu-v5e:16x16");
  ASSERT_TRUE(one && two);
  EXPECT_DOUBLE_EQ(mean_distance(*one), 2048.0 / 255.0);
  EXPECT_DOUBLE_EQ(mean_distance(*two), (2.0 * 2048.0 + 256.0) / 511.0);
  EXPECT_EQ(mean_distance(*parse("tpu-v5e")), 0.0);
}

TEST(Cluster, RacksOf72ByHand) {
  // 576 / 72 = 8 racks of 18 switches and 18 trays, under 9 spine switches: 8 x 18 + 9 = 153.
  const auto full = parse("gb200-nvl72:576");
  ASSERT_TRUE(full);
  EXPECT_EQ(full->chips_per_node, 72);
  EXPECT_EQ(host_count(*full), 144);
  EXPECT_EQ(switch_count(*full), 153);
  EXPECT_EQ(full->levels.back().child_bandwidth, 3.6_TB_per_s);
}

TEST(Cluster, RacksThatAreNotFullBringFewerPorts) {
  // 512 chips need 8 racks and fill them evenly with 64; 64 of 72 ports are 64/72 x 3.6 = 3.2 TB/s, 50 GB/s each as
  // before.
  const auto part = parse("gb200-nvl72:512");
  ASSERT_TRUE(part);
  EXPECT_EQ(part->chips_per_node, 64);
  EXPECT_EQ(part->levels.back().units, 1);
  EXPECT_EQ(part->levels.back().degree, 8);
  EXPECT_NEAR(part->levels.back().child_bandwidth.in(1_TB_per_s), 3.2, 1e-12);
  EXPECT_NEAR(part->levels.back().chip_bandwidth.in(1_GB_per_s), 50.0, 1e-9);
  EXPECT_EQ(host_count(*part), 128);  // 8 x 64 / 4
  EXPECT_EQ(part->notes, (std::vector<std::string>{"each node uses 64 of its 72 chips"}));
}

TEST(Cluster, NodesAreFilledEvenlyOrNotAtAll) {
  const auto twelve = parse("h100-sxm:12");
  ASSERT_TRUE(twelve);
  EXPECT_EQ(twelve->chips_per_node, 6);
  EXPECT_EQ(host_count(*twelve), 2);
  EXPECT_NEAR(twelve->levels.back().child_bandwidth.in(1_GB_per_s), 300.0, 1e-9);  // 6 of 8 adapters of 50 GB/s
  EXPECT_EQ(refused("h100-sxm:9"), "9 of h100-sxm do not spread evenly over 2 nodes of at most 8");
  EXPECT_EQ(parse("h100-sxm:9").error().hint, "nearest counts: 8, 10");
}

// 125 nodes of 8 x 50 GB/s on leaves of 32, 32, 32 and 29: the side with the last leaf sends from 61 nodes.
TEST(Cluster, TheBisectionCountsPortsOfUnitsThatAreNotFull) {
  EXPECT_EQ(*bisection_bandwidth(*parse("h100-sxm:1000")), 24.4_TB_per_s);
  EXPECT_EQ(*bisection_bandwidth(*parse("h100-sxm:24")), 400_GB_per_s);
  for (int nodes = 2; nodes < 300; ++nodes) {
    const auto cluster = parse("h100-sxm:" + std::to_string(8 * nodes));
    ASSERT_TRUE(cluster);
    EXPECT_LE(*bisection_bandwidth(*cluster), nodes * 200.0_GB_per_s) << nodes;
    EXPECT_GT(*bisection_bandwidth(*cluster), 0_GB_per_s) << nodes;
  }
}

TEST(Cluster, NearestCountsSpreadEvenlyThemselves) {
  for (int chips = 1; chips < 200; ++chips) {
    const auto cluster = parse("h100-sxm:" + std::to_string(chips));
    if (cluster) continue;
    const std::string counts = cluster.error().hint.substr(std::string("nearest counts: ").size());
    const auto comma = counts.find(", ");
    EXPECT_TRUE(parse("h100-sxm:" + counts.substr(0, comma))) << counts;
    EXPECT_TRUE(parse("h100-sxm:" + counts.substr(comma + 2))) << counts;
  }
}

TEST(Cluster, SlicesAreJoinedByTheDataCentreNetwork) {
  // 4 x 16 x 20 x 28 = 35,840 chips of 2 cores, 4 to a host; a slice brings 8960 x 6.25 GB/s = 56 TB/s.
  const auto cluster = parse("4*tpu-v5p:16x20x28");
  ASSERT_TRUE(cluster);
  EXPECT_EQ(cluster->text, "4*tpu-v5p:16x20x28");
  EXPECT_EQ(cluster->chips(), 35'840);
  EXPECT_EQ(host_count(*cluster), 8'960);
  EXPECT_EQ(core_count(*cluster), 71'680);
  ASSERT_EQ(cluster->levels.size(), 1u);
  EXPECT_EQ(cluster->levels[0].child_bandwidth, 56_TB_per_s);
  EXPECT_EQ(diameter(*cluster), 33);                        // 8 + 10 + 14 and the network
  EXPECT_EQ(*bisection_bandwidth(*cluster), 112_TB_per_s);  // 2 of 4 slices
  EXPECT_EQ(scale_up_links(*cluster), 4 * 3 * 8'960);
}

TEST(Cluster, ATorusIsNamedByItsShapeOrItsCount) {
  const auto cube = parse(" tpu-v5p : 8x8x8 ");
  ASSERT_TRUE(cube);
  EXPECT_EQ(cube->text, "tpu-v5p:8x8x8");
  EXPECT_EQ(*bisection_bandwidth(*cube), 11.52_TB_per_s);  // 2 x 64 links x 90 GB/s
  const auto counted = parse("tpu-v5p:512");
  EXPECT_EQ(counted->text, "tpu-v5p:8x8x8");
  EXPECT_EQ(counted->notes, (std::vector<std::string>{"512 chips are arranged as 8x8x8"}));
  const auto twisted = parse("tpu-v5p:4x4x8_twisted");
  EXPECT_EQ(twisted->text, "tpu-v5p:4x4x8_twisted");
  EXPECT_EQ(diameter(*twisted), 6);
  EXPECT_EQ(host_count(*parse("tpu-v5e:2x2")), 1);  // half a host
}

TEST(Cluster, WhatIsNoClusterIsRefused) {
  EXPECT_EQ(refused(""), "no cluster is named");
  EXPECT_EQ(refused("h101"), "unknown chip \"h101\"");
  EXPECT_EQ(refused("h100-sxm:0"), "\"0\" is not a size: a count must be at least 1, got \"0\"");
  EXPECT_EQ(refused("h100-sxm:8x8"), "h100-sxm is not a torus, so its size is a count");
  EXPECT_EQ(refused("2*h100-sxm:8"), "h100-sxm is not sold in slices, so S* does not apply");
  EXPECT_EQ(refused("h100-sxm:100000000"), "100000000 chips is too many");
  EXPECT_EQ(refused("tpu-v5p:99999999x99999999"), "99999999 chips is too many");
  EXPECT_EQ(refused("tpu-v5p:10000000x10000000x10000000"), "10000000x10000000x10000000 chips is too many");
  EXPECT_EQ(refused("tpu-v5p:1x1x1x1"), "\"1x1x1x1\" has more than three axes");
  EXPECT_EQ(refused("10000000*tpu-v5p:4x4x4"), "640000000 chips is too many");
  EXPECT_EQ(refused(std::string(5000, 'x')), "the cluster's name is longer than 4096 bytes");
  EXPECT_EQ(refused("@/nowhere/x.toml"), "no file \"/nowhere/x.toml\"");
  for (const char* text : {":",
                           "*",
                           "@",
                           ":8",
                           "h100-sxm:",
                           "h100-sxm:-8",
                           "h100-sxm:8.5",
                           "h100-sxm:8x",
                           "h100-sxm:nan",
                           "h100-sxm:0x8",
                           "h100-sxm:8:8",
                           "0*tpu-v5p:4x4x4",
                           "-1*tpu-v5p:4x4x4",
                           "*tpu-v5p:4x4x4",
                           "1e9*tpu-v5p",
                           "tpu-v5p:_twisted",
                           "tpu-v5p:4x4x4_twisted",
                           "h100-sxm:8_twisted",
                           "\x1b[31m",
                           "tpu-v5p:4x4x4x4x4x4",
                           "h100-sxm:99999999999999999999"})
    EXPECT_NE(refused(text), "accepted") << text;
}

TEST(Cluster, AChipFileIsAChip) {
  std::string text(Catalogue::builtin().files("chips/h100-sxm.toml").at(0).second);
  text.replace(text.find("\"h100-sxm\""), 10, "\"mine\"");
  const File file("mine.toml", text);
  const auto cluster = parse(file.argument(":16"));
  ASSERT_TRUE(cluster) << cluster.error().where << cluster.error().what;
  EXPECT_EQ(cluster->text, "mine:16");
  EXPECT_EQ(host_count(*cluster), 2);
  EXPECT_EQ(cluster->chip.hbm().capacity.source.find(file.path()), 0u);
}

TEST(Cluster, AClusterFileNamesChipSizeSlicesAndOverrides) {
  const File file("pod.toml",
                  "chip = \"tpu-v5p\"\nsize = \"8x8x8\"\nslices = 2\n[set]\n\"memory.hbm.bandwidth\" = \"3 TB/s\"\n");
  const auto cluster = parse(file.argument());
  ASSERT_TRUE(cluster) << cluster.error().where << cluster.error().what;
  EXPECT_EQ(cluster->text, "2*tpu-v5p:8x8x8");
  EXPECT_EQ(total_memory_bandwidth(*cluster), 3072_TB_per_s);          // 1024 x 3
  EXPECT_EQ(parse(file.argument(":4x4x4"))->text, "2*tpu-v5p:4x4x4");  // what is typed wins
  EXPECT_EQ(parse("3*" + file.argument())->text, "3*tpu-v5p:8x8x8");
  const auto typed = parse(file.argument(), {{"memory.hbm.bandwidth", "1 TB/s"}});
  EXPECT_EQ(typed->chip.hbm().bandwidth->value, 1_TB_per_s);
}

TEST(Cluster, EveryFaultOfAClusterFileIsReported) {
  const File file("pod.toml",
                  "chip = \"tpu-v5p\"\nsize = 512\nslices = 0\nsices = 2\n[set]\nmemory.hbm.bandwidth = \"3 TB/s\"\n");
  const auto cluster = parse(file.argument());
  ASSERT_FALSE(cluster);
  EXPECT_EQ(cluster.error().where, file.path() + ":2:1: size");
  ASSERT_EQ(cluster.error().also.size(), 3u);
  EXPECT_EQ(cluster.error().also[0].where, file.path() + ":3:1: slices");
  EXPECT_EQ(cluster.error().also[1].where, file.path() + ":6:1: set.memory");
  EXPECT_EQ(cluster.error().also[1].what, "expected text, got a table");
  EXPECT_EQ(cluster.error().also[2].what, "unknown key \"sices\"");
  EXPECT_EQ(cluster.error().also[2].hint, "did you mean slices or size?");
}

TEST(Cluster, RatesAreThoseOfAllChips) {
  const auto cluster = parse("h100-sxm:16", {{"peak.bf16", "1000 TFLOP/s"}});
  EXPECT_EQ(total_rate(*cluster, Dtype::bf16), 16_PFLOP_per_s);
  EXPECT_EQ(total_rate(*cluster, Dtype::fp4), FlopsPerSecond(0.0));  // it has none
}

RC_GTEST_PROP(Cluster, AnyCountIsAWholeTreeOrRefused, ()) {
  const std::string id = *rc::gen::element<std::string>("h100-sxm", "gb200-nvl72", "mi300x", "l4", "gaudi3");
  const auto chips = *rc::gen::inRange<std::int64_t>(1, 3'000) * *rc::gen::element<std::int64_t>(1, 8, 72);
  const auto cluster = parse(id + ":" + std::to_string(chips));
  if (!cluster) {
    RC_ASSERT(cluster.error().hint.starts_with("nearest counts: "));
    return;
  }
  RC_ASSERT(cluster->chips() == chips);
  RC_ASSERT(chips % cluster->chips_per_node == 0);
  std::int64_t below = chips, chips_below = 1;
  for (const Level& level : cluster->levels) {
    RC_ASSERT(level.units == (below + level.degree - 1) / level.degree);
    RC_ASSERT(level.chips == level.degree * chips_below);
    below = level.units;
    chips_below = level.chips;
  }
  RC_ASSERT(below == 1);
}

TEST(Cluster, ChipsOfAHostAreThoseOfTheCluster) {
  const auto hosts = [](std::string_view text) {
    const auto cluster = parse(text);
    return std::pair(host_count(*cluster), chips_per_host(*cluster));
  };
  using Hosts = std::pair<std::int64_t, std::int64_t>;
  EXPECT_EQ(hosts("h100-sxm:1"), Hosts(1, 1));
  EXPECT_EQ(hosts("h100-sxm:12"), Hosts(2, 6));
  EXPECT_EQ(hosts("h100-pcie:2"), Hosts(1, 2));
  EXPECT_EQ(hosts("h100-pcie:24"), Hosts(3, 8));
  EXPECT_EQ(hosts("h200-nvl:8"), Hosts(1, 8));  // two nodes of four bridged cards
  EXPECT_EQ(hosts("h200-nvl:20"), Hosts(3, 8));
  EXPECT_EQ(hosts("gb200-nvl72:72"), Hosts(18, 4));
  EXPECT_EQ(hosts("tpu-v5e:2x2"), Hosts(1, 4));
  EXPECT_EQ(hosts("2*tpu-v5e:4x4"), Hosts(4, 8));
}

TEST(Cluster, CardsOfAHostMeetOverItsPcie) {
  const auto levels = [](std::string_view text, const std::vector<Override>& overrides) {
    std::vector<std::pair<std::string, double>> out;  // names, and GB/s of a chip
    const auto cluster = parse_cluster(text, Catalogue::builtin(), "test", overrides);
    for (const Level& level : cluster->levels)
      out.emplace_back(level.name, std::round(level.chip_bandwidth.in(1_GB_per_s) * 10.0) / 10.0);
    return out;
  };
  using Levels = std::vector<std::pair<std::string, double>>;
  EXPECT_EQ(levels("l40s:16", {}), (Levels{{"host", 24.0}, {"fabric", 25.0}}));
  // Bridges are an accessory; pairs with them meet over PCIe, and hosts over their adapters.
  EXPECT_EQ(levels("a100-pcie-80:16", {}), (Levels{{"host", 24.0}, {"fabric", 12.5}}));
  EXPECT_EQ(levels("a100-pcie-80:16", {{"network.scale_up.domain", "2"}}),
            (Levels{{"node", 300.0}, {"host", 24.0}, {"fabric", 12.5}}));
  EXPECT_EQ(levels("a100-pcie-80:6", {{"network.scale_up.domain", "2"}}), (Levels{{"node", 300.0}, {"host", 24.0}}));
  EXPECT_EQ(levels("gh200-96:4", {}), (Levels{{"fabric", 50.0}}));  // a host of one chip
}

RC_GTEST_PROP(Cluster, TextOfTheGrammarIsRefusedOrReadsBack, ()) {
  const std::vector<std::string> pieces{"tpu-v5p",  "tpu-v5e", "h100-sxm", ":",   "x",       "*", "4", "8", "16",
                                        "_twisted", "@",       "-",        "1e5", "9999999", " ", "k", "\n"};
  std::string text = *rc::gen::element<std::string>("", "tpu-v5p:", "tpu-v5p:4x4x", "h100-sxm:", "2*tpu-v5e:", "4*");
  for (int i = *rc::gen::inRange(0, 6); i > 0; --i) text += *rc::gen::elementOf(pieces);
  const auto cluster = parse(text);
  if (!cluster) {
    RC_ASSERT(cluster.error().where == "--on");
    return;
  }
  RC_ASSERT(cluster->chips() >= 1 && cluster->chips() <= 10'000'000);
  RC_ASSERT(host_count(*cluster) >= 1);
  const auto again = parse(cluster->text);
  RC_ASSERT(again.has_value());
  RC_ASSERT(again->text == cluster->text);
  RC_ASSERT(again->chips() == cluster->chips());
}

}  // namespace
}  // namespace assay::hardware

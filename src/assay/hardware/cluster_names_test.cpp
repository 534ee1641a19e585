#include "assay/hardware/cluster_names.h"

#include <gtest/gtest.h>

#include "assay/base/text.h"
#include "assay/hardware/cluster.h"
#include "assay/testing/catalogue.h"

namespace assay::hardware {
namespace {

using testing::catalogue;

Cluster understood(std::string_view text) {
  const auto cluster = parse_cluster(text, catalogue(), "--on");
  if (!cluster) throw std::runtime_error(cluster.error().what);
  return *cluster;
}

TEST(ClusterNames, PeopleCallChipsByShortNames) {
  EXPECT_EQ(understood("H100:64").text, "h100-sxm:64");
  EXPECT_EQ(understood("8xH100").text, "h100-sxm:8");
  EXPECT_EQ(understood("H100-SXM:8").text, "h100-sxm:8");
  EXPECT_EQ(understood("TPU v5p:4x4x4").text, "tpu-v5p:4x4x4");
}

TEST(ClusterNames, SlicesNameCoresOrChips) {
  EXPECT_EQ(understood("v5p-128").text, "tpu-v5p:4x4x4");
  EXPECT_EQ(understood("v4-8").text, "tpu-v4:2x2x1");
  EXPECT_EQ(understood("tpu-v5p-128").text, "tpu-v5p:4x4x4");
  EXPECT_EQ(understood("v5litepod-16").text, "tpu-v5e:4x4");
  EXPECT_EQ(understood("v6e-16").text, "tpu-v6e:4x4");
  EXPECT_EQ(understood("2*v5p-128").text, "2*tpu-v5p:4x4x4");
  EXPECT_EQ(understood("v5p-128").notes.front(), "v5p-128 names TensorCores: 64 chips, tpu-v5p:4x4x4 (TPU v5p)");
}

TEST(ClusterNames, MachinesHaveTheirChipsAndTheirNetwork) {
  EXPECT_EQ(understood("p5.48xlarge").text, "h100-sxm:8");
  EXPECT_EQ(understood("DGX H100:4").text, "h100-sxm:32");
  EXPECT_EQ(understood("4x a3-megagpu-8g").text, "h100-sxm:32");
  EXPECT_EQ(understood("2*ND H100 v5").text, "h100-sxm:16");
  // 1,600 Gbit/s over 8 chips; levels above keep their ratio.
  const Cluster mega = understood("4*a3-megagpu-8g"), dgx = understood("DGX H100:4");
  EXPECT_EQ(mega.chip.network.scale_out->bandwidth.value, 25_GB_per_s);
  EXPECT_EQ(mega.levels[1].chip_bandwidth, 0.5 * dgx.levels[1].chip_bandwidth);
  EXPECT_TRUE(mega.chip.network.scale_out->bandwidth.source.starts_with("instances/google.toml:"));
}

TEST(ClusterNames, ARackIsMoreThanTheChipOfItsName) {
  EXPECT_EQ(understood("GB200 NVL72").chips(), 72);
  EXPECT_EQ(understood("2x GB300 NVL72").chips(), 144);
  EXPECT_EQ(understood("GB200 NVL72:8").chips(), 8);
  EXPECT_EQ(understood("gb200-nvl72").chips(), 1);
}

TEST(ClusterNames, ASizeIsStatedOnce) {
  for (const char* text : {"8xH100:4", "v5p-128:4x4x4"}) {
    const auto cluster = parse_cluster(text, catalogue(), "--on");
    ASSERT_FALSE(cluster) << text;
    EXPECT_EQ(cluster.error().kind, Error::Kind::usage);
  }
  EXPECT_FALSE(parse_cluster("v5p-7", catalogue(), "--on"));  // half a chip
  EXPECT_FALSE(parse_cluster("9999999xDGX H100:9999999", catalogue(), "--on"));
}

TEST(ClusterNames, UnknownNamesHaveNearOnes) {
  const auto machine = parse_cluster("p5.48xlrge", catalogue(), "--on");
  ASSERT_FALSE(machine);
  EXPECT_NE(machine.error().hint.find("p5.48xlarge"), std::string::npos);
}

TEST(ClusterNames, EveryNameIsOneThing) {
  const auto names = ClusterNames::read(catalogue());
  ASSERT_TRUE(names);
  for (const std::string& id : catalogue().chip_ids()) {
    const auto meant = names->find(id);
    ASSERT_TRUE(meant) << id;
    EXPECT_EQ(meant->chip, id);
  }
  for (const std::string& name : names->all()) EXPECT_TRUE(parse_cluster(name, catalogue(), "--on")) << name;
}

TEST(ClusterNames, AFaultOfAFileIsReported) {
  Catalogue own = catalogue();
  own.put("instances/mine.toml",
          "id = \"mine\"\nname = \"Mine\"\n[source.a]\ntitle = \"A\"\n[[instance]]\n"
          "source = \"a\"\nname = \"box\"\nchip = \"h100\"\nchips = 4\n");
  const auto cluster = parse_cluster("box", own, "--on");
  ASSERT_FALSE(cluster);
  EXPECT_EQ(cluster.error().what, "unknown chip \"h100\"");
  own.put("instances/mine.toml",
          "id = \"mine\"\nname = \"Mine\"\n[source.a]\ntitle = \"A\"\n[[instance]]\n"
          "source = \"a\"\nname = \"box\"\nchip = \"h100-sxm\"\nchips = 4\n");
  EXPECT_EQ(parse_cluster("3*box", own, "--on")->chips(), 12);
}

}  // namespace
}  // namespace assay::hardware

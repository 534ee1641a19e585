#include "assay/hardware/calibration.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "assay/base/text.h"

namespace assay::hardware {
namespace {

constexpr std::string_view small = R"(id = "small"
name = "a test"
architectures = ["Hopper"]
[source.fit]
title = "a fit"
command = "assay validate --fit catalogue --data DIR"
date = 2026-11-15
rows = "12 kernels"
error = "3 %"
[matmul]
source = "fit"
share = { bf16 = 0.9, fp8 = 0.8 }
droop = 0.25
memory_share = 0.95
fine_tiles = true
small_tile = 15
fill = 128
split_cost = "4 us"
port = "140 GB/s"
[burst]
source = "fit"
launch = "6 us"
gap = "200 us"
ramp = "3.5 us"
)";

Calibration read(std::string_view text) {
  auto result = read_calibration(text, "calibration/small.toml");
  if (!result) throw std::runtime_error(result.error().where + " " + result.error().what);
  return *result;
}

TEST(Calibration, NumbersArriveWithTheirUnits) {
  const Calibration c = read(small);
  EXPECT_EQ(c.matmul->share[static_cast<std::size_t>(Dtype::bf16)], 0.9);
  EXPECT_EQ(c.matmul->share[static_cast<std::size_t>(Dtype::fp32)], 0.0);
  EXPECT_TRUE(c.matmul->fine_tiles);
  EXPECT_NEAR(c.matmul->split_cost.in(1_us), 4.0, 1e-12);
  EXPECT_NEAR(c.matmul->port->in(1_GB_per_s), 140.0, 1e-9);
  EXPECT_NEAR(c.burst->gap.in(1_us), 200.0, 1e-9);
  EXPECT_FALSE(c.attention);
  EXPECT_EQ(c.origin("matmul"), "calibration/small.toml:10 (fit)");
  EXPECT_EQ(c.origin("host"), "not calibrated");
  EXPECT_EQ(c.sources.front().rows, "12 kernels");
}

TEST(Calibration, TheWrittenTextReadsBack) {
  const Calibration c = read(small);
  const std::string text = calibration_text(c);
  EXPECT_EQ(calibration_text(read(text)), text);
  EXPECT_NE(text.find("launch = \"6 us\""), std::string::npos) << text;
}

TEST(Calibration, EveryFaultIsReported) {
  const auto result = read_calibration(R"(id = "small"
name = "a test"
[source.fit]
title = "a fit"
date = 2026-11-15
[matmul]
source = "fitt"
share = { bf16 = 1.9, bf17 = 0.5 }
droop = "much"
memory_share = 0.95
small_tile = 15
fil = 128
split_cost = 4
)",
                                       "calibration/other.toml");
  ASSERT_FALSE(result);
  std::string all = result.error().where + " " + result.error().what;
  for (const Error& error : result.error().also) all += "\n" + error.where + " " + error.what + " " + error.hint;
  for (const char* part :
       {"a source needs command or url", "unknown source \"fitt\"",
        "matmul.share.bf16 1.9 is not a share from 0.0001 to 1.25", "unknown key \"bf17\"",
        "matmul.droop expected a number from 0 to 1000000, got text", "unknown key \"fil\" did you mean fill",
        "matmul.fill this key is required", "matmul.split_cost this number has no unit; expected s",
        "belongs to one chip, or to architectures", "the id is \"small\" but the file is \"other.toml\""})
    EXPECT_NE(all.find(part), std::string::npos) << part << "\nin\n" << all;
}

TEST(Calibration, ANumberWithoutSourceDoesNotLoad) {
  std::string text(small);
  text.erase(text.find("source = \"fit\"\nshare"), std::string_view("source = \"fit\"\n").size());
  const auto result = read_calibration(text, "calibration/small.toml");
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().what, "these numbers have no source");
}

TEST(Calibration, AllFilesOfTheCatalogueLoadAndNameAChipOrArchitecturesThatExist) {
  const Catalogue catalogue = Catalogue::builtin();
  std::vector<std::string> architectures;
  for (const std::string& id : catalogue.chip_ids()) architectures.push_back(catalogue.chip(id, "test")->architecture);
  std::size_t files = 0;
  for (const auto& [path, text] : catalogue.files("calibration/")) {
    const auto c = read_calibration(text, path);
    ASSERT_TRUE(c) << c.error().where << ": " << c.error().what;
    ++files;
    EXPECT_TRUE(!c->chip || catalogue.chip(*c->chip, "test")) << path;
    for (const std::string& name : c->architectures.value_or(std::vector<std::string>()))
      EXPECT_NE(std::find(architectures.begin(), architectures.end(), name), architectures.end()) << path << name;
  }
  EXPECT_GE(files, 6u);
}

TEST(Calibration, AChipWithoutItsOwnTakesItsFamilysAndSaysSo) {
  const Catalogue catalogue = Catalogue::builtin();
  const auto h100 = calibration_of(*catalogue.chip("h100-sxm", "test"), catalogue);
  ASSERT_TRUE(h100 && *h100);
  EXPECT_FALSE((*h100)->own);
  EXPECT_EQ((*h100)->basis, "calibration/hopper.toml, for the family Hopper");
  const auto h200 = calibration_of(*catalogue.chip("h200-sxm", "test"), catalogue);
  ASSERT_TRUE(h200 && *h200);
  EXPECT_TRUE((*h200)->own);
  EXPECT_EQ((*h200)->basis, "calibration/h200-sxm.toml");
  // The regime of its measurement is the chip's own; its die and its collectives are those of the family.
  EXPECT_NE((*h200)->values.burst->launch, (*h100)->values.burst->launch);
  EXPECT_EQ((*h200)->values.matmul->droop, (*h100)->values.matmul->droop);
  EXPECT_EQ((*h200)->values.collective->all_gather.share, (*h100)->values.collective->all_gather.share);
  EXPECT_TRUE((*h200)->values.origin("collective").starts_with("calibration/hopper.toml"));
  EXPECT_EQ((*h200)->values.spread->collective, (*h100)->values.spread->collective);
}

// Whatever its name: "aaa" stands before "hopper", "zzz" behind it.
TEST(Calibration, TheUsersReplacesTheBuiltInOneOfItsFamily) {
  for (const std::string id : {"aaa", "zzz"}) {
    Catalogue catalogue = Catalogue::builtin();
    std::string text(small);
    text.replace(text.find("small"), 5, id);
    catalogue.put("calibration/" + id + ".toml", text);
    const auto h100 = calibration_of(*catalogue.chip("h100-sxm", "test"), catalogue);
    ASSERT_TRUE(h100 && *h100) << id;
    EXPECT_EQ((*h100)->basis, "calibration/" + id + ".toml, for the family Hopper");
    EXPECT_EQ((*h100)->values.matmul->share[static_cast<std::size_t>(Dtype::bf16)], 0.9);
    catalogue.put("calibration/later.toml", text.replace(text.find(id), 3, "later"));
    EXPECT_EQ((*calibration_of(*catalogue.chip("h100-sxm", "test"), catalogue))->basis,
              "calibration/later.toml, for the family Hopper");
  }
}

TEST(Calibration, AChipOfNoFamilyHasNone) {
  const Catalogue catalogue = Catalogue::builtin();
  const auto none = calibration_of(*catalogue.chip("mi300x", "test"), catalogue);
  ASSERT_TRUE(none);
  EXPECT_FALSE(*none);
}

TEST(Calibration, TheFabricIsReadFromItsName) {
  EXPECT_EQ(fabric_of("NVLink4 + 32x100G EFA"), Fabric::efa);
  EXPECT_EQ(fabric_of("8x200G GPUDirect-TCPXO"), Fabric::tcpxo);
  EXPECT_EQ(fabric_of("InfiniBand NDR"), Fabric::infiniband);
  EXPECT_EQ(fabric_of("InfiniBand HDR or Ethernet, 200 Gbit/s"), Fabric::infiniband);
  EXPECT_EQ(fabric_of("RoCE, 200 Gbit/s Ethernet"), Fabric::roce);
  EXPECT_EQ(fabric_of(""), Fabric::infiniband);
}

}  // namespace
}  // namespace assay::hardware

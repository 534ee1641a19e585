#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <string>
#include <vector>

#include "assay/hardware/catalogue.h"
#include "assay/hardware/chip.h"

namespace assay::hardware {
namespace {

const char small_chip_file[] = R"(id = "small"
name = "A small chip"
vendor = "Nobody"
family = "tpu"
architecture = "none"
[source.datasheet]
title = "Datasheet"
url = "https://example.org"
accessed = 2026-11-01
[peak]
source = "datasheet"
bf16 = "100 TFLOP/s"
[cores]
source = "datasheet"
kind = "Core"
count = 2
[matrix_unit]
source = "datasheet"
count = 1
[vector_unit]
source = "datasheet"
partitions = 8
lanes = 16
alus = 2
fma = false
clock = "1.5 GHz"
[memory.hbm]
source = "datasheet"
capacity = "16 GiB"
bandwidth = { value = "1 TB/s", source = "datasheet", also = [ { value = "1.1 TB/s", source = "datasheet" } ] }
[network.scale_up]
source = "datasheet"
kind = "torus"
links = 4
link_bandwidth = "50 GB/s"
pod = [16, 16]
wrap_rule = "length"
wrap_length = 16
[host]
source = "datasheet"
chips = 4
pcie = "16 GB/s"
[efficiency]
matrix = { value = 0.9, source = "assumed", note = "a guess" }
memory = { value = 0.9, source = "assumed", note = "a guess" }
[[price]]
source = "datasheet"
value = "1 USD/h"
date = 2026-11-01
provider = "Nobody"
kind = "spot"
)";

/// The small chip with one piece of its text replaced.
std::string with(std::string_view from, std::string_view to) {
  std::string text = small_chip_file;
  const auto at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  return at == std::string::npos ? text : text.replace(at, from.size(), to);
}

using Faults = std::vector<std::string>;

/// All faults as "where | what".
Faults faults(std::string_view text, const std::vector<Override>& overrides = {}) {
  const auto chip = read_chip(text, "small.toml", overrides);
  if (chip) return {};
  Faults all{chip.error().where + " | " + chip.error().what};
  for (const Error& other : chip.error().also) all.push_back(other.where + " | " + other.what);
  return all;
}

std::string first_hint(std::string_view text) { return read_chip(text, "small.toml").error().hint; }

TEST(ChipReader, ASoundFileIsReadWithItsSources) {
  const auto chip = read_chip(small_chip_file, "small.toml");
  ASSERT_TRUE(chip) << chip.error().where << chip.error().what;
  EXPECT_EQ(chip->hbm().bandwidth->value, 1_TB_per_s);
  EXPECT_EQ(chip->hbm().bandwidth->source, "small.toml:30 (datasheet)");
  EXPECT_EQ(chip->hbm().bandwidth->also.at(0).value, 1.1_TB_per_s);
  EXPECT_EQ(chip->efficiency.memory.note, "a guess");
  EXPECT_EQ(chip->network.scale_up->pod->value, (Shape{16, 16}));
  EXPECT_EQ(chip->prices.at(0).date, "2026-11-01");
  EXPECT_FALSE(chip->power);
}

TEST(ChipReader, EveryFaultIsReportedAtOnceWithItsPlace) {
  std::string text = with("bf16 = \"100 TFLOP/s\"", "bf16 = \"100 TFLOPS\"");
  text.replace(text.find("count = 2"), 9, "count = 2.5");
  text.replace(text.find("capacity = \"16 GiB\""), 19, "capacity = 16");
  text.replace(text.find("lanes = 16"), 10, "lains = 16");
  EXPECT_EQ(faults(text), (Faults{
                              "small.toml:12:1: peak.bf16 | unknown unit \"TFLOPS\" in \"100 TFLOPS\"",
                              "small.toml:16:1: cores.count | expected a whole number, got a number",
                              "small.toml:20:1: vector_unit.lanes | this key is required",
                              "small.toml:23:1: vector_unit.lains | unknown key \"lains\"",
                              "small.toml:29:1: memory.hbm.capacity | this number has no unit; expected B",
                          }));
}

TEST(ChipReader, AnUnknownKeySuggestsTheNearest) {
  EXPECT_EQ(first_hint(with("vendor", "vendour")), "docs/catalogue.md lists the keys");
  EXPECT_EQ(faults(with("[host]", "[host]\nchps = 1")), (Faults{"small.toml:40:1: host.chps | unknown key \"chps\""}));
  EXPECT_TRUE(first_hint(with("[host]", "[host]\nchps = 1")).starts_with("did you mean chips"));
  EXPECT_EQ(faults(with("[host]", "[hosts]")).size(), 2u);  // one is missing, one is unknown
  EXPECT_EQ(faults(with("[memory.hbm]", "[memory.hmb]")).size(), 1u);
}

TEST(ChipReader, ANumberNeedsASourceThatTheFileKnows) {
  EXPECT_EQ(faults(with("[cores]\nsource = \"datasheet\"", "[cores]")),
            (Faults{"small.toml:15:1: cores.count | this number has no source"}));
  EXPECT_EQ(
      faults(with("matrix = { value = 0.9, source = \"assumed\"", "matrix = { value = 0.9, source = \"datashet\"")),
      (Faults{"small.toml:44:10: efficiency.matrix | unknown source \"datashet\""}));
  EXPECT_EQ(first_hint(with("also = [ { value = \"1.1 TB/s\", source = \"datasheet\"",
                            "also = [ { value = \"1.1 TB/s\", source = \"datashet\"")),
            "did you mean datasheet?");
}

TEST(ChipReader, TheUnknownSourceOfATableIsReportedOnce) {
  EXPECT_EQ(faults(with("[host]\nsource = \"datasheet\"", "[host]\nsource = \"datashet\"")),
            (Faults{"small.toml:40:1: host.source | unknown source \"datashet\""}));
  EXPECT_EQ(faults(with("[host]\nsource = \"datasheet\"", "[host]\nsource = 7")).front(),
            "small.toml:40:1: host.source | expected text, got a whole number");
}

TEST(ChipReader, AnAssumedNumberNeedsANote) {
  EXPECT_EQ(faults(with("matrix = { value = 0.9, source = \"assumed\", note = \"a guess\" }",
                        "matrix = { value = 0.9, source = \"assumed\" }")),
            (Faults{"small.toml:44:10: efficiency.matrix | an assumed number needs a note"}));
}

TEST(ChipReader, ASourceIsATitleAPlaceAndADate) {
  EXPECT_EQ(faults(with("title = \"Datasheet\"\n", "")),
            (Faults{"small.toml:6:1: source.datasheet.title | this key is required"}));
  EXPECT_EQ(faults(with("url = ", "link = ")),
            (Faults{"small.toml:6:1: source.datasheet.url | a source needs url or command",
                    "small.toml:8:1: source.datasheet.link | unknown key \"link\""}));
  EXPECT_EQ(faults(with("accessed = 2026-11-01", "accessed = \"yesterday\"")),
            (Faults{"small.toml:9:1: source.datasheet.accessed | expected a date, got text"}));
  EXPECT_EQ(faults(with("title = \"Datasheet\"", "title = \"Datasheet\"\npage = 3")),
            (Faults{"small.toml:8:1: source.datasheet.page | unknown key \"page\""}));
  EXPECT_EQ(
      faults(std::string(small_chip_file) + "[source.assumed]\ntitle = \"x\"\nurl = \"x\"\naccessed = 2026-11-01\n"),
      (Faults{"small.toml:52:1: source.assumed | the source \"assumed\" is reserved"}));
  EXPECT_EQ(faults(with("[source.datasheet]", "source = \"book\"\n[other]")).front(),
            "small.toml:6:1: source | expected a table, got text");
}

TEST(ChipReader, WrongKindsAreNamed) {
  EXPECT_EQ(faults(with("name = \"A small chip\"", "name = 7")),
            (Faults{"small.toml:2:1: name | expected text, got a whole number"}));
  EXPECT_EQ(faults(with("fma = false", "fma = \"no\"")),
            (Faults{"small.toml:25:1: vector_unit.fma | expected true or false, got text"}));
  EXPECT_EQ(faults(with("pod = [16, 16]", "pod = 256")),
            (Faults{"small.toml:36:1: network.scale_up.pod | expected a list, got a whole number"}));
  EXPECT_EQ(faults(with("date = 2026-11-01", "date = \"now\"")),
            (Faults{"small.toml:49:1: price.date | expected a date, got text"}));
  EXPECT_EQ(faults(with("[[price]]", "[price]")),
            (Faults{"small.toml:46:1: price | expected a list of tables, got a table"}));
  EXPECT_EQ(faults(with("[peak]\nsource = \"datasheet\"\nbf16 = \"100 TFLOP/s\"",
                        "[peak]\nbf16 = { source = \"datasheet\", valeu = \"1 TFLOP/s\" }")),
            (Faults{"small.toml:11:8: peak.bf16 | value is missing",
                    "small.toml:11:32: peak.bf16 | unknown or wrongly typed key \"valeu\""}));
}

TEST(ChipReader, AFigureMustBeSensible) {
  for (const char* clock : {"\"-1.5 GHz\"", "\"0 GHz\"", "\"nan GHz\"", "\"inf GHz\"", "\"1e999 GHz\"", "nan", "inf",
                            "-1", "\"1.5 GB\"", "\"\""})
    EXPECT_EQ(faults(with("clock = \"1.5 GHz\"", std::string("clock = ") + clock)).size(), 1u) << clock;
  for (const char* count : {"0", "-2", "1000000001", "9223372036854775807", "nan", "2.0", "\"2\"", "[2]", "true"})
    EXPECT_EQ(faults(with("count = 2", std::string("count = ") + count)).size(), 1u) << count;
  for (const char* share : {"0", "-0.5", "1.01", "nan", "inf", "-inf", "\"0.9\"", "{ value = 1 }"})
    EXPECT_EQ(faults(with("matrix = { value = 0.9", std::string("matrix = { value = ") + share)).size(), 1u) << share;
}

TEST(ChipReader, FieldsMustAgree) {
  EXPECT_EQ(faults(with("family = \"tpu\"", "family = \"npu\"")),
            (Faults{"small.toml:4:1: family | unknown family \"npu\""}));
  EXPECT_EQ(faults(with("links = 4", "links = 6")),
            (Faults{"small.toml:34:1: network.scale_up.links | a torus of 2 axes has 4 links per chip, got 6"}));
  EXPECT_EQ(faults(with("kind = \"torus\"", "kind = \"switched\"")),
            (Faults{"small.toml:31:1: network.scale_up | a switched or direct network needs domain"}));
  EXPECT_EQ(faults(with("wrap_rule = \"length\"", "wrap_rule = \"cube\"")),
            (Faults{"small.toml:37:1: network.scale_up.wrap_rule | wrap_rule cube needs three axes"}));
  EXPECT_EQ(faults(with("kind = \"spot\"", "kind = \"gift\"")),
            (Faults{"small.toml:51:1: price.kind | unknown kind \"gift\""}));
  EXPECT_EQ(faults(with("id = \"small\"", "id = \"large\"")),
            (Faults{"small.toml:1:1: id | the id is \"large\" but the file is \"small.toml\""}));
  EXPECT_EQ(faults(with("bf16 = \"100 TFLOP/s\"", "")),
            (Faults{"small.toml:10:1: peak | a chip needs at least one peak rate"}));
}

TEST(ChipReader, ProductsOfCountsDoNotOverflow) {
  EXPECT_EQ(faults(with("pod = [16, 16]", "pod = [1000000000, 1000000000]")),
            (Faults{"small.toml:36:1: network.scale_up.pod | a pod has at most 10 million chips"}));
  EXPECT_EQ(faults(with("pod = [16, 16]", "pod = [16, 16]\nshapes = [[1000000000, 1000000000]]")).size(), 1u);
  EXPECT_EQ(faults(with("wrap_length = 16", "wrap_length = 1000000000")).size(), 1u);
  EXPECT_EQ(faults(with("partitions = 8\nlanes = 16", "partitions = 1000000000\nlanes = 1000000000")).size(), 1u);
}

TEST(ChipReader, WhatIsNoChipFileIsRefused) {
  EXPECT_EQ(faults("").front(), "small.toml:1:1: id | this key is required");
  EXPECT_EQ(faults("\x89PNG\r\n\x1a\n").size(), 1u);
  EXPECT_EQ(faults("{\"id\": \"small\"}").size(), 1u);
  EXPECT_EQ(faults(with("Datasheet", "\xff")), (Faults{"small.toml:7:10 | the text is not UTF-8"}));
  EXPECT_EQ(faults(with("Datasheet", "\x07")), (Faults{"small.toml:7:10 | control byte 0x07"}));
  EXPECT_EQ(faults(small_chip_file + std::string(1 << 20, '#')).size(), 1u);
  EXPECT_EQ(faults(with("count = 2", "count = 2\ncount = 2")).front().substr(0, 14), "small.toml:17:");
  EXPECT_EQ(faults(with("count = 2", "count = " + std::string(100'000, '['))).front().substr(0, 14), "small.toml:16:");
}

TEST(ChipReader, AnOverrideReplacesOneNumberAndIsItsSource) {
  const auto chip = read_chip(small_chip_file, "small.toml",
                              {{"memory.hbm.bandwidth", "2 TB/s"}, {"cores.count", "4"}, {"peak.int8", "1 TFLOP/s"}});
  ASSERT_TRUE(chip) << chip.error().where << chip.error().what;
  EXPECT_EQ(chip->hbm().bandwidth->value, 2_TB_per_s);
  EXPECT_EQ(chip->hbm().bandwidth->source, "--set");
  EXPECT_TRUE(chip->hbm().bandwidth->also.empty());
  EXPECT_EQ(chip->cores.count.value, 4);
  EXPECT_EQ(peak_rate(*chip, Dtype::int8, "")->value, 1_TFLOP_per_s);  // a key that the file leaves out
  EXPECT_EQ(chip->hbm().capacity.source, "small.toml:29 (datasheet)");
}

TEST(ChipReader, AFabricFollowsThePortsOfItsChips) {
  const auto with = [](const std::vector<Override>& overrides) {
    return Catalogue::builtin().chip("h100-sxm", "test", overrides)->network.scale_out->levels;
  };
  const auto usual = with({}), faster = with({{"network.scale_out.bandwidth", "100 GB/s"}});
  ASSERT_EQ(faster.size(), usual.size());
  for (std::size_t i = 0; i < usual.size(); ++i) EXPECT_EQ(faster[i].bandwidth.value, 2.0 * usual[i].bandwidth.value);
  const auto thin = with({{"network.scale_out.level.spine.bandwidth", "1 TB/s"}});
  EXPECT_EQ(thin[0].bandwidth.value, usual[0].bandwidth.value);
  EXPECT_EQ(thin[1].bandwidth.value, 1_TB_per_s);
}

TEST(ChipReader, AFabricKeepsWhatEachChipHas) {
  const auto with = [](const std::vector<Override>& overrides) {
    return *Catalogue::builtin().chip("h100-sxm", "test", overrides)->network.scale_out;
  };
  const ScaleOut pairs = with({{"network.scale_up.domain", "2"}, {"network.scale_out.level.leaf.degree", "16"}});
  EXPECT_EQ(pairs.levels[0].bandwidth.value, 2.0 * 50_GB_per_s);
  EXPECT_EQ(pairs.levels[1].bandwidth.value, 32.0 * 50_GB_per_s);
  EXPECT_EQ(pairs.levels[2].bandwidth.value, 128.0 * 50_GB_per_s);
}

TEST(ChipReader, AChipHasItsShareOfTheAdapters) {
  const auto with = [](const char* chip, const std::vector<Override>& overrides) {
    return Catalogue::builtin().chip(chip, "test", overrides);
  };
  const auto slow = with("h100-pcie", {{"network.scale_out.nic_bandwidth", "1 GB/s"}});  // 4 for 8 cards
  EXPECT_EQ(slow->network.scale_out->bandwidth.value, 0.5_GB_per_s);
  EXPECT_EQ(slow->network.scale_out->levels[0].bandwidth.value, 4_GB_per_s);
  const auto more = with("h100-pcie", {{"network.scale_out.nics_per_host", "8"}});
  EXPECT_EQ(more->network.scale_out->bandwidth.value, 50_GB_per_s);
  const auto both =
      with("h100-pcie", {{"network.scale_out.nics_per_host", "8"}, {"network.scale_out.bandwidth", "1 GB/s"}});
  EXPECT_EQ(both->network.scale_out->bandwidth.value, 1_GB_per_s);
  EXPECT_EQ(with("tpu-v4", {{"network.scale_out.nic_bandwidth", "1 GB/s"}}).error().hint,
            "set both, or network.scale_out.bandwidth");
  for (const std::string& id : Catalogue::builtin().chip_ids()) {
    const Chip chip = *with(id.c_str(), {});
    if (!chip.network.scale_out || !chip.network.scale_out->nics_per_host) continue;
    const ScaleOut& out = *chip.network.scale_out;
    EXPECT_NEAR(out.bandwidth.value / (static_cast<double>(out.nics_per_host->value) * out.nic_bandwidth->value),
                1.0 / static_cast<double>(chip.host.chips.value), 1e-12)
        << id;
  }
}

TEST(ChipReader, NoMoreEntersALevelThanItsChipsSend) {
  const auto chip =
      Catalogue::builtin().chip("h100-sxm", "test", {{"network.scale_out.level.spine.bandwidth", "13 TB/s"}});
  ASSERT_FALSE(chip);
  EXPECT_EQ(chip.error().where, "--set network.scale_out.level.spine.bandwidth");
  EXPECT_EQ(chip.error().what, "13 TB/s is more than the 256 chips below can send: 12.8 TB/s");
}

TEST(ChipReader, AnOverrideIsFaultyAtTheFlag) {
  EXPECT_EQ(faults(small_chip_file, {{"memory.hbm.bandwidth", "2"}}),
            (Faults{"--set memory.hbm.bandwidth | this number has no unit; expected B/s"}));
  EXPECT_EQ(faults(small_chip_file, {{"memory.hbm.bandwith", "2 TB/s"}}),
            (Faults{"--set memory.hbm.bandwith | unknown key \"bandwith\""}));
  EXPECT_EQ(faults(small_chip_file, {{"memroy.hbm.bandwidth", "2 TB/s"}}),
            (Faults{"--set memroy.hbm.bandwidth | \"memroy.hbm.bandwidth\" is not a number of the chip"}));
  EXPECT_EQ(faults(small_chip_file, {{"memory", "2 TB/s"}}),
            (Faults{"--set memory | \"memory\" is not a number of the chip"}));
  EXPECT_EQ(faults(small_chip_file, {{"cores.kind", "3"}}),
            (Faults{"--set cores.kind | expected text, got a whole number"}));
  for (const char* path : {"", ".", "cores.", "cores.count.value.value", "price.value", "network.scale_up.pod"})
    EXPECT_EQ(faults(small_chip_file, {{path, "3 s"}}).size(), 1u) << path;
  EXPECT_EQ(read_chip(small_chip_file, "small.toml", {{"memroy.hbm", "1"}}).error().hint, "did you mean memory?");
}

RC_GTEST_PROP(ChipReader, ATruncatedFileIsNeverAChip, ()) {
  const std::string text = small_chip_file;
  const auto length = *rc::gen::inRange<std::size_t>(0, text.find("[[price]]") - 60);
  RC_ASSERT(!faults(text.substr(0, length)).empty());
}

RC_GTEST_PROP(ChipReader, ADamagedFileIsReadOrRefusedWithItsPlace, ()) {
  std::string text = small_chip_file;
  for (int i = *rc::gen::inRange(1, 4); i > 0; --i)
    text[*rc::gen::inRange<std::size_t>(0, text.size())] = *rc::gen::inRange('\t', '\x7f');
  for (const std::string& fault : faults(text)) RC_ASSERT(fault.starts_with("small.toml:"));
}

}  // namespace
}  // namespace assay::hardware

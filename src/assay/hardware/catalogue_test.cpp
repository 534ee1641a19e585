#include "assay/hardware/catalogue.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <set>
#include <string>
#include <vector>

#include "assay/base/text.h"
#include "assay/testing/test_directory.h"

namespace assay::hardware {
namespace {

/// Calls `check(path, value, source)` for every number of a chip.
template <class Check>
struct Numbers {
  Check& check;
  std::string path;

  void text(std::string_view key, const std::string& value) { EXPECT_FALSE(value.empty()) << path << key; }
  void text(std::string_view, const std::optional<std::string>&) {}
  void date(std::string_view key, const std::string& value) { EXPECT_EQ(value.size(), 10u) << path << key; }
  template <class T>
  void number(std::string_view key, const Sourced<T>& value) {
    check(path + std::string(key), value.source);
    for (const auto& other : value.also) check(path + std::string(key) + " (also)", "also (" + other.source + ")");
  }
  template <class T>
  void number(std::string_view key, const Maybe<T>& value) {
    if (value) number(key, *value);
  }
  template <class T, class F>
  void table(std::string_view key, const T& value, F visit) {
    Numbers inner{check, path + std::string(key) + "."};
    visit(value, inner);
  }
  template <class T, class F>
  void optional_table(std::string_view key, const T& value, F visit) {
    table(key, value, visit);
  }
  template <class T, class F>
  void optional_table(std::string_view key, const std::optional<T>& value, F visit) {
    if (value) table(key, *value, visit);
  }
  template <class T, class F>
  void items(std::string_view key, const std::vector<T>& values, F visit) {
    for (const T& value : values) table(key, value, visit);
  }
  template <class T, class F>
  void named_tables(std::string_view key, const std::vector<T>& values, std::span<const std::string_view>, F visit) {
    for (const T& value : values) table(std::string(key) + "." + value.name, value, visit);
  }
};

std::string replaced(std::string text, std::string_view from, std::string_view to) {
  const auto at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  return at == std::string::npos ? text : text.replace(at, from.size(), to);
}

std::string builtin_text(std::string_view path) { return std::string(Catalogue::builtin().files(path).at(0).second); }

TEST(Catalogue, HoldsTheChipsOfTheContract) {
  // The list of CLI.md, except `host`, which is this machine after `measure`.
  std::vector<std::string> wanted = split(
      "tpu-v2 tpu-v3 tpu-v4 tpu-v5e tpu-v5p tpu-v6e tpu-v7 v100-sxm a100-sxm-40 a100-sxm-80 h100-sxm h100-pcie "
      "h200-sxm b200 b300 "
      "gb200-nvl72 gb300-nvl72 l4 l40s rtx-4090 mi250x mi300x mi325x mi355x gaudi3 trainium2",
      ' ');
  std::sort(wanted.begin(), wanted.end());
  const std::vector<std::string> held = Catalogue::builtin().chip_ids();
  EXPECT_TRUE(std::includes(held.begin(), held.end(), wanted.begin(), wanted.end()));
}

TEST(Catalogue, EveryChipLoadsUnderItsOwnName) {
  const Catalogue catalogue = Catalogue::builtin();
  for (const std::string& id : catalogue.chip_ids()) {
    const auto chip = catalogue.chip(id, "--on");
    ASSERT_TRUE(chip) << chip.error().where << ": " << chip.error().what;
    EXPECT_EQ(chip->id, id);
    EXPECT_EQ(chip->hbm().name, "hbm") << id;
  }
}

TEST(Catalogue, EveryNumberNamesASourceOfItsFile) {
  const Catalogue catalogue = Catalogue::builtin();
  for (const std::string& id : catalogue.chip_ids()) {
    const Chip chip = *catalogue.chip(id, "--on");
    std::set<std::string> keys{"assumed"};
    for (const SourceEntry& source : chip.sources) keys.insert(source.key);
    int count = 0;
    const auto check = [&](const std::string& path, const std::string& source) {
      const auto open = source.rfind('(');
      ASSERT_TRUE(open != std::string::npos && source.ends_with(")")) << id << " " << path << ": " << source;
      EXPECT_TRUE(keys.contains(source.substr(open + 1, source.size() - open - 2)))
          << id << " " << path << ": " << source;
      ++count;
    };
    Numbers<decltype(check)> numbers{check, ""};
    visit_chip(chip, numbers);
    EXPECT_GE(count, 20) << id;
  }
}

TEST(Catalogue, TheMatrixUnitsTimesTheirClockAreTheDensePeak) {
  // E.g. tpu-v5e: 1 core x 4 units x 2 x 128 x 128 FLOP x 1.5 GHz = 196.6 TFLOP/s against 197.
  const Catalogue catalogue = Catalogue::builtin();
  int checked = 0;
  for (const std::string& id : catalogue.chip_ids()) {
    const Chip chip = *catalogue.chip(id, "--on");
    const auto per_cycle = matrix_flops_per_cycle(chip);
    auto peak = peak_rate(chip, Dtype::bf16, "");
    if (!peak) peak = peak_rate(chip, Dtype::fp16, "");  // older than bf16
    ASSERT_TRUE(peak) << id;
    if (!per_cycle || !chip.matrix_unit.clock) continue;
    const double units = static_cast<double>(chip.cores.count.value * chip.matrix_unit.count.value);
    const FlopsPerSecond derived = units * per_cycle->value * chip.matrix_unit.clock->value;
    EXPECT_NEAR(derived / peak->value, 1.0, 0.03) << id << ": " << human(derived) << " against " << human(peak->value);
    ++checked;
  }
  EXPECT_GE(checked, 20);
}

TEST(Catalogue, FasterFormatsAreNoSlowerAndSparsityHelps) {
  const Catalogue catalogue = Catalogue::builtin();
  for (const std::string& id : catalogue.chip_ids()) {
    const Chip chip = *catalogue.chip(id, "--on");
    const auto rate = [](const Peaks& peaks, Dtype dtype) { return peaks[static_cast<std::size_t>(dtype)]; };
    if (rate(chip.peak, Dtype::fp8))
      EXPECT_GE(rate(chip.peak, Dtype::fp8)->value, rate(chip.peak, Dtype::bf16)->value) << id;
    if (rate(chip.peak, Dtype::fp4))
      EXPECT_GE(rate(chip.peak, Dtype::fp4)->value, rate(chip.peak, Dtype::fp8)->value) << id;
    for (const DtypeFacts& dtype : all_dtypes())
      if (const auto sparse = rate(chip.peak_sparse, dtype.dtype))
        EXPECT_GT(sparse->value, rate(chip.peak, dtype.dtype)->value) << id << dtype.name;
  }
}

TEST(Catalogue, AnUnknownChipAnswersWithTheNearest) {
  const auto chip = Catalogue::builtin().chip("h100-sxn", "--on");
  ASSERT_FALSE(chip);
  EXPECT_EQ(chip.error().kind, Error::Kind::missing);
  EXPECT_EQ(chip.error().where, "--on");
  EXPECT_EQ(chip.error().what, "unknown chip \"h100-sxn\"");
  EXPECT_TRUE(chip.error().hint.starts_with("did you mean h100-sxm")) << chip.error().hint;
  EXPECT_EQ(Catalogue::builtin().chip("abacus", "--on").error().hint, "`assay chips` lists them");
  EXPECT_FALSE(Catalogue::builtin().chip("../chips/l4", "--on"));
}

TEST(Overlay, AFileReplacesTheOneOfItsName) {
  const testing::TestDirectory directory;
  directory.write("chips/l4.toml", replaced(builtin_text("chips/l4.toml"), "\"NVIDIA L4 24GB\"", "\"my L4\""));
  Catalogue catalogue = Catalogue::builtin();
  const auto before = catalogue.chip_ids();
  ASSERT_TRUE(catalogue.overlay(directory.path()));
  EXPECT_EQ(catalogue.chip("l4", "--on")->name, "my L4");
  EXPECT_EQ(catalogue.chip_ids(), before);
}

TEST(Overlay, AFileOutsideOfChipsIsAChipToo) {
  const testing::TestDirectory directory;
  directory.write("mine.toml", replaced(builtin_text("chips/l4.toml"), "\"l4\"", "\"mine\""));
  Catalogue catalogue = Catalogue::builtin();
  ASSERT_TRUE(catalogue.overlay(directory.path()));
  EXPECT_EQ(catalogue.chip("mine", "--on")->id, "mine");
}

TEST(Overlay, WhatIsNoCatalogueIsRefused) {
  Catalogue catalogue = Catalogue::builtin();
  EXPECT_EQ(catalogue.overlay("/nowhere/at/all").error().what, "\"/nowhere/at/all\" is not a directory");
  const testing::TestDirectory directory;
  EXPECT_EQ(catalogue.overlay(directory.path()).error().hint, "a chip is DIR/chips/ID.toml");
  directory.write("huge.toml", std::string((1 << 20) + 1, '#'));
  EXPECT_TRUE(catalogue.overlay(directory.path()).error().what.ends_with("is larger than 1 MiB"));
}

TEST(ReadFile, AFileThatCannotBeReadIsMissing) {
  const testing::TestDirectory directory;
  directory.write("a.toml", "x = 1\n");
  EXPECT_EQ(*read_file(directory.file("a.toml"), "--on"), "x = 1\n");
  EXPECT_EQ(read_file(directory.file("b.toml"), "--on").error().kind, Error::Kind::missing);
  EXPECT_EQ(read_file(directory.path(), "--on").error().kind, Error::Kind::missing);
}

TEST(Catalogue, ReplacesFilesFromADirectoryUnlessTheyWereLaidOverLater) {
  Catalogue catalogue = Catalogue::builtin();
  catalogue.put("steps/a.toml", "a");
  catalogue.put("folds/9/steps/a.toml", "a of the fold");
  catalogue.put("folds/9/steps/b.toml", "b of the fold");
  catalogue.put("steps/b.toml", "the user's b");
  const Catalogue replaced = catalogue.replaced_from("folds/9/");
  EXPECT_EQ(replaced.files("steps/a.toml").front().second, "a of the fold");
  EXPECT_EQ(replaced.files("steps/b.toml").front().second, "the user's b");
  EXPECT_EQ(catalogue.files("steps/a.toml").front().second, "a");
}

}  // namespace
}  // namespace assay::hardware

#include "assay/predict/kernel/software/software.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace assay::kernel {
namespace {

constexpr std::string_view anvil = R"toml(
id = "anvil"
name = "Anvil"
[source.manual]
title = "its manual"
[[version]]
id = "0.9"
date = "2023-10"
source = "manual"
[[version]]
id = "0.12"
date = "2024-06"
source = "manual"
[[version]]
id = "1.0"
date = "2025-02"
source = "manual"
[[named]]
text = "Anvil*"
source = "manual"
[[named]]
text = "Anvil {} (fast)"
source = "manual"
at_least = "0.12"
with = { "dropout" = "yes" }
[[recompute]]
word = "thrifty*"
means = "products"
source = "manual"
[[train]]
option = "fusion"
value = "eager"
source = "manual"
[[train]]
option = "loss"
value = "fused"
source = "manual"
since = "1.0"
when = { fusion = "compiled" }
[[train]]
option = "tensor-overlap"
value = "none"
source = "manual"
[[train]]
option = "tensor-overlap"
value = "all"
source = "manual"
since = "0.12"
when = { family = "tpu" }
[[train]]
option = "dispatch"
value = "expert"
source = "manual"
when = { model = "ox-*", chip = "plough-2" }
)toml";

SoftwareList list() { return {*read_software(anvil, "software/anvil.toml")}; }

std::string value_of(const std::vector<SoftwareProperty>& properties, std::string_view option) {
  for (const SoftwareProperty& one : properties)
    if (one.option == option) return one.value;
  return "";
}

TEST(Software, AVersionIsFoundByNumberByMonthOrIsTheNewest) {
  const SoftwareList all = list();
  const auto version = [&](std::string_view text) { return find_software(all, text, "--software")->version_id(); };
  EXPECT_EQ(version("anvil"), "1.0");
  EXPECT_EQ(version("anvil@0.12"), "0.12");
  EXPECT_EQ(version("anvil@0.12.3rc1"), "0.12");
  EXPECT_EQ(version("anvil@0.10"), "0.9");
  EXPECT_EQ(version("anvil@24.07"), "0.12");
  EXPECT_EQ(version("anvil@2025-01"), "0.12");
}

TEST(Software, UnknownNamesAndVersionsAreErrors) {
  const SoftwareList all = list();
  const auto name = find_software(all, "anwil", "--software");
  ASSERT_FALSE(name);
  EXPECT_EQ(name.error().hint, "did you mean anvil?");
  for (const std::string_view text : {"anvil@0.1", "anvil@soon", "anvil@"}) {
    const auto version = find_software(all, text, "--software");
    ASSERT_FALSE(version) << text;
    EXPECT_EQ(version.error().hint, "known: 0.9, 0.12, 1.0");
  }
}

TEST(Software, TablesNameItInTheirOwnWay) {
  const SoftwareList all = list();
  const auto named = [&](std::string_view text, std::string_view version, std::int64_t year) {
    return named_software(all, SoftwareVerb::train, text, version, year)->version_id();
  };
  EXPECT_EQ(named("Anvil", "", 2024), "0.12") << "the first release of the year";
  EXPECT_EQ(named("Anvil", "", 2030), "1.0");
  EXPECT_EQ(named("Anvil", "nightly", 2023), "0.9");
  EXPECT_EQ(named("Anvil", "v0.12.1-cu130", 2030), "0.12") << "a number is worth more than the year";
  EXPECT_EQ(named("Anvil", "anvil/anvil-openai:v0.12.1", 2030), "0.12");
  EXPECT_EQ(named("ANVIL", "0.12", 2030), "0.12") << "case does not count";
  EXPECT_EQ(named("anvil_v25.03 (fast)", "", 2024), "1.0");
  EXPECT_EQ(named("Anvil", "", 0), "1.0");
  EXPECT_EQ(named("Anvil", "0.5", 2025), "0.9") << "like the first one";
  EXPECT_EQ(named("Anvil 25.03 (fast)", "", 2024), "1.0");
  EXPECT_EQ(named("Anvil 23.11 (fast)", "", 2024), "0.12") << "at least";
  EXPECT_FALSE(named_software(all, SoftwareVerb::train, "Hammer", "", 2024));
  EXPECT_FALSE(named_software(all, SoftwareVerb::serve, "Anvil", "", 2024)) << "it does not serve";
}

TEST(Software, PropertiesDependOnVersionAndCase) {
  const SoftwareList all = list();
  const auto of = [&](std::string_view text, const SoftwareCase& at) {
    return properties(*find_software(all, text, ""), SoftwareVerb::train, at);
  };
  SoftwareCase tpu, compiled;
  tpu.family = "tpu";
  compiled.fusion = "compiled";
  EXPECT_EQ(value_of(of("anvil", {}), "tensor-overlap"), "none");
  EXPECT_EQ(value_of(of("anvil", tpu), "tensor-overlap"), "all");
  EXPECT_EQ(value_of(of("anvil@0.9", tpu), "tensor-overlap"), "none");
  EXPECT_EQ(value_of(of("anvil", {}), "loss"), "");
  EXPECT_EQ(value_of(of("anvil", compiled), "loss"), "fused");
  EXPECT_EQ(value_of(of("anvil@0.12", compiled), "loss"), "");
  SoftwareCase one;
  one.chip = "plough-2";
  one.model = "ox-7b";
  EXPECT_EQ(value_of(of("anvil", one), "dispatch"), "expert");
  one.model = "mule-7b";
  EXPECT_EQ(value_of(of("anvil", one), "dispatch"), "");
  one.model = "ox-7b";
  one.chip = "plough-1";
  EXPECT_EQ(value_of(of("anvil", one), "dispatch"), "");
  TrainingSoftware software;
  const auto chosen = named_software(all, SoftwareVerb::train, "Anvil 25.03 (fast)", "", 0);
  ASSERT_TRUE(apply_software(*chosen, {}, software));
  EXPECT_EQ(software.step.fusion, numbers::Fusion::eager);
  EXPECT_EQ(software.step.tensor_overlap, numbers::TensorOverlap::none);
  EXPECT_TRUE(software.dropout) << "the name says so";
}

TEST(Software, SettingsHaveAMeaning) {
  const SoftwareList all = list();
  EXPECT_EQ(recompute_meaning(all[0].recompute, "thrifty(2)"), "products");
  EXPECT_EQ(recompute_meaning(all[0].recompute, "full"), "full");
  EXPECT_EQ(recompute_meaning(all[0].recompute, "Full"), "full");
  EXPECT_EQ(recompute_meaning(all[0].recompute, "off"), "none");
  EXPECT_FALSE(recompute_meaning(all[0].recompute, "lavish"));
}

TEST(Software, EveryFaultOfAFileIsReported) {
  std::string text(anvil);
  const auto replace = [&](std::string_view from, std::string_view to) {
    text.replace(text.find(from), from.size(), to);
  };
  replace("value = \"eager\"", "value = \"egaer\"");
  replace("date = \"2024-06\"", "date = \"June\"");
  replace("since = \"1.0\"", "since = \"2.0\"");
  replace("family = \"tpu\"", "colour = \"red\"");
  replace("means = \"products\"", "means = \"nothing much\"");
  const auto read = read_software(text, "software/anvil.toml");
  ASSERT_FALSE(read);
  EXPECT_EQ(read.error().where, "software/anvil.toml:12:1: version.date") << read.error().what;
  EXPECT_EQ(read.error().also.size(), 4u);
  EXPECT_FALSE(read_software(anvil, "software/hammer.toml")) << "file name = id";
}

TEST(Software, EngineOptionsSetWhatAnEngineDoes) {
  EngineSoftware software;
  ASSERT_TRUE(set_software(software, "fusion", "eager", ""));
  EXPECT_FALSE(software.step.captured);
  ASSERT_TRUE(set_software(software, "graphs", "yes", ""));
  EXPECT_TRUE(software.step.captured);
  ASSERT_TRUE(set_software(software, "cache-kernel", "unsplit-matrix", ""));
  EXPECT_TRUE(software.step.whole_rows && !software.step.vector_decode);
  ASSERT_TRUE(set_software(software, "memory-share", "0.9", ""));
  EXPECT_DOUBLE_EQ(software.memory.share, 0.9);
  EXPECT_FALSE(software.memory.of_free);
  ASSERT_TRUE(set_software(software, "memory-share", "0.85 of free", ""));
  EXPECT_DOUBLE_EQ(software.memory.share, 0.85);
  EXPECT_TRUE(software.memory.of_free);
  EXPECT_FALSE(set_software(software, "memory-share", "2", ""));
  ASSERT_TRUE(set_software(software, "front-end", "4.9 ms", "--front-end"));
  EXPECT_EQ(software.path.front_end, 4.9_ms);
  EXPECT_EQ(software.path.front_end.source, "--front-end");
  ASSERT_TRUE(set_software(software, "steps-ahead", "1", ""));
  EXPECT_EQ(software.path.ahead, 1.0);
  EXPECT_FALSE(set_software(software, "steps-ahead", "2", ""));
  EXPECT_FALSE(set_software(software, "delivery", "5 GB", ""));
  const auto negative = set_software(software, "tokenising", "-1 us", "--tokenising");
  ASSERT_FALSE(negative);
  EXPECT_EQ(negative.error().what, "a time cannot be negative");
  const auto wrong = set_software(software, "scheduler", "nativ", "--scheduler");
  ASSERT_FALSE(wrong);
  EXPECT_EQ(wrong.error().hint, "did you mean native?");
}

TEST(Software, EveryFileOfTheCatalogueLoads) {
  const auto all = software_of(hardware::Catalogue::builtin());
  ASSERT_TRUE(all) << all.error().where << ": " << all.error().what;
  EXPECT_GT(all->size(), 20u);
  const auto engines = engines_of(hardware::Catalogue::builtin());
  ASSERT_TRUE(engines);
  EXPECT_EQ(static_cast<std::ptrdiff_t>(engines->size()),
            std::count_if(all->begin(), all->end(), [](const Software& one) { return !one.serve.empty(); }));
}

}  // namespace
}  // namespace assay::kernel

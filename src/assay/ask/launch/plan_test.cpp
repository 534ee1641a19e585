#include "assay/ask/launch/plan.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "assay/ask/launch/command.h"
#include "assay/ask/launch/script.h"
#include "assay/testing/catalogue.h"

namespace assay::launch {
namespace {

constexpr std::string_view small_target = R"(
id = "small"
name = "Small"
verb = "train"
version = "1"
style = "arguments"
command = "start {launcher} small.py {options}"
recognised = "small.py"
known = "--tp --gbs --gpus --remat --method --lr --fast"
[source.here]
title = "this test"
url = "https://example.com"
[[option]]
name = "--gpus"
value = "chips"
launcher = true
[[option]]
name = "--tp"
aliases = ["-t"]
value = "tp"
standard = "1"
reason = "{tp} ways"
[[option]]
name = "--gbs"
value = "sequences / dp"
[[choice]]
about = "recompute"
[[choice.case]]
when = { recompute = "none" }
[[choice.case]]
when = { recompute = "full" }
options = { "--remat" = "full", "--method" = "uniform" }
[[choice]]
about = "overlap"
[[choice.case]]
when = { overlap = "yes", tp = ">1" }
options = { "--fast" = "true" }
[[choice.case]]
when = { overlap = "no" }
[[demand]]
whole = "layers / tp"
text = "{layers} layers"
[[required]]
name = "--lr"
value = "1"
when = { tp = ">1" }
)";

constexpr Relation small_relations[] = {{"chips", "dp * tp"}};

Target small() {
  auto target = read_target(small_target, "launch/small.toml");
  EXPECT_TRUE(target) << (target ? "" : target.error().what);
  return *target;
}

Settings small_plan() {
  return {{"chips", "8"},  {"tp", "2"},           {"dp", "4"},       {"sequences", "32"},
          {"layers", "4"}, {"recompute", "full"}, {"overlap", "yes"}};
}

TEST(LaunchPlan, OptionsAndTheirReasons) {
  const auto lines = lines_of(small(), small_plan());
  ASSERT_TRUE(lines);
  std::vector<std::string> all;
  for (const Line& line : *lines) all.push_back(line.name + " " + line.value);
  EXPECT_EQ(all, (std::vector<std::string>{"--gpus 8", "--tp 2", "--gbs 8", "--remat full", "--method uniform",
                                           "--fast true"}));
  EXPECT_EQ((*lines)[1].reason, "2 ways");
}

TEST(LaunchPlan, ReadingSolvesForWhatIsNotGiven) {
  const std::vector<Given> given{{"--gpus", "8", true}, {"-t", "2", false}, {"--gbs", "8", false}};
  const auto reading = read_lines(small(), given, {}, small_relations);
  ASSERT_TRUE(reading);
  EXPECT_EQ(reading->plan.at("dp"), "4");
  EXPECT_EQ(reading->plan.at("sequences"), "32");
  EXPECT_EQ(reading->plan.at("recompute"), "none");
  EXPECT_EQ(reading->plan.at("overlap"), "no");
  EXPECT_TRUE(reading->unused.empty());
}

TEST(LaunchPlan, EveryOptionIsUsedOrNamed) {
  const std::vector<Given> given{{"--lr", "1e-4", false},
                                 {"--remat", "half", false},
                                 {"--tp", "$TP", false},
                                 {"--colour", "red", false},
                                 {"--nice", "1", true}};
  const auto reading = read_lines(small(), given, {}, small_relations);
  ASSERT_TRUE(reading);
  std::vector<std::string> names;
  for (const Unused& one : reading->unused) names.push_back(one.name);
  EXPECT_EQ(names.size(), given.size());
  for (const Given& one : given) EXPECT_NE(std::find(names.begin(), names.end(), one.name), names.end()) << one.name;
  EXPECT_TRUE(reading->used.empty());
}

TEST(LaunchPlan, ASlipOfAnOptionThatMattersIsAnError) {
  const auto reading = read_lines(small(), std::vector<Given>{{"--remta", "full", false}}, {}, small_relations);
  ASSERT_FALSE(reading);
  EXPECT_EQ(reading.error().hint, "did you mean --remat?");
}

TEST(LaunchPlan, ContradictionsAndFractionsAreErrors) {
  EXPECT_FALSE(
      read_lines(small(), std::vector<Given>{{"--gpus", "8", true}, {"--tp", "3", false}}, {}, small_relations));
  EXPECT_FALSE(read_lines(small(), std::vector<Given>{{"--gpus", "8", true}, {"--tp", "2", false}}, {{"dp", "3"}},
                          small_relations));
}

TEST(LaunchPlan, WhatCannotBeSaidIsRefusedWithTheNearest) {
  Settings plan = small_plan();
  plan["recompute"] = "some";
  const auto refused = refusal_of(small(), plan);
  ASSERT_TRUE(refused);
  EXPECT_EQ(refused->what, "Small 1 cannot run --recompute some");
  EXPECT_EQ(refused->hint, "the nearest that it can run: --recompute none");
  EXPECT_EQ(refused->changes.size(), 2U);
  EXPECT_FALSE(lines_of(small(), plan));
  plan["recompute"] = "none";
  plan["layers"] = "5";
  ASSERT_TRUE(refusal_of(small(), plan));
  EXPECT_EQ(refusal_of(small(), plan)->hint, "5 layers");
}

/// A target that can run windows, and needs a variable, an option and a number that a plan may not know.
Target demanding() {
  std::string text(small_target);
  text.replace(text.find("--lr --fast"), 4, "--lr --base --window --sure");
  text.insert(text.find("known ="), "runs = \"windows squared-relu\"\n");
  text += R"toml(
[[option]]
name = "--base"
value = "base"
asked = true
[[option]]
name = "--window"
pattern = "({window},0)"
when = { window = ">0" }
[[constant]]
name = "--sure"
value = "true"
when = { tp = ">1" }
reason = "of several chips"
[[constant]]
name = "ORDER"
value = "1"
environment = true
reason = "one after the other"
)toml";
  return *read_target(text, "launch/small.toml");
}

TEST(LaunchPlan, ModelsThatAProgramCannotRunAreRefusedByWhatTheyHave) {
  Settings plan = small_plan();
  plan["model"] = "mine";
  plan["traits"] = "parallel-blocks,windows";
  const auto refused = refusal_of(demanding(), plan);
  ASSERT_TRUE(refused);
  EXPECT_EQ(refused->what, "Small 1 has no option for what mine has: parallel blocks");
  EXPECT_EQ(refused->hint,
            "beyond plain layers it can run windows, squared relu; leave --emit out for the prediction alone");
  EXPECT_FALSE(refusal_of(small(), plan));
  EXPECT_FALSE(runs_model(demanding(), plan));
  EXPECT_TRUE(runs_model(small(), plan));
  plan["traits"] = "windows";
  EXPECT_FALSE(refusal_of(demanding(), plan));
  EXPECT_TRUE(runs_model(demanding(), plan));
}

TEST(LaunchPlan, WhatAProgramNeedsToStartIsWritten) {
  Settings plan = small_plan();
  plan["window"] = "7";
  const Target target = demanding();
  EXPECT_EQ(open_options(target, plan), std::vector<std::string>{"--base"});
  plan["base"] = "10000";
  EXPECT_TRUE(open_options(target, plan).empty());
  for (const bool several : {true, false}) {
    plan["tp"] = several ? "2" : "1";
    plan["overlap"] = several ? "yes" : "no";
    const auto lines = lines_of(target, plan);
    ASSERT_TRUE(lines);
    const auto script = write_script(target, *lines, plan, {});
    ASSERT_TRUE(script);
    EXPECT_NE(script->find("export ORDER=1  # one after the other\narguments=("), std::string::npos) << *script;
    EXPECT_NE(script->find("--window '(7,0)'"), std::string::npos) << *script;
    EXPECT_EQ(script->find("--sure  # of several chips") != std::string::npos, several) << *script;
  }
}

TEST(LaunchPlan, FilesWithUnknownNamesAreFaults) {
  std::string text(small_target);
  text.replace(text.find("--method --lr"), 8, "--metod");
  const auto target = read_target(text, "launch/small.toml");
  ASSERT_FALSE(target);
  EXPECT_NE(target.error().what.find("--method"), std::string::npos);
}

/// Options of all targets of the catalogue stand in their lists of names: read_target() checks it.
TEST(LaunchPlan, TargetsOfTheCatalogueAreRead) {
  for (const std::string_view verb : {"train", "serve"}) {
    const auto targets = targets_of(testing::catalogue(), verb);
    ASSERT_TRUE(targets) << targets.error().where << targets.error().what;
    EXPECT_EQ((*targets)->size(), verb == "train" ? 9U : 4U);
    for (const Target& target : **targets) {
      EXPECT_GT(target.known.size(), target.reads_only ? 10U : 50U) << target.id;
      EXPECT_FALSE(target.sources.empty()) << target.id;
    }
  }
  for (const std::string_view launcher : {"slurm", "k8s"})
    EXPECT_TRUE(find_launcher(testing::catalogue(), launcher, "test"));
  EXPECT_FALSE(find_launcher(testing::catalogue(), "slrum", "test"));
}

TEST(LaunchPlan, ScriptsHoldNoControlCharacters) {
  Target target = small();
  target.options.front().field = "path";
  Settings plan = small_plan();
  plan["path"] = "a\nb";
  const auto lines = lines_of(target, plan);
  ASSERT_TRUE(lines);
  EXPECT_FALSE(write_script(target, *lines, plan, {}));
}

TEST(Plan, OptionsThatTheProgramDoesNotTakeOrThatItNeedsAreErrors) {
  const Target target = small();
  std::vector<Line> lines(2);
  lines[0].name = "--tp";
  lines[0].value = "2";
  lines[1].name = "--lr";
  lines[1].value = "1";
  EXPECT_TRUE(check_accepted(target, {{"tp", "2"}}, lines));
  lines[1].value = "2";
  const auto other = check_accepted(target, {{"tp", "2"}}, lines);
  ASSERT_FALSE(other);
  EXPECT_EQ(other.error().what, "Small 1 needs --lr 1");
  EXPECT_TRUE(check_accepted(target, {{"tp", "1"}}, lines));
  lines[1].name = "--lrs";
  const auto unknown = check_accepted(target, {{"tp", "1"}}, lines);
  ASSERT_FALSE(unknown);
  EXPECT_EQ(unknown.error().what, "Small 1 has no option --lrs");
}

TEST(Plan, NodesMeetAsTheFirstTextThatHoldsSays) {
  Target target = small();
  target.rendezvous = {{"--groups {dp}", {{"dp", ">1"}}}, {"--nodes {nodes}", {}}};
  EXPECT_EQ(rendezvous_of(target, {{"nodes", "1"}, {"dp", "1"}}), "");
  EXPECT_EQ(rendezvous_of(target, {{"nodes", "2"}, {"dp", "1"}}), "--nodes 2");
  EXPECT_EQ(rendezvous_of(target, {{"nodes", "2"}, {"dp", "2"}}), "--groups 2");
  EXPECT_EQ(rendezvous_of(target, {{"nodes", "2"}, {"server_nodes", "1"}, {"dp", "2"}}), "");
}

}  // namespace
}  // namespace assay::launch

#include "assay/ask/verbs/table/value_kinds.h"

#include <gtest/gtest.h>

#include <set>

namespace assay::verbs {
namespace {

TEST(ValueKinds, EveryPlaceholderOfTheVerbTableHasAMeaning) {
  for (const VerbSpec& verb : verbs())
    for (const OptionSpec& option : verb.options)
      EXPECT_TRUE(is_known_placeholder(option.value)) << verb.name << " --" << option.name << " " << option.value;
  for (const OptionSpec& option : common_options()) EXPECT_TRUE(is_known_placeholder(option.value)) << option.name;
}

TEST(ValueKinds, ArgumentsAndOptionsOfAVerbHaveDifferentNames) {
  for (const VerbSpec& verb : verbs()) {
    std::set<std::string_view> names;
    for (const ArgumentSpec& argument : verb.arguments) EXPECT_TRUE(names.insert(argument.name).second) << verb.name;
    for (const OptionSpec& option : verb.options) EXPECT_TRUE(names.insert(option.name).second) << verb.name;
    for (const OptionSpec& option : common_options())
      if (find_option(verb, option.name) == &option) EXPECT_TRUE(names.insert(option.name).second) << verb.name;
  }
}

TEST(ValueKinds, ExclusiveOptionsExist) {
  for (const VerbSpec& verb : verbs())
    for (const Exclusive& pair : verb.exclusive) {
      EXPECT_NE(find_option(verb, pair.one), nullptr) << verb.name;
      EXPECT_NE(find_option(verb, pair.other), nullptr) << verb.name;
    }
}

bool touches(std::string_view line) {
  const auto request = parse_request(*split_words(line));
  EXPECT_TRUE(request) << line;
  return request && !check_without_files(*request);
}

TEST(ValueKinds, WhatTouchesFilesIsToldFromWhatDoesNot) {
  for (const char* line : {"chips @chip.toml",
                           "chips --config c.toml",
                           "chips --catalogue .",
                           "chips --output chips.json",
                           "train @model.toml --on h100-sxm:8",
                           "train llama-3-8b --on @c.toml",
                           "train llama-3-8b --on h100-sxm,@c.toml",
                           "train llama-3-8b --on h100-sxm:8 --timeline step.json",
                           "train --from run.sh --on h100-sxm",
                           "serve llama-3-8b --on h100-sxm --prompt-lengths @lengths",
                           "serve llama-3-8b --on h100-sxm --output a.json",
                           "serve llama-3-8b --on h100-sxm --draft @m.toml",
                           "validate --fit out",
                           "validate --data d",
                           "measure --quick",
                           "profile trace.json",
                           "design mine.toml",
                           "design ./mine",
                           "design h100 --out mine",
                           "run mlp.assay",
                           "run train llama-3-8b --text novel.txt",
                           "run serve @m.toml",
                           "systolic 2 2 2 --animate a.svg",
                           "solve train @m.toml --on h100-sxm --batch ?seq --until fits"})
    EXPECT_TRUE(touches(line)) << line;
  for (const char* line :
       {"chips h100-sxm", "train llama-3-8b --on h100-sxm:8 --timeline --software torchtitan@2024",
        "serve llama-3-8b --on h100-sxm --output 128", "solve train llama-3-8b --on h100-sxm --batch ?seq --until fits",
        "validate h200-train", "book", "design h100 --set die.0.cores_on=120", "run train llama-3-8b --layers 2",
        "run --eval 'mesh X=2'", R"(chips mine --catalogue '{"chips/mine": {"base": "h100-sxm"}}')"})
    EXPECT_FALSE(touches(line)) << line;
}

}  // namespace
}  // namespace assay::verbs

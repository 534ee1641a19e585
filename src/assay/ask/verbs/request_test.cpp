#include "assay/ask/verbs/request.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>

#include <set>
#include <string>
#include <vector>

#include "assay/ask/verbs/table/pages.h"

namespace assay::verbs {
namespace {

using Words = std::vector<std::string>;

Result<Request> parse_line(std::string_view line) {
  const auto words = split_words(line);
  if (!words) return tl::unexpected<Error>(words.error());
  return parse_request(*words);
}

Error misread(std::string_view line) {
  const auto request = parse_line(line);
  EXPECT_FALSE(request) << line;
  return request ? Error{} : request.error();
}

Error json_refused(std::string_view text) {
  const auto request = parse_json_request(text);
  EXPECT_FALSE(request) << text;
  return request ? Error{} : request.error();
}

std::string echo_of(const Request& request) {
  std::string text;
  for (const auto& [key, value] : request.echo()) {
    text += key + "=" + report::scalar_text(value);
    if (const report::Items* items = value.items())
      for (const report::Value& item : *items) text += "," + report::scalar_text(item);
    text += " ";
  }
  return text;
}

TEST(Request, OptionsTakeTheirValueFromTheNextWordOrAfterAnEqualsSign) {
  const auto request = parse_line("roofline 'dot(N)' --on tpu-v5e --vary=N=1..8 --explain -q");
  ASSERT_TRUE(request);
  EXPECT_EQ(request->verb().name, "roofline");
  EXPECT_EQ(request->arguments(), Words{"dot(N)"});
  EXPECT_EQ(request->value("on"), "tpu-v5e");
  EXPECT_EQ(request->value("vary"), "N=1..8");
  EXPECT_TRUE(request->explain());
  EXPECT_TRUE(request->has("quiet"));
  EXPECT_FALSE(request->has("memory"));
}

TEST(Request, RepeatableOptionsKeepTheirOrder) {
  const auto request = parse_line("chips tpu-v5e --set a.b=1 --set c.d=2");
  EXPECT_EQ(request->values("set"), (Words{"a.b=1", "c.d=2"}));
}

TEST(Request, NegativeNumbersAndWordsAfterTwoDashesAreArguments) {
  EXPECT_EQ(parse_line("systolic -1 -2 -3")->arguments(), (Words{"-1", "-2", "-3"}));
  EXPECT_EQ(parse_line("chips -- --weird")->arguments(), Words{"--weird"});
}

TEST(Request, WhatIsWrongWithACommandLineIsAUsageError) {
  for (const char* line :
       {"", "rofline", "chips --foo", "chips -x", "chips a b", "chips --format", "chips --format --explain",
        "chips --format=", "chips --format xml", "chips --quiet=yes", "chips -q --quiet", "systolic 1 2"})
    EXPECT_EQ(misread(line).kind, Error::Kind::usage) << line;
  EXPECT_EQ(misread("rofline").hint, "did you mean roofline?");
  EXPECT_EQ(misread("verson").hint, "did you mean version?");
  EXPECT_EQ(misread("chips --formt json").hint, "did you mean --format?");
  EXPECT_EQ(misread("serve m --outptu 9").hint, "did you mean --output?");  // its own and the common one
  EXPECT_EQ(misread("chips --format xml").hint, "one of table, tree, json, csv, md, svg, html");
  EXPECT_EQ(misread("systolic 1 2").what, "N is missing");
  EXPECT_EQ(misread("chips a b").what, "unexpected argument \"b\"");
  EXPECT_FALSE(parse_request(Words(300, "chips")));
}

TEST(Request, QuotesGroupWords) {
  EXPECT_EQ(*split_words("a 'b c' \"d 'e\" f''g ''  "), (Words{"a", "b c", "d 'e", "fg", ""}));
  EXPECT_TRUE(split_words("")->empty());
  EXPECT_EQ(split_words("a 'b").error().hint, "add the closing '");
}

TEST(Request, JsonAsksTheSameAsTheCommandLine) {
  const auto line = parse_line("roofline 'bf16[B,8] @ bf16[8,8]' --on tpu-v5e --split 2 --set a.b=1 --set c.d=2 --pad");
  const auto json = parse_json_request(
      R"json({"verb": "roofline", "arguments": {"op": "bf16[B,8] @ bf16[8,8]", "on": "tpu-v5e", "split": 2,
              "set": ["a.b=1", "c.d=2"], "pad": true, "explain": false, "tile": null}})json");
  ASSERT_TRUE(json) << json.error().what;
  EXPECT_EQ(echo_of(*json), echo_of(*line));
  EXPECT_FALSE(json->explain());
  EXPECT_EQ(parse_json_request(R"({"verb": "chips", "arguments": {"explain": "all"}})")->value("explain"), "all");
  EXPECT_EQ(parse_line("chips --explain=step.forward")->value("explain"), "step.forward");
  EXPECT_TRUE(
      parse_json_request(R"({"verb": "systolic", "arguments": {"M": 1, "K": 2, "N": 3, "single_buffered": true}})"));
  EXPECT_EQ(
      parse_json_request(R"json({"verb": "roofline", "arguments": {"op": ["dot(8)", "sum(8)"]}})json")->arguments(),
      (Words{"dot(8)", "sum(8)"}));
  EXPECT_TRUE(parse_json_request(R"({"verb": "chips"})"));
}

TEST(Request, ACommandThatIsPassedOnMayBeOneLineOfJson) {
  const auto line = parse_line("solve train llama-3-8b --on h100-sxm:8 --batch ?seq --until fits");
  const auto text = parse_json_request(
      R"({"verb": "solve", "arguments": {"command": "train llama-3-8b --on h100-sxm:8 --batch ?seq", "until": "fits"}})");
  ASSERT_TRUE(text);
  EXPECT_EQ(text->arguments(), line->arguments());
}

TEST(Request, NamedArgumentsAreTheArgumentsOfTheSameRequest) {
  for (const VerbSpec& verb : verbs())
    for (const auto& [command, shows] : verb.examples) {
      auto words = *split_words(command);
      words.erase(words.begin());
      const auto line = parse_request(words);
      ASSERT_TRUE(line) << command;
      const report::Members request{{"verb", verb.name}, {"arguments", line->named_arguments()}};
      const auto json = parse_json_request(report::render_json(report::Value(request)));
      ASSERT_TRUE(json) << command << ": " << json.error().what;
      EXPECT_EQ(echo_of(*json), echo_of(*line)) << command;
    }
}

TEST(Request, WhatIsNotARequestIsRefusedWithItsPlace) {
  for (const char* text : {"", "null", "[]", "3", "{", "{\"verb\": 3}", "{\"verb\": \"roofline\"", "\xff",
                           R"({"verb": "chips", "arguments": []})", R"({"verb": "chips", "arguments": {"id": [[]]}})",
                           R"({"verb": "chips", "arguments": {"id": ["a"]}})", R"({"verb": "chips", "on": "x"})"})
    EXPECT_FALSE(parse_json_request(text)) << text;
  const auto refused = [](const std::string& arguments) {
    return json_refused(R"({"verb": "chips", "arguments": {)" + arguments + "}}");
  };
  EXPECT_EQ(refused(R"("on": "x")").where, "request: on");
  EXPECT_EQ(refused(R"("prices": true)").what, "a value is missing");
  EXPECT_EQ(refused(R"("prices": ["AWS"])").what, "a list is not allowed here");
  EXPECT_EQ(refused(R"("format": "csv")").what, "this option is for terminals: an answer to a JSON request is JSON");
  EXPECT_EQ(refused(R"("set": {})").where, "request: set");
  EXPECT_EQ(json_refused("{\"verb\": \"\xc3\"}").what, "byte 11 is not UTF-8");
}

TEST(Request, DeepAndLargeJsonIsRefused) {
  EXPECT_FALSE(parse_json_request(std::string(100'000, '[')));
  EXPECT_FALSE(parse_json_request(R"({"verb": "chips", "arguments": {"id": )" + std::string(50, '[') +
                                  std::string(50, ']') + "}}"));
  EXPECT_FALSE(parse_json_request("{\"verb\": \"chips\", \"x\": \"" + std::string(2'000'000, 'x') + "\"}"));
}

TEST(Request, ConfigFillsWhatTheCommandLineLeavesOpen) {
  auto request = *parse_line("roofline 'dot(N)' --on tpu-v4");
  const char* config =
      "format = \"json\"\nmemory = \"vmem\"\nexplain = true\nquiet = false\n"
      "[roofline]\non = \"tpu-v5e\"\nmemory = \"hbm\"\nsplit = 2\n[chips]\nset = \"a=b\"\n";
  ASSERT_TRUE(apply_config(request, config, "my.toml"));
  EXPECT_EQ(request.value("on"), "tpu-v4");    // the command line wins
  EXPECT_EQ(request.value("memory"), "hbm");   // then the verb's own table
  EXPECT_EQ(request.value("format"), "json");  // then the top
  EXPECT_EQ(request.value("split"), "2");
  EXPECT_TRUE(request.explain());
  EXPECT_FALSE(request.has("quiet"));
  EXPECT_FALSE(request.has("set"));
}

TEST(Request, TopLevelKeysOfOtherVerbsAreLeftToThem) {
  auto request = *parse_line("chips");
  EXPECT_TRUE(apply_config(request, "on = \"tpu-v5e\"\n", "my.toml"));
  EXPECT_FALSE(request.has("on"));
}

TEST(Request, FaultsOfAConfigFileNameTheirPlace) {
  const auto fault = [](std::string_view config) {
    auto request = *parse_line("chips");
    const auto done = apply_config(request, config, "my.toml");
    EXPECT_FALSE(done) << config;
    return done ? "" : done.error().where;
  };
  EXPECT_EQ(fault("\nformt = \"json\""), "my.toml:2:1: formt");
  EXPECT_EQ(fault("format = \"xml\""), "my.toml:1:1: format");
  EXPECT_EQ(fault("format = true"), "my.toml:1:1: format");
  EXPECT_EQ(fault("format = [\"json\"]"), "my.toml:1:1: format");
  EXPECT_EQ(fault("[chisp]\n"), "my.toml:1:1: chisp");
  EXPECT_EQ(fault("[chips]\non = \"tpu-v5e\""), "my.toml:2:1: on");
  EXPECT_EQ(fault("format ="), "my.toml:1:9");
}

TEST(Help, EveryVerbDocumentsItsArgumentsAndOptions) {
  for (const VerbSpec& verb : verbs()) {
    const std::string help = verb_help(verb);
    for (const OptionSpec& option : verb.options)
      EXPECT_NE(help.find("--" + std::string(option.name)), std::string::npos);
    for (const ArgumentSpec& argument : verb.arguments) EXPECT_NE(help.find(argument.name), std::string::npos);
    EXPECT_FALSE(verb.examples.empty()) << verb.name;
    EXPECT_NE(overview_help().find(verb.summary), std::string::npos) << verb.name;
  }
}

TEST(Help, DefaultsAreSaidWhereTheyAreDeclared) {
  for (const VerbSpec& verb : verbs())
    for (const OptionSpec& option : verb.options) {
      if (option.fallback.empty()) continue;
      EXPECT_NE(option_help(option).find("default"), std::string::npos) << verb.name << " --" << option.name;
      EXPECT_NE(option_help(option).find(option.fallback), std::string::npos) << verb.name << " --" << option.name;
    }
}

TEST(Help, EveryVerbAndOptionIsCompleted) {
  const hardware::Catalogue catalogue = hardware::Catalogue::builtin();
  const std::string commands = completions({""}, catalogue);
  for (const VerbSpec& verb : verbs()) {
    EXPECT_NE(commands.find(verb.name + "\t"), std::string::npos) << verb.name;
    const std::string options = completions({verb.name, "--"}, catalogue);
    for (const OptionSpec& option : verb.options)
      EXPECT_NE(options.find("--" + option.name + "\t"), std::string::npos) << verb.name << " " << option.name;
  }
}

TEST(Help, CompletionKnowsTheOptionBeforeAWordAndInsideOfIt) {
  const hardware::Catalogue catalogue = hardware::Catalogue::builtin();
  EXPECT_NE(completions({"train", "x", "--schedule", "z"}, catalogue).find("zb-v\n"), std::string::npos);
  EXPECT_NE(completions({"train", "x", "--schedule=z"}, catalogue).find("--schedule=zb-v\n"), std::string::npos);
  EXPECT_NE(completions({"train", "x", "--schedule", "=", "z"}, catalogue).find("zb-v\n"), std::string::npos);
  EXPECT_NE(completions({"solve", "train", "x", "--on", "h"}, catalogue).find("h200-sxm\n"), std::string::npos);
  EXPECT_TRUE(completions({"train", ""}, catalogue).starts_with(":files\n"));
  EXPECT_EQ(completions({"train", "x", "--tp", ""}, catalogue), "");
  EXPECT_EQ(completions({"nothing", ""}, catalogue), "");
}

TEST(Help, ScriptsAreForKnownShells) {
  for (const char* shell : {"bash", "zsh", "fish"}) EXPECT_TRUE(completion_script(shell)) << shell;
  EXPECT_EQ(completion_script("tcsh").error().kind, Error::Kind::usage);
}

std::string any_word() {
  static const Words known{"chips", "roofline", "systolic",     "--on", "--format", "json",   "-q", "--",  "--explain",
                           "--set", "a.b=1",    "--format=csv", "-1",   "tpu-v5e",  "dot(N)", "",   "--=", "-"};
  return *rc::gen::inRange(0, 3) == 0 ? *rc::gen::arbitrary<std::string>() : *rc::gen::elementOf(known);
}

RC_GTEST_PROP(RequestLaws, AnyWordsGiveARequestOrAnErrorWithAMessage, ()) {
  Words words;
  const int count = *rc::gen::inRange(0, 8);
  for (int i = 0; i < count; ++i) words.push_back(any_word());
  const auto request = parse_request(words);
  if (!request) RC_ASSERT(!request.error().what.empty());
  if (request) RC_ASSERT(request->verb().name == words.front());
}

RC_GTEST_PROP(RequestLaws, QuotedWordsSplitBackIntoThemselves, ()) {
  Words words;
  std::string line;
  const int count = *rc::gen::inRange(0, 6);
  for (int i = 0; i < count; ++i) {
    words.push_back(*rc::gen::container<std::string>(rc::gen::elementOf(std::string("ab \t\"[@,="))));
    line += "'" + words.back() + "' ";
  }
  RC_ASSERT(*split_words(line) == words);
}

TEST(Request, AnOptionOfAnotherInputIsRefusedButForThoseOfAllCommands) {
  Request request = *parse_line("run program.assay --tp 2");
  const auto refused = check_inputs(request, "program");
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().where, "--tp");
  EXPECT_NE(refused.error().what.find("for a training run or a serving run"), std::string::npos);
  EXPECT_TRUE(check_inputs(request, "train"));
  Request general = *parse_line("run program.assay"), own = general;
  ASSERT_TRUE(apply_config(general, "tp = 2\n", "assay.toml"));
  EXPECT_TRUE(check_inputs(general, "program"));
  ASSERT_TRUE(apply_config(own, "[run]\ntp = 2\n", "assay.toml"));
  EXPECT_FALSE(check_inputs(own, "program"));
}

TEST(Help, GroupsHoldEveryOptionOnceAndBeginWithTenCommonOnes) {
  for (const char* name : {"train", "serve", "scaling"}) {
    SCOPED_TRACE(name);
    const VerbSpec& verb = declared(name);
    std::multiset<std::string> in_groups, all;
    for (const OptionSpec& option : verb.options) all.insert(option.name);
    const std::vector<OptionGroup> groups = option_groups(verb);
    for (const OptionGroup& group : groups)
      for (const OptionSpec& option : group.options) in_groups.insert(option.name);
    EXPECT_EQ(in_groups, all);
    EXPECT_EQ(groups.front().options.size(), 10u);
    EXPECT_EQ(groups.size(), verb.groups.size()) << "an option is in no group";
  }
}

TEST(Request, EveryOptionIsForInputsOfItsVerb) {
  for (const VerbSpec& verb : verbs())
    for (const OptionSpec& option : verb.options) EXPECT_NO_THROW(inputs_text(verb, option)) << option.name;
}

}  // namespace
}  // namespace assay::verbs

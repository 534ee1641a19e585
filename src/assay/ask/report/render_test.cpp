#include "assay/ask/report/render.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <limits>
#include <nlohmann/json.hpp>

namespace assay::report {
namespace {

using Json = nlohmann::json;

/// A small answer with every kind of value.
Response sample() {
  Response response;
  response.inputs = {{"verb", "roofline"}, {"op", "dot(N)"}};
  response.results = {
      {"limiter", "memory"},
      {"chips", 1024},
      {"fits", true},
      {"price", Value()},
      {"peak", Value(Sourced<FlopsPerSecond>{197_TFLOP_per_s, "book", "dense", {{196_TFLOP_per_s, "gcloud"}}})},
      {"time", range(1_ms, 1.5_ms, 2_ms)},
      {"none", Items{}},
      {"shape", Items{4, 4, Items{1, 2}}},
      {"memory", Members{{"hbm", 16_GB}}},
      {"rows", Items{Members{{"B", 1}, {"time", 1_s}}, Members{{"B", 200}, {"time", 20_s}, {"note", "a, \"b\" | c"}}}}};
  response.headline = "memory-bound";
  response.notes = {"first note", "second note"};
  return response;
}

Response with_derivation() {
  Response response = sample();
  const Traced num{&response.ledger};
  const auto compute =
      num.named("compute", num.given("flops", 2_TFLOP, "operation") / num.given("peak", 1_TFLOP_per_s, "book"));
  const auto memory = num.named("memory", num.given("bytes", 4_TB, "operation") / num.given("hbm", 1_TB_per_s, "book"));
  const auto lower = num.named("lower bound", max(compute, memory));
  response.derived = {lower.id, compute.id};
  return response;
}

std::string rendered(const Response& response, Format format, bool colour = false, bool explain = false,
                     bool quiet = false) {
  return render(response, {format, colour, explain, quiet});
}

TEST(Render, ATableAlignsLabelsAndNamesSources) {
  EXPECT_EQ(rendered(sample(), Format::table),
            "memory-bound\n"
            "\n"
            "limiter  memory\n"
            "chips    1,024\n"
            "fits     yes\n"
            "price    -\n"
            "peak     197 TFLOP/s  [book]  also 196 TFLOP/s [gcloud]\n"
            "time     1.5 ms  (ideal 1 ms .. 2 ms)\n"
            "shape    4, 4, [1, 2]\n"
            "memory\n"
            "  hbm  16 GB\n"
            "rows\n"
            "    B  time  note\n"
            "    1   1 s\n"
            "  200  20 s  a, \"b\" | c\n"
            "\n"
            "note: first note\n"
            "note: second note\n");
}

TEST(Render, QuietLeavesOutHeadlineAndNotes) {
  const std::string text = rendered(sample(), Format::table, false, false, true);
  EXPECT_TRUE(text.starts_with("limiter"));
  EXPECT_EQ(text.find("note:"), std::string::npos);
}

TEST(Render, ATreeShowsWhatHasContent) {
  EXPECT_EQ(rendered(sample(), Format::tree),
            "memory-bound\n"
            "|-- limiter: memory\n"
            "|-- chips: 1,024\n"
            "|-- fits: yes\n"
            "|-- price: -\n"
            "|-- peak: 197 TFLOP/s\n"
            "|-- time: 1.5 ms  (ideal 1 ms .. 2 ms)\n"
            "|-- shape: 4, 4, [1, 2]\n"
            "|-- memory\n"
            "|   `-- hbm: 16 GB\n"
            "`-- rows\n"
            "    |-- [0]\n"
            "    |   |-- B: 1\n"
            "    |   `-- time: 1 s\n"
            "    `-- [1]\n"
            "        |-- B: 200\n"
            "        |-- time: 20 s\n"
            "        `-- note: a, \"b\" | c\n");
}

TEST(Render, CsvOfScalarsHasOneLinePerValueInBaseUnits) {
  const std::string text = rendered(sample(), Format::csv);
  EXPECT_TRUE(text.starts_with("key,value,unit\nlimiter,memory,\nchips,1024,\nfits,yes,\nprice,,\n"));
  EXPECT_NE(text.find("peak,197000000000000,FLOP/s\n"), std::string::npos);
  EXPECT_NE(text.find("time.upper,0.002,s\n"), std::string::npos);
  EXPECT_NE(text.find("rows[1].note,\"a, \"\"b\"\" | c\",\n"), std::string::npos);
}

TEST(Render, CsvOfATableHasUnitsInItsHead) {
  Response response = sample();
  response.table_key = "rows";
  EXPECT_EQ(rendered(response, Format::csv), "B,time [s],note\n1,1,\n200,20,\"a, \"\"b\"\" | c\"\n");
}

TEST(Render, MarkdownEscapesBars) {
  const std::string text = rendered(sample(), Format::md);
  EXPECT_TRUE(text.starts_with("**memory-bound**\n\n| quantity | value |\n| --- | --- |\n| limiter | memory |\n"));
  EXPECT_NE(text.find("| memory / hbm | 16 GB |\n"), std::string::npos);
  EXPECT_NE(text.find("| B | time | note |\n| ---: | ---: | --- |\n"), std::string::npos);
  EXPECT_NE(text.find("a, \"b\" \\| c"), std::string::npos);
  EXPECT_NE(text.find("\n> second note\n"), std::string::npos);
}

TEST(Render, JsonFollowsTheContract) {
  const Json json = Json::parse(rendered(sample(), Format::json));
  EXPECT_EQ(json["schema"], 1);
  EXPECT_TRUE(json["version"].is_string());
  EXPECT_EQ(json["inputs"]["op"], "dot(N)");
  const Json& results = json["results"];
  EXPECT_EQ(results["peak"]["value"], 197e12);
  EXPECT_EQ(results["peak"]["unit"], "FLOP/s");
  EXPECT_EQ(results["peak"]["also"][0]["source"], "gcloud");
  EXPECT_EQ(results["time"]["estimate"]["value"], 1.5e-3);
  EXPECT_EQ(results["chips"], 1024);
  EXPECT_TRUE(results["price"].is_null());
  EXPECT_TRUE(results["none"].is_array());
  EXPECT_EQ(json["notes"][1], "second note");
  EXPECT_FALSE(json.contains("derivation"));
}

TEST(Render, JsonHasNoNumberThatJsonCannotHold) {
  Response response;
  response.results = {{"a", std::numeric_limits<double>::infinity()},
                      {"b", Seconds(std::numeric_limits<double>::quiet_NaN())},
                      {"c", "\xff"}};
  const Json json = Json::parse(rendered(response, Format::json));
  EXPECT_TRUE(json["results"]["a"].is_null());
  EXPECT_TRUE(json["results"]["b"]["value"].is_null());
  EXPECT_EQ(json["results"]["b"]["unit"], "s");
}

TEST(Render, ADerivationShowsEachNumberOnceAndItsLimiter) {
  EXPECT_EQ(render_derivation(with_derivation(), false, 0),
            "lower bound = max(compute, memory) = 4 s   <- bound by memory\n"
            "  compute = flops / peak = 2 s\n"
            "    flops = 2 TFLOP   [operation]\n"
            "    peak = 1 TFLOP/s   [book]\n"
            "  memory = bytes / hbm = 4 s\n"
            "    bytes = 4 TB   [operation]\n"
            "    hbm = 1 TB/s   [book]\n"
            "compute = 2 s   (above)\n");
}

TEST(Render, TheDerivationNestsInJson) {
  const Json json = Json::parse(rendered(with_derivation(), Format::json, false, true));
  const Json& lower = json["derivation"][0];
  EXPECT_EQ(lower["name"], "lower bound");
  EXPECT_EQ(lower["bound_by"], "memory");
  EXPECT_EQ(lower["from"][0]["formula"], "flops / peak");
  EXPECT_EQ(lower["from"][0]["from"][1]["source"], "book");
  EXPECT_EQ(json["derivation"][1]["repeated"], true);
}

TEST(Render, ColourOnlyAddsEscapeSequences) {
  const Response response = with_derivation();
  std::string text = rendered(response, Format::table, true, true);
  EXPECT_NE(text.find("\x1b[1m"), std::string::npos);
  for (std::size_t at = 0; (at = text.find('\x1b')) != std::string::npos;) text.erase(at, text.find('m', at) - at + 1);
  EXPECT_EQ(text, rendered(response, Format::table, false, true));
}

TEST(Render, AnErrorHasPlaceRuleAndRemedyOncePerFault) {
  const Error error{Error::Kind::input,
                    "a.toml:3:1: peak",
                    "this number has no unit",
                    "write TFLOP/s",
                    {{Error::Kind::input, "", "second fault", "", {}}}};
  EXPECT_EQ(render(error, {}),
            "error: a.toml:3:1: peak: this number has no unit\nhint:  write TFLOP/s\nerror: second fault\n");
  const Json json = Json::parse(render(error, {Format::json, false, false, false}));
  EXPECT_EQ(json["error"]["kind"], "input");
  EXPECT_EQ(json["error"]["where"], "a.toml:3:1: peak");
  EXPECT_EQ(json["error"]["also"][0]["what"], "second fault");
}

TEST(Render, AnErrorNeverDrivesTheTerminal) {
  EXPECT_EQ(render(Error{Error::Kind::usage, "\x1b[31m", "caf\xc3\xa9", "\xff\x7f", {}}, {}),
            "error: \\x1b[31m: caf\xc3\xa9\nhint:  \\xff\\x7f\n");
  EXPECT_EQ(render(Error{Error::Kind::usage, "--on", "one two three", "four five six", {}}, {.width = 21}),
            "error: --on: one two\n       three\nhint:  four five six\n");
  EXPECT_LT(render(Error{Error::Kind::usage, "", std::string(100'000, 'x'), "", {}}, {}).size(), 1000U);
}

TEST(Render, AMissingPictureIsOurBug) { EXPECT_THROW(rendered(sample(), Format::svg), InternalError); }

Value any_value(int depth) {
  switch (*rc::gen::inRange(0, depth > 0 ? 8 : 6)) {
    case 0:
      return {};
    case 1:
      return *rc::gen::arbitrary<bool>();
    case 2:
      return *rc::gen::arbitrary<std::int64_t>();
    case 3:
      return *rc::gen::arbitrary<double>();
    case 4:
      return *rc::gen::container<std::string>(rc::gen::elementOf(std::string("ab ,\"|\n\xc3\xa9")));
    case 5:
      return Seconds(*rc::gen::arbitrary<double>());
    case 6: {
      Items items;
      for (int i = *rc::gen::inRange(0, 4); i > 0; --i) items.push_back(any_value(depth - 1));
      return items;
    }
    default: {
      Members members;
      for (int i = *rc::gen::inRange(0, 4); i > 0; --i)
        members.emplace_back("key_" + std::to_string(i), any_value(depth - 1));
      return members;
    }
  }
}

RC_GTEST_PROP(RenderLaws, EveryTreeHasAForm, ()) {
  Response response;
  for (int i = *rc::gen::inRange(0, 5); i > 0; --i)
    response.results.emplace_back("top_" + std::to_string(i), any_value(3));
  if (*rc::gen::arbitrary<bool>()) response.table_key = "top_1";
  for (const Format format : {Format::table, Format::tree, Format::csv, Format::md})
    static_cast<void>(rendered(response, format));
  const Json json = Json::parse(rendered(response, Format::json));
  RC_ASSERT(json["results"].size() == response.results.size());
}

}  // namespace
}  // namespace assay::report

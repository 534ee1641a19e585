#include "assay/assay.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "assay/ask/report/render.h"
#include "assay/ask/verbs/book/book.h"
#include "assay/ask/verbs/faults.h"
#include "assay/ask/verbs/request.h"
#include "assay/testing/sampling.h"

namespace assay {
namespace {

using Json = nlohmann::json;

const Engine& engine() {
  static const Engine one;
  return one;
}

std::string request_of(const std::string& line) {
  const auto request = verbs::parse_request(*verbs::split_words(line));
  EXPECT_TRUE(request) << line;
  return report::render_json(
      report::Value(report::Members{{"verb", request->verb().name}, {"arguments", request->named_arguments()}}),
      report::Layout::one_line);
}

/// What `--format json` prints.
std::string printed(const std::string& line) {
  static const hardware::Catalogue catalogue = hardware::Catalogue::builtin();
  const auto request = verbs::parse_request(*verbs::split_words(line));
  const auto response = verbs::ask(*request, {catalogue});
  return response ? report::render_json(*response, request->explain()) : report::render_json(response.error());
}

TEST(Api, AnswersAreWhatTheCommandLinePrints) {
  for (const char* line : {"chips h100-sxm", "roofline 'bf16[B,8192] @ int8[8192,8192]' --on h100-sxm",
                           "train llama-3-8b --on h100-sxm:8 --batch 64seq --seq 4096 --fsdp 8",
                           "serve llama-3-70b --on h100-sxm:2", "train llama-3-8b --on h100-sxm:8", "chips h100",
                           "collective all-gather --bytes 1MB --on tpu-v5e:4x4 --axes X --simulate"})
    EXPECT_EQ(engine().answer(request_of(line)).json, printed(line)) << line;
}

TEST(Api, EqualRequestsGetEqualBytes) {
  const std::string request = request_of("train llama-3-8b --on h100-sxm:16 --batch 64seq --seq 4096 --timeline");
  EXPECT_EQ(engine().answer(request).json, Engine().answer(request).json);
}

TEST(Api, AnAnswerOnOneLineIsTheSameAnswer) {
  const std::string request = request_of("chips tpu-v5e");
  const std::string line = engine().answer(request, AnswerLayout::one_line).json;
  EXPECT_EQ(std::count(line.begin(), line.end(), '\n'), 1);
  EXPECT_EQ(Json::parse(line), Json::parse(engine().answer(request).json));
}

TEST(Api, EveryAnswerHasAHeadlineAndAnOutcome) {
  const Json fits = Json::parse(engine().answer(request_of("chips tpu-v5e")).json);
  EXPECT_FALSE(fits["headline"].get<std::string>().empty());
  EXPECT_EQ(fits["outcome"], "ok");
  const Answer not_fitting = engine().answer(request_of("train llama-3-70b --on tpu-v5e:2x2 --batch 16seq --seq 4096"));
  EXPECT_EQ(not_fitting.status, 3);
  EXPECT_EQ(Json::parse(not_fitting.json)["outcome"], "infeasible");
}

TEST(Api, WhateverIsSentIsAnswered) {
  const std::string deep(100'000, '['), huge = "{\"verb\": \"" + std::string(3'000'000, 'x') + "\"}";
  for (const std::string& text :
       {std::string(), std::string("null"), std::string("{}"), std::string("\xff\xfe"), std::string(10, '\0'), deep,
        huge,
        std::string(R"({"verb": "train", "arguments": {"model": "llama-3-8b", "on": "h100-sxm:1000000000000000000"}})"),
        std::string(R"({"verb": "clusters", "arguments": {"cluster": "\u0000"}})")}) {
    const Answer answer = engine().answer(text, AnswerLayout::one_line);
    const Json json = Json::parse(answer.json);
    EXPECT_TRUE(json.contains("error")) << text.substr(0, 50);
    EXPECT_FALSE(json.contains("request"));
    EXPECT_TRUE(answer.status == 1 || answer.status == 2) << text.substr(0, 50);
  }
}

TEST(Api, FilesAreOutOfReachUnlessAllowed) {
  for (const char* line :
       {"chips @tests/cli/own_files/chip.toml", "models tests/cli/models", "models src", "models ../x/config.json",
        "clusters @x.toml", "train tests/cli/models --on h100-sxm:8 --batch 8seq", "measure --quick",
        "chips --catalogue tests"}) {
    const Answer answer = engine().answer(request_of(line));
    EXPECT_NE(answer.status, 0) << line;
    EXPECT_TRUE(answer.files.empty());
    EXPECT_EQ(answer.json.find("tests/cli/models/"), std::string::npos) << answer.json;
  }
  EXPECT_EQ(Engine({.files = true}).answer(request_of("chips --catalogue tests/data/none")).status, 1);
  const Answer trace =
      Engine({.files = true}).answer(request_of("train llama-3-8b --on h100-sxm:8 --batch 8seq --timeline step.json"));
  ASSERT_EQ(trace.files.size(), 1u);
  EXPECT_EQ(trace.files[0].first, "step.json");
}

TEST(Api, FilesOfTheCatalogueMayComeWithARequest) {
  const std::string chip = R"("on": "mine", "catalogue": {"chips/mine": {"base": "h100-sxm", "memory": )";
  const std::string asks = R"({"verb": "roofline", "arguments": {"op": "bf16[1,8192] @ bf16[8192,8192]", )";
  const auto lower = [](const Answer& answer) {
    return Json::parse(answer.json)["results"]["time"]["lower"]["value"].get<double>();
  };
  const Answer twice = engine().answer(asks + chip + R"({"hbm": {"bandwidth": "6.7 TB/s"}}}}}})");
  ASSERT_EQ(twice.status, 0) << twice.json;
  EXPECT_NEAR(lower(engine().answer(asks + R"("on": "h100-sxm"}})")) / lower(twice), 2.0, 0.01);
  const Answer wrong = engine().answer(asks + chip + R"({"hbm": {"bandwidth": "6.7 Gb"}}}}}})");
  EXPECT_TRUE(Json::parse(wrong.json)["error"]["where"].get<std::string>().starts_with("chips/mine.toml:"));
  for (const char* files : {R"("x")", "7", R"({"chips/mine": 7})", R"({"chips/mine": {"base": ["\u0000"]}})",
                            R"({"../../x": {"\n[a]": {}}})", R"({"chips/mine": {"a": 1e999}})"})
    EXPECT_NE(engine().answer(asks + R"("on": "mine", "catalogue": )" + files + "}}").status, 0) << files;
}

TEST(Api, ModelsMayBeObjects) {
  const Answer half =
      engine().answer(R"({"verb": "models", "arguments": {"model": {"base": "llama-3-8b", "num_hidden_layers": 16}}})");
  ASSERT_EQ(half.status, 0) << half.json;
  EXPECT_LT(Json::parse(half.json)["results"]["parameters"]["total"].get<double>(), 5e9);
}

TEST(Api, PicturesAreWhatTheCommandLineDraws) {
  const std::string request = request_of("chips h100-sxm");
  EXPECT_TRUE(engine().answer(request, AnswerLayout::svg).json.starts_with("<svg"));
  const Answer none = engine().answer(request_of("software"), AnswerLayout::svg);
  EXPECT_EQ(none.status, 2);
  EXPECT_TRUE(Json::parse(none.json).contains("error"));
}

TEST(Api, WhatAnswersIsKnown) {
  EXPECT_FALSE(about().version.empty());
  EXPECT_TRUE(about().catalogue.starts_with("20")) << about().catalogue;
}

TEST(Api, ACatalogueThatCannotBeReadIsTheAnswer) {
  const Engine broken({.files = false, .catalogues = {"no/such/directory"}});
  EXPECT_EQ(broken.answer(R"({"verb": "chips"})").status, 1);
}

TEST(Api, OurBugsAreErrorsWithTheRequestAttached) {
  const auto thrown = verbs::without_exceptions([]() -> Result<int> { throw InternalError("a cache is full"); });
  ASSERT_FALSE(thrown);
  EXPECT_EQ(verbs::exit_code(thrown.error()), 70);
  const Json json = Json::parse(report::render_json(thrown.error(), report::Layout::one_line, R"({"verb": "x"})"));
  EXPECT_EQ(json["error"]["kind"], "internal");
  EXPECT_EQ(json["request"], R"({"verb": "x"})");
}

TEST(Api, EveryVerbHasASchemaAndUnknownOnesAnError) {
  for (const verbs::VerbSpec& verb : verbs::verbs()) {
    const Answer found = schema(verb.name);
    EXPECT_EQ(found.status, 0) << found.json;
    const Json definitions = Json::parse(found.json)["$defs"];
    EXPECT_TRUE(definitions.contains(std::string(verb.name) + ".request"));
    const Json& results = definitions[std::string(verb.name) + ".answer"]["properties"]["results"];
    EXPECT_FALSE(results["properties"].empty()) << verb.name << " declares no results in catalogue/answers/";
  }
  EXPECT_EQ(schema("trian").status, 2);
}

/// The request of a row, sent back.
Json sent_back(const std::string& verb, const Json& row) {
  const Answer answer = engine().answer(Json{{"verb", verb}, {"arguments", row["arguments"]}}.dump());
  EXPECT_NE(answer.json.find("\"results\""), std::string::npos) << row["arguments"] << answer.json;
  return Json::parse(answer.json).value("results", Json::object());
}

TEST(Api, PlansOfAnAnswerAreRequestsThatGiveThemBack) {
  for (const char* line : testing::sampled<const char*>(
           {"train llama-3-8b --on h100-sxm:64 --batch 512seq --seq 8192 --top 3 --improve --tp 8 --recompute full",
            "train llama-3-70b --on tpu-v5p:8x8x8 --batch 1024seq --seq 4096 --top 3",
            "train mixtral-8x7b --on h100-sxm:64 --batch 256seq --seq 4096 --ep 8 --top 3",
            "train llama-3-8b --on h100-sxm:8,h100-sxm:16 --batch 256seq --seq 4096 --pareto --tokens 1T",
            "train llama-3-8b --on h100-sxm:64 --batch 16seq --seq 131072 --cp 8 --top 2"})) {
    const Json results = Json::parse(engine().answer(request_of(line)).json)["results"];
    std::size_t rows = 0;
    for (const char* list : {"alternatives", "changes", "sizes", "pareto"})
      for (const Json& row : results.value(list, Json::array())) {
        ++rows;
        const Json again = sent_back("train", row);
        EXPECT_EQ(again["step_time"]["estimate"], row["step_time"]) << line << "\n" << row["arguments"];
        EXPECT_EQ(again["memory"]["verdict"], row["memory"]["verdict"]) << line;
        EXPECT_EQ(again["memory"]["total"], row["memory"]["total"]) << line;
        if (row.contains("interval")) EXPECT_EQ(again["step_time"]["interval"], row["interval"]) << line;
      }
    EXPECT_GT(rows, 0u) << line;
  }
}

TEST(Api, PointsOfAFrontAreRequestsThatGiveThemBack) {
  for (const char* line :
       testing::sampled<const char*>({"serve llama-3-70b --on h100-sxm:8 --prompt 1024 --output 256 --tpot 30ms",
                                      "serve llama-2-13b --on tpu-v5e:4x4 --prompt 512 --output 512 --weights int8",
                                      "serve mixtral-8x7b --on h100-sxm:8 --rate 2"})) {
    const Json results = Json::parse(engine().answer(request_of(line)).json)["results"];
    ASSERT_FALSE(results["pareto"].empty()) << line;
    for (const Json& row : testing::sampled(std::vector<Json>(results["pareto"]))) {
      const Json again = sent_back("serve", row);
      EXPECT_EQ(again["served"]["time_per_token"], row["latency"]) << line << "\n" << row["arguments"];
      EXPECT_EQ(again["prefill"]["time"]["estimate"], row["ttft"]) << line << "\n" << row["arguments"];
      EXPECT_EQ(again["memory"]["verdict"], row["memory"]["verdict"]) << line;
    }
  }
}

TEST(Api, RowsOfAValidationAreRequestsThatGiveTheirPrediction) {
  if (testing::sampled_every() > 1) GTEST_SKIP() << testing::left_to_release;
  const Json results = Json::parse(engine().answer(request_of("validate h200-train")).json)["results"];
  for (std::size_t i = 0; i < results["cases"].size(); i += 7) {
    const Json& row = results["cases"][i];
    const Json again = sent_back(row["verb"], row);
    const std::string path = "/" + row["result"].get<std::string>();
    const Json predicted = again.at(Json::json_pointer(path));
    EXPECT_EQ(predicted.contains("estimate") ? predicted["estimate"] : predicted, row["predicted"]) << row["arguments"];
    EXPECT_EQ(row["memory"]["verdict"], again["memory"]["verdict"]);
    EXPECT_TRUE(row.contains("interval"));
  }
}

TEST(Api, FiguresOfTheBookAreRequestsAndSoAreTheirControls) {
  const auto book = verbs::book::load_book(hardware::Catalogue::builtin());
  ASSERT_TRUE(book);
  EXPECT_GT(book->figures.size(), 10u);
  for (const verbs::book::BookFigure& figure : book->figures) {
    const Json request = Json::parse(request_of(figure.request));
    sent_back(request["verb"], request);
    for (const verbs::book::BookFigure::Control& control : figure.controls)
      for (const std::string& value : testing::sampled(control.values)) {
        Json changed = request;
        changed["arguments"][control.name] = value;
        sent_back(request["verb"], changed);
      }
  }
  const Json results = Json::parse(engine().answer(request_of("book roofline")).json)["results"];
  ASSERT_FALSE(results["figures"].empty());
  EXPECT_EQ(results["figures"][0]["chapter"], "roofline");
}

}  // namespace
}  // namespace assay

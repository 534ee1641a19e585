#include "assay/predict/serving/load/request_table.h"

#include <gtest/gtest.h>

namespace assay::serving {
namespace {

TEST(RequestTable, ColumnsGoByTheirNamesInAnySpelling) {
  const auto trace = parse_request_trace(
      "TIMESTAMP,ContextTokens,GeneratedTokens\n2023-11-16 18:15:46.5,374,44\n2023-11-16 18:15:50,396,0\n", "log.csv");
  ASSERT_TRUE(trace) << trace.error().what;
  ASSERT_EQ(trace->requests.size(), 2U);
  EXPECT_EQ(trace->requests[0].prompt, 374);
  EXPECT_EQ(trace->requests[1].output, 1);  // an empty answer still takes a step
  EXPECT_DOUBLE_EQ(trace->span->value(), 3.5);
}

TEST(RequestTable, LengthsWithoutTimesAreNoTrafficByThemselves) {
  const auto trace = parse_request_trace("num_prefill_tokens,num_decode_tokens,pd_ratio\n3772,54,69.85\n", "log.csv");
  ASSERT_TRUE(trace);
  EXPECT_FALSE(trace->is_timed());
}

TEST(RequestTable, ColumnsThatSayNothingOfARequestArePassedOver) {
  const auto trace = parse_request_trace(
      "Timestamp,Model,Request tokens,Response tokens,Total tokens,Log Type\n5,ChatGPT,472,18,490,\"a, "
      "b\"\n45,GPT-4,1087,230,1317,API "
      "log\n",
      "log.csv");
  ASSERT_TRUE(trace) << trace.error().what;
  EXPECT_EQ(trace->requests[1].prompt + trace->requests[1].output, 1317);
  EXPECT_EQ(trace->span->value(), 40.0);
}

TEST(RequestTable, SessionsAreNumbered) {
  const auto trace = parse_request_trace("time,session_id,prompt,output\n0,a,1,1\n1,b,1,1\n2,a,1,1\n", "log.csv");
  ASSERT_TRUE(trace);
  EXPECT_EQ(trace->requests[0].session, trace->requests[2].session);
  EXPECT_NE(trace->requests[0].session, trace->requests[1].session);
}

// 2024-02-29 is a day, and 1970-01-02 is 86,400 s.
TEST(RequestTable, DatesAreCounted) {
  EXPECT_DOUBLE_EQ(*parse_moment("1970-01-02T00:00:01.25Z"), 86401.25);
  EXPECT_DOUBLE_EQ(*parse_moment("2024-03-01 00:00:00") - *parse_moment("2024-02-29 00:00:00"), 86400.0);
  EXPECT_FALSE(parse_moment("yesterday"));
}

TEST(RequestTable, FaultsNameTheLine) {
  const auto place = [](std::string_view text) { return parse_request_trace(text, "log.csv").error().where; };
  EXPECT_EQ(place("when,prompt,output\n1,x,2\n"), "log.csv:2");
  EXPECT_EQ(place("time,prompt,output\n1,2,2\n-5,2,2\n"), "log.csv:3");
  EXPECT_EQ(place("time,prompt,output\n1,2\n"), "log.csv:2");
  EXPECT_EQ(place("a,b\n1,2\n"), "log.csv:1");
}

TEST(RequestTrace, TimesInQuotesAreSecondsAndOthersMilliseconds) {
  const auto span = [](std::string_view text) { return parse_request_trace(text, "log")->span->value(); };
  EXPECT_DOUBLE_EQ(span(R"({"timestamp": 0, "input_length": 1, "output_length": 1}
{"timestamp": 3000, "input_length": 1, "output_length": 1})"),
                   3.0);
  EXPECT_DOUBLE_EQ(span(R"({"timestamp": "82", "input_length": 1, "output_length": 1, "hash_ids": {"history": [1]}}
{"timestamp": "93", "input_length": 1, "output_length": 1, "hash_ids": {}})"),
                   11.0);
  EXPECT_DOUBLE_EQ(span(R"({"arrival_time_ns": 1000000000, "input_toks": 1, "output_toks": 1}
{"arrival_time_ns": 3000000000, "input_toks": 1, "output_toks": 1})"),
                   2.0);
}

}  // namespace
}  // namespace assay::serving

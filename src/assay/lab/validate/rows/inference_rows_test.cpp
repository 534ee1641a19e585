#include "assay/lab/validate/rows/inference_rows.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "assay/testing/inference_lines.h"

namespace assay::validate {
namespace {

using testing::inference_line;
using testing::read_inference_lines;

InferenceRows read_text(std::string_view table) {
  return *read_inference(*CsvTable::parse(table, "test.csv"), testing::catalogue());
}

TEST(InferenceRows, ARowBecomesAFigureByWhatItMeasured) {
  const std::string lines =
      inference_line("H100-SXM-80GB", "TensorRT-LLM", "0.9.0,static,1,2048,,prefill,30,,,,2024,") +
      inference_line("H100-SXM-80GB", "vllm", "0.19,agg,64,1024,1024,serving,400,20,,,2026,") +
      inference_line("H100-SXM-80GB", "TensorRT-LLM", "0.9.0,static,16,128,128,prefill+decode,,,1280,,2024,") +
      inference_line("H100-SXM-80GB", "TensorRT-LLM", "0.9.0,static,16,128,128,prefill+decode,,,,1600,2024,");
  const InferenceRows rows = read_inference_lines(lines);
  ASSERT_EQ(rows.rows.size(), 4u);
  EXPECT_EQ(rows.rows[0].figure, InferenceFigure::first_token);
  EXPECT_DOUBLE_EQ(rows.rows[0].measured.value, 0.030);
  // Under load the time to the first token has a queue in it and is no figure.
  EXPECT_EQ(rows.rows[1].figure, InferenceFigure::loaded_token);
  EXPECT_EQ(rows.rows[1].software.step.scheduler, numbers::Scheduler::ahead);
  EXPECT_TRUE(rows.rows[2].software.step.whole_rows);
  EXPECT_FALSE(rows.rows[1].software.step.whole_rows);
  EXPECT_EQ(rows.rows[2].figure, InferenceFigure::static_token);
  EXPECT_DOUBLE_EQ(rows.rows[2].measured.value, 0.010);  // 1280 ms over 128 tokens
  EXPECT_DOUBLE_EQ(rows.rows[3].measured.value, 0.010);  // 16 sequences at 1600 tokens/s
}

TEST(InferenceRows, RequestsThatStartTogetherAreAStaticBatch) {
  const InferenceRows rows =
      read_inference_lines(inference_line("H100-SXM-80GB", "sglang", "0.5,agg,64,1024,129,together,400,20,,,2026,"));
  ASSERT_EQ(rows.rows.size(), 1u);
  EXPECT_EQ(rows.rows[0].figure, InferenceFigure::static_token);
  EXPECT_DOUBLE_EQ(rows.rows[0].measured.value, (0.4 + 128 * 0.020) / 129);
}

TEST(InferenceRows, ALoadThatMostlyWaitsIsNoBatch) {
  const InferenceRows rows =
      read_inference_lines(inference_line("H100-SXM-80GB", "vllm", "0.19,agg,512,1024,100,serving,2001,20,,,2026,") +
                           inference_line("H100-SXM-80GB", "vllm", "0.19,agg,512,1024,100,serving,1999,20,,,2026,"));
  EXPECT_EQ(rows.rows.size(), 1u);
  ASSERT_EQ(rows.unanswered.size(), 1u);
  EXPECT_EQ(rows.unanswered[0].why, "requests wait longer than they are served: fewer than the load are in a batch");
}

TEST(InferenceRows, FullLoadIsLimitedByTheEngineAndItsClients) {
  const auto most = [](std::string_view load) {
    const InferenceRows rows = read_inference_lines(inference_line("H100-SXM-80GB", "TensorRT-LLM", load));
    const std::vector<std::string> words = question_of(rows.rows.at(0)).words;
    const auto at = std::find(words.begin(), words.end(), "--most-batch");
    EXPECT_EQ(std::find(words.begin(), words.end(), "--batch"), words.end());
    return at == words.end() ? "" : *(at + 1);
  };
  EXPECT_EQ(most("0.16,max load,,1000,1000,prefill+decode,,,,5000,2024,"), "2048");
  EXPECT_EQ(most("0.16,max load,300,1000,1000,serving,,,,5000,2024,"), "300");
}

TEST(InferenceRows, AnEngineMayAttendToAllTokens) {
  const InferenceRows rows = read_text(
      "id,source_key,model,accelerator,n_chips,tp,engine,engine_version,batch,input_len,output_len,phase,tpot_ms\n"
      "a,src,Mistral 7B,H100-SXM-80GB,1,1,TensorRT-LLM,0.16,8,20000,128,serving,20\n"
      "b,src,Mistral 7B,H100-SXM-80GB,1,1,vllm,0.6,8,20000,128,serving,20\n");
  ASSERT_EQ(rows.rows.size(), 2u);
  EXPECT_EQ(rows.rows[0].model.decoder.kinds.front().attention->window, 0);
  EXPECT_EQ(rows.rows[1].model.decoder.kinds.front().attention->window, 4096);
}

TEST(InferenceRows, WhatCannotBeAskedForSaysWhy) {
  const InferenceRows rows =
      read_inference_lines(inference_line("SN40L", "vllm", ",static,1,128,128,serving,,5,,,2024,") +
                           inference_line("H100-SXM-80GB", "llama.cpp", ",static,1,128,128,serving,,5,,,2024,") +
                           inference_line("H100-SXM-80GB", "vllm", ",static,1,,128,serving,,5,,,2024,") +
                           inference_line("H100-SXM-80GB", "vllm", ",static,1,128,128,banana,,5,,,2024,"));
  EXPECT_TRUE(rows.rows.empty());
  ASSERT_EQ(rows.unanswered.size(), 4u);
  EXPECT_EQ(rows.unanswered[0].why, "SN40L is not in the catalogue");
  EXPECT_EQ(rows.unanswered[1].why, "the kernels of llama.cpp have no model");
  EXPECT_EQ(rows.unanswered[2].why, "the length of the prompt is not stated");
  EXPECT_EQ(rows.unanswered[3].why, "phase \"banana\" is not understood");
}

TEST(InferenceRows, TheLoadOfAServerIsABatch) {
  const InferenceRows rows = read_text(
      "id,source_key,model,layers,d_model,d_ff,n_heads,vocab,gated_mlp,accelerator,n_chips,tp,engine,concurrency,"
      "input_len,output_len,phase,tpot_ms\na,src,Llama,32,4096,11008,32,32000,y,H100-SXM-80GB,1,1,vllm,48,1024,128,"
      "serving,20\n");
  ASSERT_EQ(rows.rows.size(), 1u);
  EXPECT_DOUBLE_EQ(rows.rows[0].batch, 48.0);
  const Question question = question_of(rows.rows[0]);
  EXPECT_EQ(question.result, "served.time_per_token");
  const auto batch = std::find(question.words.begin(), question.words.end(), "--batch");
  ASSERT_NE(batch, question.words.end());
  EXPECT_EQ(*(batch + 1), "48");
}

TEST(InferenceRows, WithoutABatchOrALoadOnlyAThroughputIsAsked) {
  const InferenceRows rows =
      read_inference_lines(inference_line("H100-SXM-80GB", "vllm", "0.19,agg,,1024,16,serving,,20,,,2026,") +
                           inference_line("H100-SXM-80GB", "vllm", "0.19,agg,,1024,16,serving,,,,900,2026,"));
  ASSERT_EQ(rows.unanswered.size(), 1u);
  EXPECT_EQ(rows.unanswered[0].why, "the batch is not stated");
  ASSERT_EQ(rows.rows.size(), 1u);
  EXPECT_EQ(question_of(rows.rows[0]).result, "served.output_tokens_per_second");
}

TEST(InferenceRows, ANamedModelIsTheCatalogues) {
  const auto falcon = [](std::string_view layers) {
    const auto table = CsvTable::parse(
        "id,source_key,model,layers,d_model,d_ff,n_heads,n_kv_heads,vocab,gated_mlp,accelerator,n_chips,tp,engine,"
        "batch,"
        "input_len,output_len,phase,tpot_ms\na,src,falcon-40b," +
            std::string(layers) + ",8192,32768,128,8,65024,n,H100-SXM-80GB,2,2,vllm,1,128,128,decode,20\n",
        "test.csv");
    return read_inference(*table, testing::catalogue())->rows.at(0).model;
  };
  EXPECT_TRUE(falcon("60").decoder.kinds[0].parallel);
  const model::Transformer half = falcon("30");
  EXPECT_EQ(half.decoder.layers(), 30) << "another model: the columns count";
  EXPECT_TRUE(half.decoder.kinds[0].parallel) << "no column says otherwise";
  EXPECT_FALSE(half.decoder.kinds[0].feed_forward->gated);
}

/// One column of a row that is asked for, changed: "how it is asked", or why not.
std::string asked_serve(std::string_view column, std::string_view value) {
  std::vector<std::pair<std::string, std::string>> cells = {{"id", "a"},
                                                            {"source_key", "src"},
                                                            {"model", "meta-llama/Llama-3.1-70B-Instruct"},
                                                            {"params", ""},
                                                            {"layers", ""},
                                                            {"accelerator", "H100"},
                                                            {"n_chips", "4"},
                                                            {"tp", "4"},
                                                            {"parallel_notes", ""},
                                                            {"weight_precision", "fp8"},
                                                            {"kv_precision", ""},
                                                            {"engine", "vllm"},
                                                            {"engine_version", "0.11"},
                                                            {"mode", ""},
                                                            {"batch", ""},
                                                            {"concurrency", "64"},
                                                            {"input_len", "1024"},
                                                            {"output_len", "1024"},
                                                            {"phase", "serving"},
                                                            {"ttft_ms", ""},
                                                            {"tpot_ms", ""},
                                                            {"e2e_latency_ms", ""},
                                                            {"output_tokens_per_s_per_chip", "500"},
                                                            {"oom", ""},
                                                            {"notes", ""}};
  std::string header, line;
  for (const auto& [name, text] : cells) {
    header += (header.empty() ? "" : ",") + name;
    line += (line.empty() ? "\"" : ",\"") + (name == column ? std::string(value) : text) + "\"";
  }
  const InferenceRows rows =
      *read_inference(*CsvTable::parse(header + "\n" + line + "\n", "t.csv"), testing::catalogue());
  if (rows.rows.empty()) return rows.unanswered.at(0).why;
  const Question question = question_of(rows.rows[0]);
  std::string out = question.result;
  for (const auto* words : {&question.words, &question.own_way})
    for (const std::string& word : *words) out += " " + word;
  return out;
}

TEST(InferenceRows, AreAskedAsTheyAreWritten) {
  const std::string usual = asked_serve("", "");
  EXPECT_EQ(
      usual,
      "served.output_tokens_per_second serve llama-3.1-70b --on h100-sxm:4 --prompt 1024 --output 1024 --most-batch 64 "
      "--tp 4 --pp 1 --dp 1 --weights-2d 1 --cache heads --weights fp8 --compute fp8 --kv bf16 --head-weights bf16 "
      "--software vllm@0.11");
  const std::pair<std::string_view, std::string_view> same[] = {{"weight_precision", "FP8"},
                                                                {"weight_precision", "fp8 (block 128)"},
                                                                {"tp", "TP4"},
                                                                {"engine", "vLLM 0.11.0rc2"},
                                                                {"engine_version", "v0.11.0-cu130"},
                                                                {"concurrency", "64 requests"},
                                                                {"input_len", "1,024"},
                                                                {"accelerator", "NVIDIA H100 80GB HBM3"},
                                                                {"oom", "n"},
                                                                {"model", "Llama-3.1-70B-Instruct-FP8"}};
  for (const auto& [column, value] : same) EXPECT_EQ(asked_serve(column, value), usual) << column << " " << value;
  const std::pair<std::pair<std::string_view, std::string_view>, std::string_view> other[] = {
      {{"weight_precision", "AWQ"}, "--weights int4 --compute bf16 --kv bf16 --head-weights bf16"},
      {{"weight_precision", "w8a8"}, "--weights int8 --compute int8"},
      {{"weight_precision", "nvfp4"}, "--weights fp4 --compute bf16"},
      {{"kv_precision", "fp8_e4m3"}, "--kv fp8"},
      {{"engine", "TRT-LLM v1.2"}, "--software tensorrt-llm@1.2"},
      {{"engine_version", "v0.6.6.post1"}, "--software vllm@0.6"},
      {{"ttft_ms", "90 ms"}, "served.output_tokens_per_second"},
      {{"tpot_ms", "20"}, "served.time_per_token"},
      {{"phase", "Prefill"}, "no time is stated"},
      {{"weight_precision", "w4a8"}, "weight_precision \"w4a8\" is not understood"},
      {{"engine", "Sledge"}, "the software \"Sledge\" is not in the catalogue"},
      {{"params", "8.03e9"}, "the row contradicts itself: params is 8.03e+09, its model has 7.06e+10"},
      {{"layers", "40"}, "the columns contradict the catalogue's model of that name"},
      {{"notes", "speculative decoding, EAGLE-3"}, "how many drafted tokens are accepted is not stated"},
      {{"mode", "Poisson arrivals"}, "the load is a rate of requests, not a number of them"},
      {{"oom", "yes"}, "ran out of memory"}};
  for (const auto& [cell, part] : other)
    EXPECT_NE(asked_serve(cell.first, cell.second).find(part), std::string::npos)
        << cell.first << " " << cell.second << ": " << asked_serve(cell.first, cell.second);
}

// With one request at a time nothing waits; with several the first token does.
TEST(InferenceRows, AServerWithOneRequestIsIdle) {
  const InferenceRows rows =
      read_inference_lines(inference_line("H100-SXM-80GB", "vllm", "0.19,agg,1,1024,16,serving,80,,,,2026,") +
                           inference_line("H100-SXM-80GB", "vllm", "0.19,agg,8,1024,16,serving,80,,,,2026,"));
  ASSERT_EQ(rows.rows.size(), 1u);
  EXPECT_EQ(rows.rows[0].figure, InferenceFigure::first_token);
  ASSERT_EQ(rows.unanswered.size(), 1u);
  EXPECT_EQ(rows.unanswered[0].why, "the first token waits for those of other requests");
}

}  // namespace
}  // namespace assay::validate

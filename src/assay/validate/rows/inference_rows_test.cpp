#include "assay/validate/rows/inference_rows.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "assay/testing/inference_lines.h"

namespace assay::validate {
namespace {

using testing::inference_line;
using testing::read_inference_lines;

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
  EXPECT_EQ(rows.rows[1].software.step.scheduler, estimate::Scheduler::ahead);
  EXPECT_TRUE(rows.rows[2].software.step.whole_rows);
  EXPECT_FALSE(rows.rows[1].software.step.whole_rows);
  EXPECT_EQ(rows.rows[2].figure, InferenceFigure::static_token);
  EXPECT_DOUBLE_EQ(rows.rows[2].measured.value, 0.010);  // 1280 ms over 128 tokens
  EXPECT_DOUBLE_EQ(rows.rows[3].measured.value, 0.010);  // 16 sequences at 1600 tokens/s
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
  const auto table = CsvTable::parse(
      "id,source_key,model,layers,d_model,d_ff,n_heads,vocab,accelerator,n_chips,tp,engine,concurrency,input_len,"
      "output_len,phase,tpot_ms\na,src,Llama,32,4096,11008,32,32000,H100-SXM-80GB,1,1,vllm,48,1024,128,serving,20\n",
      "test.csv");
  const InferenceRows rows = *read_inference(*table, testing::catalogue());
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
  EXPECT_FALSE(falcon("30").decoder.kinds[0].parallel) << "another model: the columns count";
}

}  // namespace
}  // namespace assay::validate

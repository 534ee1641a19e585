#include "assay/lab/validate/rows/training_rows.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "assay/testing/sampling.h"

namespace assay::validate {
namespace {

constexpr std::string_view header =
    "id,source_key,model,layers,d_model,d_ff,n_heads,n_kv_heads,head_dim,vocab,seq_len,gated_mlp,accelerator,n_chips,"
    "precision,global_batch,micro_batch,tp,pp,vpp,cp,fsdp_zero,sequence_parallel,recompute,flash_attention,step_time_s,"
    "tokens_per_s_per_chip,peak_mem_gb,framework,year,task\n";

TrainingRows read(std::string_view line) {
  return *read_training(*CsvTable::parse(std::string(header) + std::string(line), "test.csv"),
                        hardware::Catalogue::builtin());
}

TEST(TrainingRows, ARowBecomesModelClusterAndStrategy) {
  const TrainingRows rows = read(
      "a-1,a,M,32,4096,14336,32,8,128,128256,8192,y,H100-SXM-80GB,64,fp8,128,1,2,4,2,1,zero1(dist-optimizer),y,full,y,"
      ",1000,70,NeMo 25.04,2025,pretrain\n");
  ASSERT_EQ(rows.rows.size(), 1u);
  const TrainingRow& row = rows.rows[0];
  EXPECT_EQ(row.cluster, "h100-sxm:64");
  EXPECT_EQ(row.group, "a, M, H100-SXM-80GB");
  EXPECT_EQ(row.model.decoder.layers(), 32);
  EXPECT_EQ(row.model.decoder.kinds[0].attention->kv_heads, 8);
  const lower::Parallelism& p = row.strategy.parallelism;
  EXPECT_EQ(p.tensor, 2);
  EXPECT_EQ(p.pipeline, 4);
  EXPECT_EQ(p.data, 8);
  EXPECT_EQ(p.zero, 1);
  EXPECT_EQ(p.residual, lower::ResidualScheme::sequence);
  EXPECT_EQ(row.strategy.interleave, 2);
  EXPECT_EQ(row.strategy.recompute, lower::Recompute::full());
  EXPECT_EQ(row.compute, Dtype::fp8);
  EXPECT_DOUBLE_EQ(row.measured->value(), 128.0 * 8192.0 / (1000.0 * 64.0));
  EXPECT_DOUBLE_EQ(row.peak->value(), 70.0 * 1024.0 * 1024.0 * 1024.0);
}

TEST(TrainingRows, AreReadAsTheirSourceCorrectedThem) {
  const auto layers = [](std::string_view source) {
    return read(
               fmt::format("{0}-1,{0},LLAMA4 maverick 400b,32,5120,16384,40,8,128,202048,8192,y,H100-SXM-80GB,512,bf16,"
                           "1024,1,4,1,,1,zero1,y,none,y,4.426,,,NeMo 25.04,2025,pretrain\n",
                           source))
        .rows.at(0)
        .model.decoder.layers();
  };
  EXPECT_EQ(layers("dgxc"), 48);
  EXPECT_EQ(layers("another"), 32);
}

TEST(TrainingRows, EmbeddingAndHeadMayBeChunksOfTheirOwn) {
  // 16 stages of 8 chunks: 126 layers, embedding and head.
  const auto chunks = [](std::string_view stated) {
    const TrainingRows rows = read(fmt::format(
        "a-1,a,M,126,16384,53248,128,8,128,128256,8192,y,H100-SXM-80GB,512,fp8,256,1,8,16,{},1,zero1,y,full,y,10,,,"
        "NeMo 25.04,2025,pretrain\n",
        stated));
    return rows.rows.empty() ? 0 : rows.rows[0].strategy.interleave;
  };
  EXPECT_EQ(chunks("7"), 7);
  EXPECT_EQ(chunks("8"), 8);
  EXPECT_EQ(chunks("9"), 8);
}

TEST(TrainingRows, WhatCannotBeAskedIsNamedWithTheReason) {
  const TrainingRows rows = read(
      "a-1,a,M,32,4096,14336,32,8,128,,8192,y,H100-SXM-80GB,64,fp8,128,1,2,4,,1,zero1,y,,y,1,,,NeMo,2025,pretrain\n"
      "a-2,a,M,32,4096,14336,32,8,128,32000,8192,y,Abacus,64,fp8,128,1,2,4,,1,zero1,y,,y,1,,,NeMo,2025,pretrain\n"
      "a-4,a,M,32,4096,14336,32,8,128,32000,8192,y,H100-SXM-80GB,64,fp8,128,1,2,4,,1,zero1,y,,y,,,,NeMo,2025,sft\n");
  EXPECT_TRUE(rows.rows.empty());
  ASSERT_EQ(rows.unanswered.size(), 3u);
  EXPECT_NE(rows.unanswered[0].why.find("vocabulary"), std::string::npos);
  EXPECT_NE(rows.unanswered[1].why.find("Abacus"), std::string::npos);
  EXPECT_NE(rows.unanswered[2].why.find("utilisation"), std::string::npos);
}

// One field of a row that is answered is changed to what nobody understands.
TEST(TrainingRows, AFieldThatIsNotUnderstoodIsNoGuess) {
  const std::string_view row =
      "a-1,a,M,32,4096,14336,32,8,128,32000,8192,y,H100-SXM-80GB,64,bf16,128,1,2,4,2,1,zero1,y,full,y,1,,70,NeMo,2025,"
      "pretrain\n";
  ASSERT_EQ(read(row).rows.size(), 1u);
  const std::vector<std::pair<std::string_view, std::string_view>> changes = {{",8192,", "seq_len -2048"},
                                                                              {",bf16,", "precision banana"},
                                                                              {",full,", "recompute banana"},
                                                                              {",128,1,2,", "tp abc"},
                                                                              {",128,1,2,", "tp 1.5"},
                                                                              {",zero1,", "fsdp_zero banana"},
                                                                              {",y,full,", "sequence_parallel maybe"}};
  for (const auto& [from, to] : testing::sampled(changes)) {
    const std::string column(to.substr(0, to.find(' '))), value(to.substr(to.find(' ') + 1));
    std::string replaced = column == "tp" ? ",128,1," + value + "," : "," + value + ",";
    if (column == "sequence_parallel") replaced += "full,";
    std::string changed(row);
    changed.replace(changed.find(from), from.size(), replaced);
    const TrainingRows rows = read(changed);
    EXPECT_TRUE(rows.rows.empty()) << to;
    ASSERT_EQ(rows.unanswered.size(), 1u) << to;
    EXPECT_TRUE(rows.unanswered[0].why.starts_with(column + " \"" + value + "\" is n")) << rows.unanswered[0].why;
  }
}

TEST(TrainingRows, AdaptersHaveTheRankOfTheRow) {
  const TrainingRows rows = read(
      "a-1,a,M,32,4096,14336,32,8,128,32000,8192,y,H100-SXM-80GB,64,fp8,128,1,2,4,,1,zero1,y,,y,1,,,NeMo,2025,lora\n"
      "a-2,a,M,32,4096,14336,32,8,128,32000,8192,y,H100-SXM-80GB,64,fp8,128,1,2,4,,1,zero1,y,,y,1,,,NeMo,2025,lora r8\n"
      "a-3,a,M,32,4096,14336,32,8,128,32000,8192,y,H100-SXM-80GB,64,fp8,128,1,2,4,,1,zero1,y,,y,1,,,NeMo,2025,sft\n");
  ASSERT_EQ(rows.rows.size(), 3u);
  EXPECT_EQ(rows.rows[0].model.adapters, (model::Adapters{16, true, false}));
  EXPECT_EQ(rows.rows[1].model.adapters, (model::Adapters{8, true, false}));
  EXPECT_FALSE(rows.rows[2].model.adapters);
}

TEST(TrainingRows, SoftwareDecidesWhatARowLeavesOut) {
  const TrainingRows rows = read(
      "a-1,a,M,32,4096,14336,32,8,128,32000,8192,y,H100-SXM-80GB,64,bf16(fp32 grad "
      "accum),128,1,1,1,,1,fsdp2=16,,,y,1,,,"
      "torchtitan,2025,\n"
      "a-2,a,M,32,4096,14336,32,8,128,32000,8192,y,A100(Ampere),64,bf16,128,1,1,4,,1,fsdp2=16,,selective(op),y,1,,,"
      "torchtitan,2025,\n"
      "a-3,a,M,32,4096,14336,32,8,128,32000,8192,y,H100-SXM-80GB,64,bf16,128,1,1,1,,1,fsdp,,minimal,y,1,,,Sledge,2025,"
      "\n");
  ASSERT_EQ(rows.rows.size(), 2u);
  EXPECT_EQ(rows.rows[0].strategy.parallelism.fsdp, 16);
  EXPECT_EQ(rows.rows[0].strategy.parallelism.data, 4);
  EXPECT_EQ(rows.rows[0].strategy.recompute, lower::Recompute::operators());
  EXPECT_EQ(rows.rows[0].view, MemoryView::reserved);
  EXPECT_EQ(rows.rows[0].software.step.fusion, numbers::Fusion::eager);
  EXPECT_EQ(rows.rows[1].cluster, "a100-sxm-80:64");
  EXPECT_EQ(rows.rows[1].strategy.parallelism.zero, 2) << "weights stay gathered between stages";
  ASSERT_EQ(rows.unanswered.size(), 1u);
  EXPECT_EQ(rows.unanswered[0].why, "the software \"Sledge\" is not in the catalogue");
}

// The column of experts is not in the header above; a model of the catalogue has them.
TEST(TrainingRows, SoftwareDecidesHowTokensReachExperts) {
  const auto row = [](std::string_view accelerator, std::string_view framework) {
    const TrainingRows rows =
        read(fmt::format("a-1,a,DeepSeek-V3,,,,,,,,4096,,{},256,fp8,4096,1,1,4,4,1,zero1(dist-optimizer),n,none,y,10,"
                         ",,{},2026,\n",
                         accelerator, framework));
    return rows.rows.empty() ? TrainingRow() : rows.rows[0];
  };
  EXPECT_TRUE(row("H100-SXM-80GB", "NeMo 25.04").software.copies_per_expert);
  EXPECT_FALSE(row("H100-SXM-80GB", "NeMo 25.04").software.step.expert_overlap);
  const TrainingRow later = row("H100-SXM-80GB", "Megatron-Bridge 25.11");
  EXPECT_FALSE(later.software.copies_per_expert);
  EXPECT_TRUE(later.software.step.expert_overlap);
  const std::vector<std::string> own = question_of(row("B200-SXM-180GB", "NeMo 25.04"), StepFigure::time).own_way;
  const auto word = std::find(own.begin(), own.end(), "--dispatch");
  ASSERT_NE(word, own.end());
  EXPECT_EQ(*(word + 1), "expert");
}

// "8x NDR IB" is 400 Gbit/s for each of eight chips; other words are the catalogue's network.
TEST(TrainingRows, NetworksHaveTheBandwidthThatTheirTextSays) {
  const auto changes = [](std::string_view chip, std::string_view network) {
    const auto table = CsvTable::parse(
        "id,source_key,model,layers,d_model,d_ff,n_heads,vocab,seq_len,gated_mlp,accelerator,interconnect,n_chips,"
        "precision,global_batch,micro_batch,tp,step_time_s,framework,year\na-1,a,M,32,4096,14336,32,32000,8192,y," +
            std::string(chip) + "," + std::string(network) + ",64,bf16,128,1,2,1,NeMo,2025\n",
        "test.csv");
    return read_training(*table, hardware::Catalogue::builtin())->rows.at(0).changes;
  };
  const auto bandwidth = [](const std::vector<hardware::Override>& all) {
    for (const hardware::Override& change : all)
      if (change.path == "network.scale_out.bandwidth") return change.value;
    return std::string();
  };
  EXPECT_EQ(bandwidth(changes("H100-SXM-80GB", "8x NDR IB")), "") << "the catalogue's own";
  EXPECT_EQ(bandwidth(changes("H100-SXM-80GB", "NVLink4 + 1600 Gbps/node")), "25000000000 B/s");
  EXPECT_EQ(bandwidth(changes("H100-SXM-80GB", "NVLink4 + 8x 200Gb/s RoCE")), "25000000000 B/s");
  EXPECT_EQ(bandwidth(changes("H100-SXM-80GB", "1x HDR200")), "3125000000 B/s");
  EXPECT_EQ(bandwidth(changes("H100-SXM-80GB", "NVLink | 2x 100Gb/s storage")), "") << "not said to join the chips";
  EXPECT_EQ(bandwidth(changes("A100-SXM-80GB", "4x Omni-Path 100Gb")), "1875000000 B/s") << "0.3 of it is reached";
}

/// One column of a row that is asked for, changed: how it is asked, or why not.
std::string asked_train(std::string_view column, std::string_view value) {
  const std::vector<std::pair<std::string, std::string>> cells = {{"id", "a-1"},
                                                                  {"source_key", "a"},
                                                                  {"model", "mixtral-8x7b"},
                                                                  {"seq_len", "4096"},
                                                                  {"arch_notes", ""},
                                                                  {"task", "pretrain"},
                                                                  {"accelerator", "H100"},
                                                                  {"n_chips", "64"},
                                                                  {"chips_per_node", ""},
                                                                  {"topology", ""},
                                                                  {"precision", "bf16"},
                                                                  {"global_batch", "128"},
                                                                  {"micro_batch", "1"},
                                                                  {"tp", "2"},
                                                                  {"pp", "1"},
                                                                  {"vpp", ""},
                                                                  {"ep", "8"},
                                                                  {"etp", ""},
                                                                  {"fsdp_zero", "zero1"},
                                                                  {"recompute", "full"},
                                                                  {"flash_attention", "y"},
                                                                  {"optimizer", ""},
                                                                  {"step_time_s", "1"},
                                                                  {"framework", "NeMo 25.04"},
                                                                  {"year", "2025"},
                                                                  {"oom", ""}};
  std::string names, line;
  for (const auto& [name, text] : cells) {
    names += (names.empty() ? "" : ",") + name;
    line += (line.empty() ? "\"" : ",\"") + (name == column ? std::string(value) : text) + "\"";
  }
  const TrainingRows rows =
      *read_training(*CsvTable::parse(names + "\n" + line + "\n", "t.csv"), hardware::Catalogue::builtin());
  if (rows.rows.empty()) return rows.unanswered.at(0).why;
  const Question question = question_of(rows.rows[0], StepFigure::time);
  std::string out;
  for (const auto* words : {&question.words, &question.own_way})
    for (const std::string& word : *words) out += " " + word;
  return out;
}

TEST(TrainingRows, AreAskedAsTheyAreWritten) {
  const std::string usual = asked_train("", "");
  EXPECT_NE(usual.find("--on h100-sxm:64 "), std::string::npos) << usual;
  EXPECT_NE(usual.find("--ep 8 --zero 1 "), std::string::npos) << usual;
  const std::pair<std::string_view, std::string_view> same[] = {{"precision", "BF16"},
                                                                {"precision", "bf16-mixed"},
                                                                {"fsdp_zero", "ZeRO-1"},
                                                                {"tp", "TP2 PP1"},
                                                                {"recompute", "Full"},
                                                                {"flash_attention", "Yes"},
                                                                {"optimizer", "AdamW"},
                                                                {"seq_len", "4,096"},
                                                                {"global_batch", "128 seqs"},
                                                                {"step_time_s", "1.0 s"},
                                                                {"task", "SFT"},
                                                                {"etp", "2"},
                                                                {"framework", "NVIDIA NeMo 25.04"},
                                                                {"chips_per_node", "8"},
                                                                {"oom", "no"}};
  for (const auto& [column, value] : same) EXPECT_EQ(asked_train(column, value), usual) << column << " " << value;
  const std::pair<std::pair<std::string_view, std::string_view>, std::string_view> other[] = {
      {{"precision", "FP8 hybrid"}, "--compute fp8"},
      {{"etp", "1"}, "--ep-over tp"},
      {{"chips_per_node", "4"}, "network.scale_up.domain=4"},
      {{"fsdp_zero", "fsdp2=8"}, "--dp 4 --fsdp 8"},
      {{"task", "LoRA (r=32)"}, "--lora 32"},
      {{"accelerator", "TPU v5p"}, "--on tpu-v5p:64 "},
      {{"fsdp_zero", "fsdp2=24"}, "fsdp does not divide the data-parallel devices"},
      {{"precision", "fp32"}, "precision \"fp32\" is not understood"},
      {{"optimizer", "Muon"}, "optimizer \"muon\" is not understood"},
      {{"task", "dpo"}, "task \"dpo\" is not understood"},
      {{"oom", "Y"}, "ran out of memory"}};
  for (const auto& [cell, part] : other)
    EXPECT_NE(asked_train(cell.first, cell.second).find(part), std::string::npos)
        << cell.first << " " << cell.second << ": " << asked_train(cell.first, cell.second);
}

TEST(TrainingRows, WhatNeitherColumnsNorTheCatalogueSayIsNoGuess) {
  const auto why = [](std::string_view line) {
    const auto table = CsvTable::parse(
        "id,source_key,model,layers,d_model,d_ff,n_heads,n_kv_heads,vocab,gated_mlp,attn_type,arch_notes,seq_len,"
        "accelerator,n_chips,global_batch,step_time_s,framework\n" +
            std::string(line) + ",4096,H100,1,8,1,NeMo 25.04\n",
        "t.csv");
    const TrainingRows rows = *read_training(*table, hardware::Catalogue::builtin());
    return rows.unanswered.empty() ? std::string() : rows.unanswered[0].why;
  };
  EXPECT_EQ(why("a,a,M,32,4096,14336,32,8,32000,y,gqa,"), "");
  EXPECT_EQ(why("a,a,M,32,4096,14336,32,8,32000,,gqa,"), "whether the feed-forward is gated is not stated");
  EXPECT_EQ(why("a,a,M,32,4096,14336,32,,32000,y,gqa,"), "the number of key and value heads is not stated");
  EXPECT_EQ(why("a,a,M,32,4096,14336,32,8,32000,y,gqa,hybrid mamba2"),
            "arch_notes \"hybrid mamba2\" is not understood");
}

// Whether a row is asked does not depend on what was measured, only on whether anything was.
TEST(TrainingRows, AreNotRefusedForWhatWasMeasured) {
  const std::string row =
      "a-1,a,M,32,4096,14336,32,8,128,32000,8192,y,H100-SXM-80GB,64,bf16,128,1,2,4,2,1,zero1,y,full,y,{},,70,NeMo,2025,"
      "pretrain\n";
  for (const char* seconds : {"1e-6", "1", "1e6"}) {
    std::string line = row;
    line.replace(line.find("{}"), 2, seconds);
    EXPECT_EQ(read(line).rows.size(), 1u) << seconds;
  }
}

TEST(TrainingRows, AModelThatTheCatalogueLacksIsWrittenOut) {
  const std::string_view rest = ",8192,y,H100-SXM-80GB,64,bf16,128,1,1,1,,1,zero1,,full,y,1,,,NeMo,2025,\n";
  const TrainingRows rows = read("a-1,a,M,32,4096,14336,32,8,128,32000" + std::string(rest) +
                                 "a-2,a,Llama-3-8B,32,4096,14336,32,8,128,128256" + std::string(rest) +
                                 "a-3,a,Llama-3-8B,32,4096,14336,32,8,128,128512" + std::string(rest));
  ASSERT_EQ(rows.rows.size(), 3u);
  EXPECT_EQ(rows.rows[0].named,
            R"({"model_type":"transformer","layers":32,"d_model":4096,"vocabulary":32000,"heads":32,"kv_heads":8,)"
            R"("head_dim":128,"d_ff":14336,"gated":true})");
  EXPECT_EQ(rows.rows[1].named, "llama-3-8b");
  EXPECT_EQ(rows.rows[2].named, R"({"base":"llama-3-8b","vocab_size":128512})");
  EXPECT_EQ(rows.rows[2].model.vocabulary, 128512);
}

}  // namespace
}  // namespace assay::validate

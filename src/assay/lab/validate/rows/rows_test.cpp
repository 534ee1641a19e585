#include <gtest/gtest.h>

#include <algorithm>

#include "assay/lab/validate/rows/collective_rows.h"
#include "assay/lab/validate/rows/kernel_rows.h"
#include "assay/lab/validate/rows/known_chips.h"
#include "assay/lab/validate/rows/table_line.h"

namespace assay::validate {
namespace {

constexpr const char* kernels =
    "id,source_key,op,chip,dtype,kv_dtype,direction,m,n,k,batch,n_heads,n_kv_heads,head_dim,v_head_dim,q_len,kv_len,"
    "causal,window,moe_experts,time_us,tflops,framework,notes,kernel\n"
    "a,vidur,gemm,A100-PCIe-80GB,bf16,,fwd,64,512,256,,,,,,,,,,,10,,,,\n"
    "b,simumax,attention,B200-SXM-180GB,bf16,,bwd,,,,1,64,8,128,128,4096,4096,y,,,,1960,TransformerEngine/cuDNN,NOT "
    "causal-halved,\n"
    "c,aiconfigurator,attention_decode,H100-SXM-80GB,bfloat16,fp8,fwd,,,,4,32,8,128,,1,1000,y,128,,20,,,,\n"
    "d,aiconfigurator,moe_ffn,H100-SXM-80GB,fp8,,fwd,,,,,,,,,,,,,8,20,,,,\n"
    "e,x,gemm,RTX-A6000,bf16,,fwd,1,1,1,,,,,,,,,,,1,,,,\n"
    "f,x,gemm,L40S,fp8_block,,fwd,1,1,1,,,,,,,,,,,1,,,,\n"
    "g,x,gemm,L40S,bf16,,fwd,1,1,1,,,,,,,,,,,1,,,operands L2-resident,\n"
    "h,x,gemm,H100-SXM-80GB,bf16,,fwd,4096,4096,8192,,,,,,,,,,,,600,,,\n"
    "i,x,attention,H100-SXM-80GB,bf16,,fwd,,,,1,64,8,128,128,4096,4096,y,,,,500,FlashAttention-2,,\n";

TEST(TableLine, ChipsHaveTheNamesOfTheirMakersToo) {
  const hardware::Catalogue catalogue = hardware::Catalogue::builtin();
  const KnownChips chips = *KnownChips::make(catalogue);
  const std::pair<std::string_view, std::string_view> known[] = {{"GB300", "gb300-nvl72"},
                                                                 {"B300-SXM-288GB", "b300"},
                                                                 {"B200-SXM-180GB", "b200"},
                                                                 {"A100-SXM-40GB", "a100-sxm-40"},
                                                                 {"TPUv5e", "tpu-v5e"},
                                                                 {"H100-PCIe-80GB", "h100-pcie"},
                                                                 {"MI355X", "mi355x"},
                                                                 {"RTX4090", "rtx-4090"},
                                                                 {"L4", "l4"},
                                                                 {"L40S-48GB", "l40s"},
                                                                 {"H800-SXM-80GB", "h800-sxm"},
                                                                 {"TPU7x(Ironwood)", "tpu-v7"},
                                                                 {"MI250", "mi250"},
                                                                 {"A10", "a10"},
                                                                 {"H20", "h20-sxm"},
                                                                 {"H100", "h100-sxm"},
                                                                 {"NVIDIA H100 80GB HBM3", "h100-sxm"},
                                                                 {"NVIDIA H200 141GB", "h200-sxm"},
                                                                 {"NVIDIA A100-SXM4-40GB", "a100-sxm-40"},
                                                                 {"A100(Ampere)", "a100-sxm-80"},
                                                                 {"AMD Instinct MI300X (CDNA3)", "mi300x"},
                                                                 {"TPU v6e (Trillium)", "tpu-v6e"},
                                                                 {"Trillium", "tpu-v6e"}};
  for (const auto& [name, chip] : known) EXPECT_EQ(chips.find(name).value_or(""), chip) << name;
  for (const std::string_view name :
       {"L40", "MI25", "H100 NVL", "H100-SXM-80GB(550W)", "SN40L", "B200-SXM-180GB(power-limited)", "", "B20"})
    EXPECT_FALSE(chips.find(name)) << name;
  // A table may name a chip wrongly.
  EXPECT_EQ(chips.find("A100-SXM-40GB", "llmcompass"), "a100-sxm-80");
  EXPECT_EQ(chips.find("A100-SXM-40GB", "vidur"), "a100-sxm-40");
  // Rows on a chip that no fit has seen are in none.
  EXPECT_EQ(chips.fold("MI210", "a group", "calib"), held_out);
  EXPECT_EQ(chips.fold("H100-SXM-80GB", "a group", "calib"), fold_of("a group", "calib"));
}

TEST(KernelRows, BecomeShapesAndTheRestIsNamed) {
  const auto table = CsvTable::parse(kernels, "kernels.csv");
  ASSERT_TRUE(table);
  const KernelRows rows = *read_kernels(*table, hardware::Catalogue::builtin());
  ASSERT_EQ(rows.rows.size(), 6u);
  const KernelRow& gemm = rows.rows[0];
  EXPECT_EQ(gemm.chip, "a100-pcie-80");
  EXPECT_EQ(gemm.kernel.product.bytes, Bytes(2 * (64 * 256 + 512 * 256 + 64 * 512)));
  EXPECT_EQ(gemm.shape, "512x256");
  EXPECT_EQ(gemm.operation, "bf16[64,256] @ bf16[256,512] -> bf16[64,512]");
  const KernelRow& attention = rows.rows[1];
  // All scores, masked ones too: 4 * 64 * 4096^2 * 128 * 2.5 FLOP at 1960 TFLOP/s
  EXPECT_NEAR(attention.measured.value(), 4.0 * 64 * 4096 * 4096 * 128 * 2.5 / 1960e12, 1e-12);
  EXPECT_EQ(attention.kernel.kind, KernelKind::attention_backward);
  const KernelRow& decode = rows.rows[2];
  EXPECT_EQ(decode.kernel.bytes, Bytes(4 * 8 * 128 * 256 * 1.0));  // the window's keys and values, one byte each
  EXPECT_EQ(decode.kernel.items, 32.0);
  // Rates alone; of attention, of what its mask leaves.
  EXPECT_EQ(rows.rows[3].operation, "fp8[1,1] @ fp8[1,1] -> bf16[1,1]");
  EXPECT_EQ(rows.rows[3].source, "aiconfigurator-blocks") << "activations are cast by blocks";
  EXPECT_NEAR(rows.rows[4].measured.value(), 2.0 * 4096 * 4096 * 8192 / 600e12, 1e-12);
  EXPECT_NEAR(rows.rows[5].measured.value(), 4.0 * 64 * 4096 * 2048 * 128 / 500e12, 1e-12);
  ASSERT_EQ(rows.unanswered.size(), 3u);
  EXPECT_EQ(rows.unanswered[0].why, "the sizes are not given");
  EXPECT_EQ(rows.unanswered[1].why, "no chip \"RTX-A6000\" in the catalogue");
  // What words of tables mean is data: validation/readings.toml.
  EXPECT_EQ(rows.unanswered[2].why, "operands stay in the L2 cache: no bytes of main memory to predict");
  EXPECT_EQ(attention.kernel.library, hardware::AttentionKernel::cudnn);
  EXPECT_EQ(rows.rows[5].kernel.library, hardware::AttentionKernel::flash2);
}

TEST(KernelRows, ExpertsAreAskedOfAServerWithOneLayer) {
  const auto read = [](std::string_view devices, std::string_view distribution) {
    const std::string text =
        "id,source_key,op,chip,dtype,moe_experts,moe_topk,moe_d_model,moe_d_ff,moe_tp,moe_ep,moe_tokens,"
        "moe_distribution,time_us,framework,version\n"
        "a,aiconfigurator,moe_ffn,H200-SXM-141GB,fp8_block,128,8,2048,768,2," +
        std::string(devices) + ",4096," + std::string(distribution) + ",800,trtllm,1.3.0rc20\n";
    return *read_kernels(*CsvTable::parse(text, "k.csv"), hardware::Catalogue::builtin());
  };
  const KernelRows rows = read("4", "balanced");
  ASSERT_EQ(rows.rows.size(), 1u);
  const Question question = question_of(rows.rows[0]);
  const auto after = [&](std::string_view option) {
    const auto at = std::find(question.words.begin(), question.words.end(), option);
    return at == question.words.end() ? "" : *std::next(at);
  };
  EXPECT_NE(question.words[1].find("\"expert_width\":384"), std::string::npos) << "each expert is split in two";
  EXPECT_EQ(after("--on"), "h200-sxm:4");
  EXPECT_EQ(after("--ep"), "4");
  EXPECT_EQ(after("--weights"), "fp8-128x128");
  EXPECT_EQ(after("--compute"), "fp8");
  EXPECT_EQ(after("--software"), "tensorrt-llm@1.3");
  EXPECT_EQ(question.result, "decode_experts");
  EXPECT_EQ(rows.rows[0].fold, held_out);
  EXPECT_TRUE(read("4", "power_law_1.2").rows.empty()) << "which part the busiest device has is not stated";
  EXPECT_EQ(read("1", "power_law_1.2").rows.size(), 1u);
}

constexpr const char* collectives =
    "id,source_key,op,chip,n_ranks,nodes,gpus_per_node,interconnect,bytes,time_us,algbw_gbps,algorithm,library,dtype,"
    "extra\n"
    "a,nccl,all_reduce,H100-SXM-80GB,16,2,8,NVLink4 + 32x100G EFA,1000,100,,,,,\n"
    "b,nccl,alltoall,H100-SXM-80GB,8,1,8,NVLink4,1000,,10,,,,\n"
    "c,nccl,all_reduce,GB200,8,2,4,NVLink5 NVL72 (same domain),1000,100,,Ring,,,\n"
    "d,vidur,all_reduce,A100-SXM-80GB,16,2,8,NVLink3 DGX + inter-node,1000,100,,,,,\n"
    "e,x,moe_combine,GB200,8,2,4,,1000,100,,,,,\n"
    "f,mine,all_reduce,A100(Ampere),16,2,8,NVLink3 + 8x NDR IB,1000,100,,,,,\n"
    "g,aiconfigurator-deepep,moe_dispatch_normal,H200-SXM-141GB,8,1,8,NVLink4,,500,,,DeepEP normal,bf16,"
    "tokens/rank=128 hidden=7168 topk=6 experts=384 sms=24\n"
    "h,aiconfigurator-customar,all_reduce,H100-SXM-80GB,8,1,8,NVLink4,262144,10,,,,bf16,\n"
    "i,vidur,send_recv,A100-SXM-80GB,2,1,2,NVLink3 DGX,2048,8,,,,fp16,\n";

TEST(KernelRows, ThatATableKeepsApartAreNeverFitted) {
  std::string apart = "id,source_key,op,chip,dtype,m,n,k,time_us,split\n", open = apart;
  for (int n = 1; n <= 40; ++n) {
    apart += "a,vidur,gemm,L40S,bf16,64," + std::to_string(n) + ",256,10,test\n";
    open += "a,vidur,gemm,L40S,bf16,64," + std::to_string(n) + ",256,10,calib\n";
  }
  int fitted = 0;
  const auto read = [](const std::string& text) {
    return *read_kernels(*CsvTable::parse(text, "t.csv"), hardware::Catalogue::builtin());
  };
  const KernelRows kept = read(apart), seen = read(open);
  for (const KernelRow& row : kept.rows) fitted += row.fold != held_out ? 1 : 0;
  EXPECT_EQ(fitted, 0);
  for (const KernelRow& row : seen.rows) fitted += row.fold != held_out ? 1 : 0;
  EXPECT_EQ(fitted, 40);
}

TEST(CollectiveRows, BecomeGroupsOfLinks) {
  const auto table = CsvTable::parse(collectives, "collectives.csv");
  ASSERT_TRUE(table);
  const auto read = read_collectives(*table, hardware::Catalogue::builtin());
  ASSERT_TRUE(read);
  ASSERT_EQ(read->rows.size(), 7u);
  const CollectiveRow& across = read->rows[0];
  EXPECT_TRUE(across.across);
  EXPECT_EQ(across.fabric, hardware::Fabric::efa);
  ASSERT_EQ(across.links.levels.size(), 2u);
  EXPECT_EQ(across.links.levels[1].chip_bandwidth, 50_GB_per_s);  // 32 x 100 Gbit/s for 8 chips
  EXPECT_EQ(across.cluster, "h100-sxm:16");
  const Question question = question_of(across);
  EXPECT_NE(std::find(question.words.begin(), question.words.end(), "network.scale_out.bandwidth=50GB/s"),
            question.words.end());
  EXPECT_EQ(question.own_way, (std::vector<std::string>{"--measured", "nccl"}));
  const CollectiveRow& exchange = read->rows[1];
  EXPECT_EQ(exchange.bytes, Bytes(8000));
  EXPECT_NEAR(exchange.measured.value(), 1000 / 10e9, 1e-15);
  const CollectiveRow& domain = read->rows[2];
  EXPECT_FALSE(domain.across);
  EXPECT_EQ(domain.algorithm, collective::CollectiveAlgorithm::ring);
  EXPECT_EQ(domain.links.levels[0].groups, 8.0);
  const CollectiveRow& named = read->rows[3];  // a network that the table of accelerators knows
  ASSERT_EQ(named.links.levels.size(), 2u);
  EXPECT_EQ(named.links.levels[1].chip_bandwidth, 50_GB_per_s);
  EXPECT_EQ(named.fabric, hardware::Fabric::infiniband);
  using Words = std::vector<std::string>;
  EXPECT_EQ(question_of(read->rows[4]).words,
            (Words{"collective", "ragged-all-to-all", "--bytes", "fp8[1024,7168]", "--on", "h200-sxm:8", "--kernel",
                   "normal-dispatch", "--picks", "6"}));
  EXPECT_EQ(question_of(read->rows[5]).words.back(), "one-shot");
  EXPECT_EQ(question_of(read->rows[6]).words[1], "permute");
  for (const std::size_t row : {4, 5, 6}) EXPECT_TRUE(question_of(read->rows[row]).own_way.empty());
  ASSERT_EQ(read->unanswered.size(), 2u);
  EXPECT_EQ(read->unanswered[0].why, "the network between the nodes is not stated");
}

}  // namespace
}  // namespace assay::validate

#include "assay/profile/trace/summary.h"

#include <gtest/gtest.h>

#include "assay/profile/trace/bytes.h"
#include "assay/profile/trace/readers.h"

namespace assay::trace {
namespace {

const Vocabulary& vocabulary() {
  static const hardware::Catalogue catalogue = hardware::Catalogue::builtin();
  return **vocabulary_of(catalogue);
}

Trace two_steps() {
  const auto bytes = file_bytes("tests/data/profiles/two-steps.json", "test");
  return read_profile(*bytes, "two-steps.json", vocabulary()).value();
}

// Kernels: 10 to 30, 30 to 40, 60 to 80 and 112 to 132 us; a collective 35 to 50; a copy 45 to 55.
TEST(Summary, PartsOfTheTimeByHand) {
  const auto devices = summarize(two_steps(), vocabulary());
  ASSERT_EQ(devices.size(), 1u);
  const DeviceTimes& times = devices[0].times;
  EXPECT_DOUBLE_EQ(times.total.in(1_us), 122.0);
  EXPECT_DOUBLE_EQ(times.busy.in(1_us), 85.0);
  EXPECT_DOUBLE_EQ(times.idle.in(1_us), 37.0);
  EXPECT_DOUBLE_EQ(times.computation.in(1_us), 70.0);
  EXPECT_DOUBLE_EQ(times.communication.in(1_us), 15.0);
  EXPECT_DOUBLE_EQ(times.exposed_communication.in(1_us), 10.0);
  EXPECT_DOUBLE_EQ(times.exposed_copies.in(1_us), 5.0);
  EXPECT_DOUBLE_EQ(devices[0].host_bound.in(1_us), 32.0);  // launched at 110, dry since 80
}

TEST(Summary, AnOperationTellsWhatAKernelOfAnUnknownNameDoes) {
  std::string text = *file_bytes("tests/data/profiles/two-steps.json", "test");
  for (std::size_t at = 0; (at = text.find("nvjet_tst", at)) != std::string::npos;) text.replace(at, 9, "mysteries");
  const auto devices = summarize(read_profile(text, "two-steps.json", vocabulary()).value(), vocabulary());
  const OperationTime& product = devices[0].operations[0];
  EXPECT_EQ(product.kernel, "mysteries_128x256_64x4_2x1_v_bz_NNT");
  EXPECT_EQ(vocabulary().categories[product.category].id, "matmul");
}

TEST(Summary, OperationsHaveTheWorkOfTheirShapes) {
  const auto devices = summarize(two_steps(), vocabulary());
  const OperationTime& product = devices[0].operations[0];
  EXPECT_EQ(product.name, "aten::mm");
  EXPECT_EQ(product.calls, 2);
  EXPECT_DOUBLE_EQ(product.time.in(1_us), 40.0);
  EXPECT_DOUBLE_EQ(product.work->flops.value(), 2.0 * 1024 * 512 * 256);
  EXPECT_DOUBLE_EQ(product.work->bytes->value(), 2.0 * (1024 * 512 + 512 * 256 + 1024 * 256));
  EXPECT_EQ(product.shapes, "[1024,512] [512,256]");
  bool attention = false;
  for (const OperationTime& one : devices[0].operations)
    if (one.name == "aten::_scaled_dot_product_flash_attention") {
      attention = true;
      EXPECT_DOUBLE_EQ(one.work->flops.value(), 4.0 * 8 * 128 * 128 * 64 / 2.0);  // causal
    }
  EXPECT_TRUE(attention);
}

TEST(Summary, KernelsOfTheOptimizerAreToldByItsMark) {
  const auto devices = summarize(two_steps(), vocabulary());
  for (const CategoryTime& one : devices[0].categories)
    if (vocabulary().categories[one.category].optimizer) {
      EXPECT_DOUBLE_EQ(one.time.in(1_us), 20.0);
      return;
    }
  FAIL() << "no optimizer";
}

TEST(Summary, StepsEndWithTheirLastKernel) {
  const auto devices = summarize(two_steps(), vocabulary());
  ASSERT_EQ(devices[0].steps.size(), 2u);
  EXPECT_DOUBLE_EQ(devices[0].steps[0].time.in(1_us), 70.0);
  EXPECT_DOUBLE_EQ(devices[0].steps[1].time.in(1_us), 52.0);
}

TEST(Summary, AStepIsNeverShorterThanNothing) {
  // A kernel of the first step runs a second after everything else.
  const auto bytes = file_bytes("tests/fuzz/corpus/profile/late_kernel", "test");
  const auto devices = summarize(read_profile(*bytes, "late_kernel", vocabulary()).value(), vocabulary());
  ASSERT_EQ(devices[0].steps.size(), 2u);
  EXPECT_GT(devices[0].steps[0].time, 1_s);
  EXPECT_DOUBLE_EQ(devices[0].steps[1].time.in(1_us), 20.0);
}

TEST(Vocabulary, KnowsKernelsOfManyLibraries) {
  const auto check = [](std::string_view kernel, std::string_view category, std::string_view kind = "") {
    const Vocabulary::Found found = vocabulary().category(kernel);
    EXPECT_EQ(vocabulary().categories[found.category].id, category) << kernel;
    EXPECT_EQ(found.kind, kind) << kernel;
  };
  check("ncclKernel_AllReduce_RING_LL_Sum_float(ncclWorkElem)", "collective", "all-reduce");
  check("ncclDevKernel_ReduceScatter_Sum_bf16_RING_LL(ncclDevKernelArgsStorage<4096ul>)", "collective",
        "reduce-scatter");
  check("ncclDevKernel_AllGather_RING_LL(ncclDevKernelArgsStorage<4096ul>)", "collective", "all-gather");
  check("ncclDevKernel_SendRecv(ncclDevKernelArgsStorage<4096ul>)", "collective", "send-receive");
  check("ncclDevKernel_Generic(ncclDevKernelArgsStorage<4096ul>)", "collective");
  check("void deep_ep::intranode::dispatch<8, 768, 8192>(int4*, float*)", "collective", "all-to-all");
  check("void vllm::cross_device_reduce_1stage<__nv_bfloat16, 8>(vllm::RankData*)", "collective", "all-reduce");
  check("Memcpy HtoD (Pageable -> Device)", "copy", "host to device");
  check("Memset (Device)", "fill");
  check("nvjet_sm90_tst_256x128_64x4_1x2_h_bz_coopA_TNT", "matmul");
  check("Cijk_Alik_Bljk_BBS_BH_Bias_HA_S_SAV_UserArgs_MT128x256x32", "matmul");
  check("void cutlass::Kernel2<cutlass_80_wmma_tensorop_bf16_s161616gemm_bf16_32x32_128x2_tn_align8>(Params)",
        "matmul");
  check("cudnn_generated_fort_native_sdpa_sm90_flash_fprop_wgmma_f16_knob_7_64x128x128", "attention");
  check("void flash_fwd_splitkv_kernel<Flash_fwd_kernel_traits<128>>(Flash_fwd_params)", "attention");
  check("attn_fwd", "attention");
  check("sm80_xmma_fprop_implicit_gemm_indexed_tf32f32_tf32f32", "convolution");
  check("triton_poi_fused_mul_silu_0", "element-wise");
  check("triton_red_fused__to_copy_mean_mul_pow_rsqrt_1", "reduction");
  check("void at::native::(anonymous namespace)::vectorized_layer_norm_kernel<c10::BFloat16, float>(int)",
        "normalization");
  check(
      "void at::native::(anonymous namespace)::multi_tensor_apply_kernel<FusedOptimizerTensorListMetadata<4>, "
      "FusedAdamMathFunctor<float, 4, (ADAM_MODE)1, false>>(float)",
      "optimizer");
  check("something_new", "other");
}

}  // namespace
}  // namespace assay::trace

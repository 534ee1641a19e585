#include "assay/profile/trace/vocabulary.h"

#include <gtest/gtest.h>

#include "assay/testing/catalogue.h"

namespace assay::trace {
namespace {

std::string category(std::string_view kernel) {
  const Vocabulary& vocabulary = **vocabulary_of(testing::catalogue());
  const Vocabulary::Found found = vocabulary.category(kernel);
  const std::string& id = vocabulary.categories[found.category].id;
  return found.kind.empty() ? id : id + ", " + std::string(found.kind);
}

struct Known {
  const char *kernel, *category;
};

void expect_all(std::initializer_list<Known> all) {
  for (const Known& one : all) EXPECT_EQ(category(one.kernel), one.category) << one.kernel;
}

TEST(Vocabulary, CollectivesOfOldAndNewLibraries) {
  expect_all({
      {"ncclDevKernel_AllReduce_Sum_bf16_RING_LL(ncclDevKernelArgsStorage<4096ul>)", "collective, all-reduce"},
      {"ncclKernel_AllReduce_RING_LL_Sum_float(ncclDevComm*, unsigned long, ncclWork*)", "collective, all-reduce"},
      {"ncclAllReduceRingLLKernel_sum_f32(ncclColl)", "collective, all-reduce"},
      {"ncclSymkDevKernel_AllReduce_RSxLDMC_AGxSTMC_sum_bf16", "collective, all-reduce"},
      {"ncclDevKernel_ReduceScatter_Sum_f32_RING_SIMPLE(ncclDevKernelArgsStorage<4096ul>)",
       "collective, reduce-scatter"},
      {"ncclSymkDevKernel_AllGather_STMC", "collective, all-gather"},
      {"ncclDevKernel_SendRecv(ncclDevKernelArgsStorage<4096ul>)", "collective, send-receive"},
      {"ncclBroadcastRingLLKernel_copy_i8(ncclColl)", "collective, broadcast"},
      {"ncclDevKernel_Broadcast_RING_LL", "collective, broadcast"},
      {"ncclDevKernel_Reduce_Sum_f32_RING_LL", "collective, reduce"},
      {"ncclDevKernel_Generic_4(ncclDevKernelArgsStorage<4096ul>)", "collective"},
      {"rccl_main_kernel", "collective"},
      {"mscclKernel_Sum_half_LL_false(ncclDevComm*, mscclAlgo*, mscclWork*)", "collective"},
      {"void vllm::cross_device_reduce_1stage<__nv_bfloat16, 8>(vllm::RankData*)", "collective, all-reduce"},
      {"void aiter::cross_device_reduce_2stage<__hip_bfloat16, 8>(aiter::RankData*)", "collective, all-reduce"},
      {"flashinfer::trtllm_allreduce_fusion::allreduce_fusion_kernel_oneshot_lamport", "collective, all-reduce"},
      {"void deep_ep::internode_ll::dispatch<true, false, 7168>", "collective, all-to-all"},
      {"void deep_ep::intranode::combine<__nv_bfloat16, 8, 768, 4096>", "collective, all-to-all"},
      {"EpDispatchIntraNodeKernel<hip_bfloat16>", "collective, all-to-all"},
      {"kuserbuffers_pushsend", "collective, send-receive"},
      {"userbuffers_fp16_sum_inplace_gpu_mc_ag", "collective"},
  });
}

TEST(Vocabulary, ProductsAndAttentionOfManyLibraries) {
  expect_all({
      {"nvjet_sm90_tst_320x128_64x3_1x2_h_bz_coopB_TNT", "matmul"},
      {"nvjet_sm100_hsh_256x256_64x4_2x1_2cta_v_bz_splitK_TNN", "matmul"},
      {"nvjet_qqtst_128x256_128x5_1x2_h_bz_coopB_bias_TNT", "matmul"},
      {"sm90_xmma_gemm_bf16bf16_bf16f32_f32_tn_n_tilesize128x128x64_warpgroupsize1x1x1_execute_segment_k_off_kernel__"
       "5x_cublas",
       "matmul"},
      {"ampere_bf16_s16816gemm_bf16_128x128_ldg8_f2f_stages_32x5_tn", "matmul"},
      {"void cutlass::Kernel2<cutlass_80_tensorop_bf16_s16816gemm_relu_bf16_256x64_32x4_tn_align8>", "matmul"},
      {"void cutlass::device_kernel<cutlass::gemm::kernel::GemmUniversal<cute::tuple<int, int, int, int>>>", "matmul"},
      {"cutlass3x_sm100_tensorop_s256x256x16_bf16_bf16_f32", "matmul"},
      {"kernel_cutlass_kernel_cutlassgrouped_gemm_PersistentDenseGemm_object_at__tensor000o", "matmul"},
      {"Cijk_Alik_Bljk_BBS_BH_Bias_HA_S_SAV_UserArgs_MT256x256x64_MI16x16x1", "matmul"},
      {"void deep_gemm::sm90_fp8_gemm_1d2d_impl<0u, 7168u, 2048u>", "matmul"},
      {"_ZN5aiter24bf16gemm_fp32bf16_tn_128x64_splitk_cleanE", "matmul"},
      {"_ZN5aiter47fmoe_bf16_pertokenFp8_g1u1_vs_silu_1tg_32x256E", "matmul"},
      {"bmm_Bfloat16_Bfloat16_Fp32_t128x8x128_s5_et128x8_m128x8x16_cga1x1x1", "matmul"},
      {"triton_tem_fused_addmm_3", "matmul"},
      {"void cutlass::device_kernel<flash::FlashAttnFwdSm90<flash::CollectiveMainloopFwdSm90>>", "attention"},
      {"kernel_cutlass_kernel_flash_attncuteflash_fwd_sm100FlashAttentionForwardSm100_object_at_", "attention"},
      {"cudnn_generated_fort_native_sdpa_sm90_flash_bprop_wgmma_f16_knob_26_64x64x128_1x4x1_cga1x1x1_kernel0_0",
       "attention"},
      {"void cudnn::fusion::convert_dq_to_16bits<true>(void const*)", "attention"},
      {"void cudnn::fusion::dkv_reduce_head<true>(void const*)", "attention"},
      {"fmhaSm100fKernel_QkvBfloat16OBfloat16H128PagedKvCausalP64MultiCtasKvVarSeqQ128Kv128Static", "attention"},
      {"void flashinfer::BatchPrefillWithPagedKVCacheKernel<flashinfer::KernelTraits>", "attention"},
      {"void flashinfer::MergeStatesKernel<8u, 128u>", "attention"},
      {"_ZN5aiter32fmha_fwd_hd128_bf16_causal_groupE", "attention"},
      {"triton_tem_fused_flex_attention_backward_1", "attention"},
  });
}

TEST(Vocabulary, LibrariesOfManyKindsOfKernelsAreNoKind) {
  expect_all({
      {"kernel_unified_attention_3d", "attention"},
      {"reduce_segments", "attention"},
      {"kernel_mha", "attention"},
      {"sm90_fp8_paged_mqa_logits", "attention"},
      {"fused_recurrent_gated_delta_rule_fwd_kernel", "attention"},
      {"void tensorrt_llm::kernels::applyMLARopeAndAssignQKVKernelGeneration<>", "attention"},
      {"void vllm::concat_and_cache_mla_kernel<>", "routing"},
      {"void vllm::moe::topkGatingSoftmax<8, 256>", "routing"},
      {"moe_sum_reduce_warp_per_token", "routing"},
      {"pre_reorder_triton_kernel", "routing"},
      {"void tensorrt_llm::kernels::cutlass_kernels::expandInputRowsKernel<>", "routing"},
      {"create_flashinfer_kv_indices_triton", "routing"},
      {"void (anonymous namespace)::resolve_future_token_ids_kernel<long>", "routing"},
      {"void tensorrt_llm::kernels::cutlass_kernels::doActivationKernel<>", "element-wise"},
      {"_per_token_group_quant_fp8", "element-wise"},
      {"fused_moe_kernel", "matmul"},
      {"bmm_E4m3_E4m3E4m3_Fp32_t128x8x128_s6_et64x8_m64x8x32_tma_dynBatch_sm100f", "matmul"},
      {"void flashinfer::norm::FusedAddRMSNormKernel<8u, __nv_bfloat16>", "normalization"},
      {"void flashinfer::activation::act_and_mul_kernel<__nv_bfloat16, silu>", "element-wise"},
      {"void flashinfer::BatchQKApplyRotaryPosIdsCosSinCacheKernel<true, 128u>", "element-wise"},
      {"void flashinfer::sampling::TopKTopPSamplingFromProbKernel<1024u>", "routing"},
      {"kernel_cutlass_kernel_quackrmsnormRMSNorm_object_at__tensorptrbf16gmem", "normalization"},
      {"kernel_cutlass_kernel_quacksoftmaxSoftmax_object_at__tensorptrbf16gmem", "reduction"},
      {"kernel_cutlass_kernel_somebody_elses_object_at__tensorptrbf16gmem", "other"},
      {"_fwd_kernel", "other"},
  });
}

TEST(Vocabulary, ACompilersKernelsAreNotTheOperationsBesideThem) {
  expect_all({
      {"triton_poi_fused__to_copy_all_gather_into_tensor_3", "element-wise"},
      {"triton_poi_fused_bmm_7", "element-wise"},
      {"triton_poi_fused_convolution_relu_2", "element-wise"},
      {"triton_poi_fused__scaled_dot_product_cudnn_attention_clone_1", "element-wise"},
      {"triton_poi_fused__softmax_add_4", "element-wise"},
      {"triton_red_fused_all_reduce_mul_sum_9", "reduction"},
      {"triton_per_fused_native_layer_norm_5", "normalization"},
      {"triton_for_fused_12", "element-wise"},
  });
}

TEST(Vocabulary, UpdatesAndTheRest) {
  expect_all({
      {"void at::native::(anonymous namespace)::multi_tensor_apply_kernel<TensorListMetadata<4>, FusedAdamMathFunctor>",
       "optimizer"},
      {"void multi_tensor_apply_kernel<transformer_engine::AdamCapturableMasterFunctor<float>>", "optimizer"},
      {"void kOptimizerStatic8bit2State<__nv_bfloat16, 0>", "optimizer"},
      {"void at::native::multi_tensor_apply_kernel<TensorListMetadata<1>, BinaryOpScalarFunctor<float>>",
       "element-wise"},
      {"void at::native::detail::chunk_cat_cuda_kernel<float, c10::BFloat16>", "element-wise"},
      {"void vllm::rotary_embedding_kernel<c10::BFloat16, true>", "element-wise"},
      {"void vllm::reshape_and_cache_flash_kernel<__nv_bfloat16>", "routing"},
      {"Memset (Device)", "fill"},
      {"Memcpy DtoH (Device -> Pinned)", "copy, device to host"},
  });
}

}  // namespace
}  // namespace assay::trace

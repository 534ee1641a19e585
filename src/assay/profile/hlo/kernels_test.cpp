#include "assay/profile/hlo/kernels.h"

#include <gtest/gtest.h>

#include "assay/profile/hlo/liveness.h"
#include "assay/testing/catalogue.h"

namespace assay::hlo {
namespace {

Module module_of(const std::string& text) {
  auto read = read_module(text, "test.hlo", **calls_of(testing::catalogue()));
  if (!read) throw InternalError(read.error().where + read.error().what);
  return std::move(*read);
}

ProgramKernels kernels_of(const Module& module) { return *program_kernels(module); }

Totals totals(const std::string& text) { return kernels_of(module_of(text)).totals; }

TEST(Kernels, ADotIsTwoFlopForEachProduct) {
  const Totals of = totals(R"(ENTRY e {
  a = f32[128,256] parameter(0)
  b = bf16[256,16] parameter(1)
  ROOT d = f32[16,128] dot(b, a), lhs_contracting_dims={0}, rhs_contracting_dims={1}
})");
  EXPECT_DOUBLE_EQ(of.matrix.value(), 2.0 * 128 * 256 * 16);
  EXPECT_DOUBLE_EQ(of.bytes.value(), 4.0 * 128 * 256 + 2.0 * 256 * 16 + 4.0 * 16 * 128);
}

TEST(Kernels, AConvolutionCountsPlacesThatFallOnItsInput) {
  // TPUs write products of heads as convolutions: a window of 32 with 31 places of padding meets the one row once.
  EXPECT_DOUBLE_EQ(totals(R"(ENTRY e {
  a = bf16[128,4096,1] parameter(0)
  b = bf16[4096,32,128] parameter(1)
  ROOT c = bf16[128,32,128] convolution(a, b), window={size=32 pad=31_31 rhs_reversal=1}, dim_labels=bf0_i0o->b0f
})")
                       .matrix.value(),
                   2.0 * 128 * 4096 * 32 * 128);
  // 4 x 4 results of a 3 x 3 window over 4 x 4 inputs with padding: 10 of 12 places in each direction.
  EXPECT_DOUBLE_EQ(totals(R"(ENTRY e {
  a = f32[1,4,4,8] parameter(0)
  b = f32[3,3,8,16] parameter(1)
  ROOT c = f32[1,4,4,16] convolution(a, b), window={size=3x3 pad=1_1x1_1}, dim_labels=b01f_01io->b01f
})")
                       .matrix.value(),
                   2.0 * 10 * 10 * 8 * 16);
}

constexpr const char* loop = R"(HloModule l
body {
  p = (s32[], f32[64,64]) parameter(0)
  i = s32[] get-tuple-element(p), index=0
  x = f32[64,64] get-tuple-element(p), index=1
  one = s32[] constant(2)
  j = s32[] add(i, one)
  d = f32[64,64] dot(x, x), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  ROOT t = (s32[], f32[64,64]) tuple(j, d)
}
cond {
  p = (s32[], f32[64,64]) parameter(0)
  i = s32[] get-tuple-element(p), index=0
  n = s32[] constant(9)
  ROOT c = pred[] compare(i, n), direction=LT
}
ENTRY e {
  x = f32[64,64] parameter(0)
  zero = s32[] constant(0)
  t = (s32[], f32[64,64]) tuple(zero, x)
  w = (s32[], f32[64,64]) while(t), condition=cond, body=body
  ROOT r = f32[64,64] get-tuple-element(w), index=1
})";

TEST(Kernels, LoopsMultiplyTheirBodies) {
  const ProgramKernels of = kernels_of(module_of(loop));
  EXPECT_EQ(of.unknown_loops, 0);
  EXPECT_DOUBLE_EQ(of.totals.matrix.value(), 5.0 * 2.0 * 64 * 64 * 64);  // 0, 2, 4, 6, 8
  EXPECT_DOUBLE_EQ(of.once.matrix.value(), 2.0 * 64 * 64 * 64);
}

TEST(Kernels, ALoopWithoutKnownTripsCountsOnce) {
  std::string text(loop);
  const std::string_view known = "zero = s32[] constant(0)";
  text.replace(text.find(known), known.size(), "zero = s32[] parameter(1)");
  const ProgramKernels of = kernels_of(module_of(text));
  EXPECT_EQ(of.unknown_loops, 1);
  EXPECT_DOUBLE_EQ(of.totals.matrix.value(), of.once.matrix.value());
}

TEST(Kernels, AFusionReadsWhatItCutsOutAndWritesWhatItUpdates) {
  const Totals of = totals(R"(HloModule f
cut {
  p = f32[8,128] parameter(0)
  i = s32[] parameter(1)
  z = s32[] constant(0)
  ROOT d = f32[1,128] dynamic-slice(p, i, z), dynamic_slice_sizes={1,128}
}
put {
  p = f32[8,128] parameter(0)
  u = f32[1,128] parameter(1)
  i = s32[] parameter(2)
  z = s32[] constant(0)
  n = f32[1,128] negate(u)
  ROOT d = f32[8,128] dynamic-update-slice(p, n, i, z)
}
ENTRY e {
  x = f32[8,128] parameter(0)
  i = s32[] parameter(1)
  a = f32[1,128] fusion(x, i), kind=kLoop, calls=cut
  ROOT b = f32[8,128] fusion(x, a, i), kind=kLoop, calls=put
})");
  EXPECT_DOUBLE_EQ(of.bytes.value(), (512.0 + 4.0 + 512.0) + (512.0 + 4.0 + 512.0));
  EXPECT_DOUBLE_EQ(of.element_wise.value(), 128.0);
}

TEST(Kernels, WhatIsNotFusedIsGrouped) {
  // One kernel of two operations: x is read, the sum is written; the broadcast costs nothing.
  const ProgramKernels of = kernels_of(module_of(R"(ENTRY e {
  x = f32[1024] parameter(0)
  c = f32[] constant(2)
  b = f32[1024] broadcast(c), dimensions={}
  m = f32[1024] multiply(x, b)
  ROOT a = f32[1024] add(m, x)
})"));
  ASSERT_EQ(of.kernels.size(), 1u);
  EXPECT_DOUBLE_EQ(of.totals.bytes.value(), 2.0 * 4096);
  EXPECT_DOUBLE_EQ(of.totals.element_wise.value(), 2048.0);
}

TEST(Kernels, ArraysInVectorMemoryDoNotCrossMainMemory) {
  EXPECT_DOUBLE_EQ(totals(R"(ENTRY e {
  x = f32[8,128]{1,0:T(8,128)} parameter(0)
  ROOT a = f32[8,128]{1,0:T(8,128)S(1)} negate(x)
})")
                       .bytes.value(),
                   4096.0);
}

TEST(Kernels, CollectivesHaveGroupsAndPatterns) {
  const ProgramKernels of = kernels_of(module_of(R"(HloModule c, num_partitions=8
sum {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT s = f32[] add(a, b)
}
ENTRY e {
  x = f32[64,8] parameter(0)
  i = s32[] parameter(1)
  r = f32[64,8] all-reduce(x), replica_groups=[2,4]<=[8], to_apply=sum
  z = s32[] constant(0)
  d = f32[16,8] dynamic-slice(r, i, z), dynamic_slice_sizes={16,8}
  s = (f32[16,8], f32[64,8]) all-gather-start(d), replica_groups=[2,4]<=[8], dimensions={0}
  g = f32[64,8] all-gather-done(s)
  ROOT p = f32[64,8] collective-permute(g), source_target_pairs={{0,1},{1,0}}
})"));
  std::vector<const CollectiveCall*> calls;
  for (const ProgramKernel& kernel : of.kernels)
    if (kernel.collective) calls.push_back(&*kernel.collective);
  ASSERT_EQ(calls.size(), 3u);
  EXPECT_TRUE(calls[0]->scattered);
  EXPECT_EQ(calls[0]->size, 4);
  EXPECT_EQ(calls[1]->kind, program::Collective::all_gather);
  EXPECT_EQ(calls[1]->operand, Bytes(512.0));
  EXPECT_EQ(calls[1]->result, Bytes(2048.0));
  EXPECT_EQ(calls[2]->kind, program::Collective::permute);
}

TEST(Kernels, LibraryCallsAreProductsAndAttention) {
  const Totals of = totals(R"(ENTRY e {
  a = bf16[64,32] parameter(0)
  b = bf16[32,16] parameter(1)
  q = bf16[2,128,8,64] parameter(2)
  k = bf16[2,128,2,64] parameter(3)
  m = (bf16[64,16], s8[1024]) custom-call(a, b), custom_call_target="__cublas$lt$matmul", backend_config={"gemm_backend_config":{"dot_dimension_numbers":{"lhs_batch_dimensions":[],"lhs_contracting_dimensions":["1"],"rhs_batch_dimensions":[],"rhs_contracting_dimensions":["0"]}}}
  ROOT f = (bf16[2,8,128,64], u8[0]) custom-call(q, k, k), custom_call_target="__cudnn$fmhaSoftmax", backend_config={"cudnn_fmha_backend_config":{"intermediate_tensor_shape":{"dimensions":["2","8","128","128"]},"mask_type":"CAUSAL"}}
})");
  EXPECT_DOUBLE_EQ(of.matrix.value(), 2.0 * 64 * 32 * 16 + 0.5 * 4.0 * 2 * 8 * 128 * 128 * 64);
}

TEST(Kernels, CallsOfConvolutionsCountAsTheConvolutionsThatTheyAre) {
  // A 3 x 3 window over 8 x 8 places with a rim of zeros: of each dimension 22 pairs of a place and a tap are inside.
  const double flops = 2.0 * 2 * (22 * 22) * 4 * 16;
  const auto call = [](const char* operands, const char* result, const char* target) {
    return std::string("ENTRY e {\n  a = bf16[") + std::string(operands).substr(0, std::string(operands).find(';')) +
           "] parameter(0)\n  b = bf16[" + std::string(operands).substr(std::string(operands).find(';') + 1) +
           "] parameter(1)\n  ROOT c = (bf16[" + result +
           "], u8[0]) custom-call(a, b), window={size=3x3 pad=1_1x1_1}, dim_labels=b01f_o01i->b01f, "
           "custom_call_target=\"" +
           target + "\"\n}";
  };
  EXPECT_DOUBLE_EQ(totals(call("2,8,8,4;16,3,3,4", "2,8,8,16", "__cudnn$convForward")).matrix.value(), flops);
  EXPECT_DOUBLE_EQ(totals(call("2,8,8,16;16,3,3,4", "2,8,8,4", "__cudnn$convBackwardInput")).matrix.value(), flops);
  EXPECT_DOUBLE_EQ(totals(call("2,8,8,4;2,8,8,16", "16,3,3,4", "__cudnn$convBackwardFilter")).matrix.value(), flops);
}

TEST(Liveness, BuffersLiveFromWhereTheyAreMadeToTheirLastUse) {
  const Module module = module_of(R"(HloModule m, is_scheduled=true
ENTRY e {
  x = f32[256] parameter(0)
  a = f32[512] custom-call(x), custom_call_target="grow"
  b = f32[256] custom-call(a), custom_call_target="shrink"
  c = f32[256] negate(b)
  ROOT d = f32[128] custom-call(c), custom_call_target="shrink"
})");
  const ProgramMemory memory = program_memory(module, kernels_of(module));
  EXPECT_EQ(memory.arguments, Bytes(1024.0));
  EXPECT_EQ(memory.outputs, Bytes(512.0));
  EXPECT_EQ(memory.temporaries + memory.outputs, Bytes(3072.0));  // a and b; c is written over b
  EXPECT_EQ(module.entry_computation()->instructions[memory.peak_instruction].name, "b");
}

TEST(Liveness, ResultsOverParametersNeedNoMemory) {
  const Module module = module_of(R"(HloModule m, is_scheduled=true, input_output_alias={ {}: (0, {}, may-alias) }
ENTRY e {
  x = f32[256] parameter(0)
  ROOT a = f32[256] negate(x)
})");
  const ProgramMemory memory = program_memory(module, kernels_of(module));
  EXPECT_EQ(memory.peak(), Bytes(1024.0));
  EXPECT_EQ(memory.aliased, Bytes(1024.0));
}

}  // namespace
}  // namespace assay::hlo

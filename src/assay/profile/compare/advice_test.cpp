#include "assay/profile/compare/advice.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace assay::compare {
namespace {

const hardware::Catalogue& advised_catalogue() {
  static const hardware::Catalogue out = hardware::Catalogue::builtin();
  return out;
}
const trace::Vocabulary& advised_vocabulary() { return **trace::vocabulary_of(advised_catalogue()); }

MeasuredCall advised_call(std::string kernel, double microseconds, double elements = 0) {
  MeasuredCall out;
  out.kernel = out.label = kernel;
  out.category = advised_vocabulary().category(kernel).category;
  out.work = advised_vocabulary().categories[out.category].work_class;
  out.kernels = 1;
  out.known = true;
  out.elements = elements;
  out.launched = 0;
  out.duration = out.alone =
      static_cast<trace::Ticks>(microseconds * static_cast<double>(trace::ticks_per_microsecond));
  return out;
}
MeasuredCall advised_product(std::int64_t m, std::int64_t k, std::int64_t n, double microseconds) {
  MeasuredCall out = advised_call("nvjet_a", microseconds);
  out.kind = MeasuredCall::Kind::product;
  out.dims = {{m, k}, {k, n}};
  out.flops = Flops(2.0 * static_cast<double>(m * k * n));
  out.format = Dtype::bf16;
  return out;
}
MeasuredStep advised_step(std::vector<MeasuredCall> calls) {
  MeasuredStep out;
  out.name = "step";
  out.calls = std::move(calls);
  for (const MeasuredCall& one : out.calls) out.total += one.alone;
  return out;
}
std::optional<Saving> advised_saving(const MeasuredStep& measured, std::string_view id) {
  for (const Saving& one : savings_of(measured, advised_vocabulary(), nullptr))
    if (one.id == id) return one;
  return std::nullopt;
}

TEST(Savings, AFusedKernelTakesAsLongAsTheLongestThatItReplaces) {
  // Between two products 10 + 4 + 6 us; behind the second one 5 us alone, which nothing fuses with.
  const MeasuredStep measured =
      advised_step({advised_product(64, 64, 64, 9), advised_call("vectorized_elementwise_kernel", 10, 64),
                    advised_call("tanh_elementwise_kernel", 4, 64), advised_call("mul_elementwise_kernel", 6, 32),
                    advised_product(64, 64, 64, 9), advised_call("add_elementwise_kernel", 5, 64)});
  const auto found = advised_saving(measured, "compile");
  ASSERT_TRUE(found);
  EXPECT_NEAR(found->saved.in(1_us), 10.0, 1e-9);
  EXPECT_NEAR(found->least.in(1_us), 4.0, 1e-9);  // tensors of another size may need a kernel of their own
  EXPECT_GE(found->most, found->saved);
}

TEST(Savings, WhatRepeatsItselfIsOfOtherTensors) {
  std::vector<MeasuredCall> calls;
  for (int i = 0; i < 10; ++i)
    for (const char* name : {"mul_elementwise_kernel", "tanh_elementwise_kernel", "add_elementwise_kernel"})
      calls.push_back(advised_call(name, 5, 64));
  const auto found = advised_saving(advised_step(calls), "compile");
  EXPECT_NEAR(found->saved.in(1_us), 150.0 - 10 * 5.0, 1e-9);  // a kernel of 5 us for each of ten
}

TEST(Savings, EachReductionNeedsAKernel) {
  const MeasuredStep measured =
      advised_step({advised_call("reduce_kernel", 8, 64), advised_call("mul_elementwise_kernel", 2, 64),
                    advised_call("reduce_kernel", 8, 64), advised_call("add_elementwise_kernel", 2, 64)});
  EXPECT_NEAR(advised_saving(measured, "compile")->saved.in(1_us), 4.0, 1e-9);
}

TEST(Savings, WhatACompilerMadeIsCompiled) {
  MeasuredCall fused = advised_call("triton_poi_fused_add_0", 50);
  fused.fused = true;
  EXPECT_FALSE(advised_saving(
      advised_step({fused, advised_call("add_elementwise_kernel", 5), advised_call("mul_elementwise_kernel", 5)}),
      "compile"));
}

TEST(Savings, GraphsAreCapturedOnce) {
  MeasuredStep measured = advised_step({advised_call("add_elementwise_kernel", 5)});
  measured.host_gaps = 20 * trace::ticks_per_microsecond;
  measured.total += measured.host_gaps;
  ASSERT_TRUE(advised_saving(measured, "capture"));
  EXPECT_NEAR(advised_saving(measured, "capture")->saved.in(1_us), 20.0, 1e-9);
  measured.replayed_share = 0.9;
  EXPECT_FALSE(advised_saving(measured, "capture"));
  EXPECT_TRUE(advised_saving(measured, "ahead"));
}

TEST(Savings, AnOddVocabularyIsHeldAgainstOtherProducts) {
  // 2 x 64 x 64 x 1024 FLOP in 10 us; an odd size of 1001 in 40 us, at that rate 10 x 1001 / 1024 us.
  const MeasuredStep measured = advised_step({advised_product(64, 64, 1024, 10), advised_product(64, 64, 1001, 40)});
  const auto found = advised_saving(measured, "pad");
  ASSERT_TRUE(found);
  EXPECT_NEAR(found->saved.in(1_us), 40.0 - 10.0 * 1001.0 / 1024.0, 1e-9);
  EXPECT_FALSE(
      advised_saving(advised_step({advised_product(64, 64, 1024, 10), advised_product(64, 64, 1008, 40)}), "pad"));
}

TEST(Savings, ShorterFormatsOfProductsNeedAChip) {
  MeasuredCall wide = advised_product(4096, 4096, 4096, 4000);
  wide.format = Dtype::fp32;
  wide.kernel = "ampere_sgemm_128x128_nn";
  EXPECT_FALSE(advised_saving(advised_step({wide}), "formats"));
  const auto chip = advised_catalogue().chip("h100-sxm", "chip", {});
  ASSERT_TRUE(chip);
  const auto id_of = [&](const MeasuredCall& one) {
    const std::vector<Saving> all = savings_of(advised_step({one}), advised_vocabulary(), &*chip);
    return std::any_of(all.begin(), all.end(), [](const Saving& saving) { return saving.id == "formats"; });
  };
  EXPECT_TRUE(id_of(wide));
  wide.kernel = "sm80_xmma_gemm_f32f32_tf32f32_f32_nn";
  EXPECT_FALSE(id_of(wide));
}

TEST(Savings, NoneIsNegative) {
  MeasuredStep measured = advised_step({advised_product(64, 64, 1024, 10), advised_product(64, 64, 1001, 2),
                                        advised_call("Memcpy HtoD", 3), advised_call("ncclDevKernel_AllReduce", 7),
                                        advised_call("multi_tensor_apply_kernel<AdamFunctor>", 3)});
  measured.other_gaps = 1;
  for (const Saving& one : savings_of(measured, advised_vocabulary(), nullptr)) {
    EXPECT_GE(one.least, Seconds(0)) << one.id;
    EXPECT_LE(one.least, one.saved) << one.id;
    EXPECT_LE(one.saved, one.most) << one.id;
    EXPECT_TRUE(advised_vocabulary().remedy(one.id)) << one.id;
  }
}

}  // namespace
}  // namespace assay::compare

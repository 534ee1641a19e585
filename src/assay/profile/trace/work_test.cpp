#include "assay/profile/trace/work.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

namespace assay::trace {
namespace {

const Vocabulary& operations() {
  static const hardware::Catalogue catalogue = hardware::Catalogue::builtin();
  return **vocabulary_of(catalogue);
}

std::optional<Work> work(std::string_view operation, std::string inputs) {
  for (char& c : inputs)
    if (c == '|') c = '\x1f';
  return work_of(*operations().operation(operation), parse_inputs(inputs), operations());
}

TEST(Work, ABiasIsAddedOncePerElement) {
  const auto of =
      work("aten::addmm", R"([[512],[141,512],[512,512],[],[]]|["float","float","float","Scalar","Scalar"]|[])");
  EXPECT_DOUBLE_EQ(of->flops.value(), 2.0 * 141 * 512 * 512 + 141 * 512);
  EXPECT_DOUBLE_EQ(of->bytes->value(), 4.0 * (141 * 512 + 512 * 512 + 141 * 512 + 512));
}

TEST(Work, GroupsOfRowsAreMultipliedOnce) {
  const char* types = R"(["c10::BFloat16","c10::BFloat16"])";
  EXPECT_DOUBLE_EQ(work("aten::_grouped_mm", fmt::format("[[4096,512],[8,512,1024]]|{}|[]", types))->flops.value(),
                   2.0 * 4096 * 512 * 1024);
  EXPECT_DOUBLE_EQ(work("aten::bmm", fmt::format("[[8,64,512],[8,512,32]]|{}|[]", types))->flops.value(),
                   2.0 * 8 * 64 * 512 * 32);
}

TEST(Work, AGradientOfAttentionIsFiveProducts) {
  const std::string inputs =
      R"([[2,8,64,32],[2,8,64,32],[2,8,64,32],[2,8,64,32],[],[],[],[],[],[],[],[]]|["c10::Half","c10::Half","c10::Half","c10::Half"]|["","","","","","","","","","","0.","True"])";
  EXPECT_DOUBLE_EQ(work("aten::_scaled_dot_product_flash_attention_backward", inputs)->flops.value(),
                   5.0 * 2.0 * 2 * 8 * 64 * 64 * 32 / 2.0);
}

TEST(Work, ConvolutionsFollowStrideAndPadding) {
  const auto of = work(
      "aten::convolution",
      R"([[8,3,224,224],[64,3,7,7],[],[],[],[],[],[],[]]|["float","float","","ScalarList","ScalarList","ScalarList","Scalar","ScalarList","Scalar"]|["","","","[2, 2]","[3, 3]","[1, 1]","False","[0, 0]","1"])");
  EXPECT_DOUBLE_EQ(of->flops.value(), 2.0 * 8 * 64 * 112 * 112 * 3 * 7 * 7);
}

TEST(Work, UnknownTypesLeaveBytesOpenAndOddShapesEverything) {
  EXPECT_FALSE(work("aten::mm", R"([[4,8],[8,2]]|["weird","weird"]|[])")->bytes);
  EXPECT_FALSE(work("aten::mm", R"([[4,8]]|["float"]|[])"));
  EXPECT_FALSE(work("aten::mm", "not json"));
}

}  // namespace
}  // namespace assay::trace

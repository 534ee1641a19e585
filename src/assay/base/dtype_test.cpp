#include "assay/base/dtype.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <vector>

namespace assay {
namespace {

std::vector<Dtype> every_dtype() {
  std::vector<Dtype> all;
  for (const DtypeFacts& entry : all_dtypes()) all.push_back(entry.dtype);
  return all;
}

TEST(Dtype, EveryFormatReadsBackItsOwnName) {
  for (const DtypeFacts& entry : all_dtypes()) {
    const auto parsed = parse_dtype(name(entry.dtype), "--compute");
    ASSERT_TRUE(parsed) << entry.name;
    EXPECT_EQ(*parsed, entry.dtype) << entry.name;
    EXPECT_EQ(facts(entry.dtype).name, entry.name);
  }
}

TEST(Dtype, NamesOfOtherToolsAreUnderstood) {
  const std::pair<const char*, Dtype> spellings[] = {
      {"float64", Dtype::fp64}, {"f32", Dtype::fp32},          {"bfloat16", Dtype::bf16}, {"half", Dtype::fp16},
      {"e4m3", Dtype::fp8},     {"fp8_e5m2", Dtype::fp8},      {"mxfp6", Dtype::fp6},     {"nvfp4", Dtype::fp4},
      {"s8", Dtype::int8},      {"float8_e4m3fn", Dtype::fp8}, {"uint4", Dtype::int4},    {"i32", Dtype::int32}};
  for (const auto& [text, dtype] : spellings) {
    const auto parsed = parse_dtype(text, "--kv");
    ASSERT_TRUE(parsed) << text;
    EXPECT_EQ(*parsed, dtype) << text;
  }
}

TEST(Dtype, AnUnknownFormatNamesTheNearest) {
  const auto parsed = parse_dtype("bf61", "--compute");
  ASSERT_FALSE(parsed);
  EXPECT_EQ(parsed.error().where, "--compute");
  EXPECT_EQ(parsed.error().what, "unknown dtype \"bf61\"");
  EXPECT_TRUE(parsed.error().hint.starts_with("did you mean bf16")) << parsed.error().hint;
}

TEST(Dtype, NamesAreExact) {
  for (const char* text : {"", " bf16", "bf16 ", "BF16", "bf16\n", "bf"}) EXPECT_FALSE(parse_dtype(text, "")) << text;
}

TEST(Dtype, StorageIsNotRoundedUp) {
  // 3 int4 are 3 x 4 / 8 = 1.5 bytes; 1000 fp6 are 1000 x 6 / 8 = 750 bytes.
  EXPECT_EQ(storage(Dtype::int4, 3), Bytes(1.5));
  EXPECT_EQ(storage(Dtype::fp6, 1000), 750_B);
  EXPECT_EQ(storage(Dtype::bf16, 1024), 2_KiB);
  EXPECT_EQ(storage(Dtype::tf32, 1), 4_B);  // stored as fp32
}

TEST(Dtype, AProductIsComputedInTheWiderFormat) {
  EXPECT_EQ(product_dtype(Dtype::bf16, Dtype::fp8), Dtype::bf16);
  EXPECT_EQ(product_dtype(Dtype::int4, Dtype::int8), Dtype::int8);
  EXPECT_EQ(product_dtype(Dtype::fp32, Dtype::fp64), Dtype::fp64);
}

TEST(Dtype, AnIntegerTimesAFloatIsComputedInTheFloat) {
  EXPECT_EQ(product_dtype(Dtype::int8, Dtype::bf16), Dtype::bf16);
  EXPECT_EQ(product_dtype(Dtype::fp8, Dtype::int32), Dtype::fp8);
}

RC_GTEST_PROP(Dtype, AProductIsAsWideInEitherOrder, ()) {
  const Dtype a = *rc::gen::elementOf(every_dtype()), b = *rc::gen::elementOf(every_dtype());
  RC_ASSERT(facts(product_dtype(a, b)).bits == facts(product_dtype(b, a)).bits);
  RC_ASSERT(product_dtype(a, a) == a);
}

}  // namespace
}  // namespace assay

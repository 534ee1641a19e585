#include "assay/base/number_format.h"

#include <gtest/gtest.h>

namespace assay {
namespace {

TEST(NumberFormat, ScalesOfBlocksAreCounted) {
  // 8 bits per 32, 8 per 16, 16 per 128, 16 + 4 per 128, 32 per 128 x 128.
  const std::pair<const char*, double> formats[] = {
      {"bf16", 16.0}, {"int4", 4.0},        {"mxfp8", 8.25},         {"mxfp4", 4.25},
      {"nvfp4", 4.5}, {"int4-g128", 4.125}, {"int4-g128z", 4.15625}, {"fp8-128x128", 8.001953125}};
  for (const auto& [text, bits] : formats) {
    const auto format = parse_number_format(text, "--weights");
    ASSERT_TRUE(format) << text;
    EXPECT_EQ(format->bits(), bits) << text;
    EXPECT_EQ(name(*format), text);
    EXPECT_EQ(storage(*format, 4096), Bytes(4096 * bits / 8)) << text;
  }
}

TEST(NumberFormat, ADtypeIsAPlainFormat) {
  const NumberFormat format = Dtype::fp8;
  EXPECT_TRUE(format.is_plain());
  EXPECT_EQ(storage(format, 3), storage(Dtype::fp8, 3));
}

TEST(NumberFormat, WhatIsNoFormatIsRefused) {
  for (const char* text : {"", "int4-", "int4-g", "int4-g0", "int4-gz", "int4-g1.5", "fp8-128", "fp8-0x128", "fp8-x",
                           "none-g128", "int4-g-1", "fp8-1e9x1"})
    EXPECT_FALSE(parse_number_format(text, "--weights")) << text;
}

}  // namespace
}  // namespace assay

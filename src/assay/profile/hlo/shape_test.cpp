#include "assay/profile/hlo/shape.h"

#include <gtest/gtest.h>

#include <set>

namespace assay::hlo {
namespace {

Shape shape(std::string_view text) { return *parse_shape(text, "shape"); }

std::int64_t offset(std::string_view text, std::vector<std::int64_t> index) {
  return element_offset(shape(text), index);
}

TEST(Shape, ReadsBackAsItIsWritten) {
  for (const char* text : {"bf16[32,32,4096]{2,1,0:T(8,128)(2,1)S(1)}", "f32[3,5]{1,0:T(2,2)}", "s32[]", "f32[8]{0}",
                           "(f32[8]{0}, (s32[], pred[2]{0}))", "u4[16]{0}"})
    EXPECT_EQ(shape_text(shape(text)), text);
  EXPECT_EQ(shape_text(shape("u4[1024,512]{1,0:E(4)}")), "u4[1024,512]{1,0}");
  EXPECT_EQ(shape("f32[<=8,4]").dims, (std::vector<std::int64_t>{8, 4}));
}

TEST(Shape, MemorySpacesAreTold) {
  EXPECT_EQ(memory_name(shape("bf16[32,32,4096]{2,1,0:T(8,128)(2,1)S(1)}").layout.memory_space), "VMEM");
  EXPECT_EQ(memory_name(shape("bf16[32]{0}").layout.memory_space), "HBM");
  EXPECT_EQ(memory_name(shape("bf16[32]{0:S(5)}").layout.memory_space), "host");
}

TEST(Shape, BytesCountWholeElements) {
  EXPECT_EQ(shape("bf16[32,32,4096]").bytes(), Bytes(8388608.0));
  EXPECT_EQ(shape("s4[3]").bytes(), Bytes(2.0));
  EXPECT_EQ(shape("(f32[4], pred[4])").bytes(), Bytes(20.0));
  EXPECT_EQ(shape("token[]").bytes(), Bytes(0.0));
}

TEST(Layout, TilesPadDimensions) {
  const Shape padded = shape("f32[3,5]{1,0:T(2,2)}");
  EXPECT_EQ(padded_dims(padded), (std::vector<std::int64_t>{4, 6}));
  EXPECT_EQ(padded.padded_bytes(), Bytes(96.0));
  // The tile is of the two most minor dimensions, whichever these are.
  EXPECT_EQ(padded_dims(shape("f32[3,5]{0,1:T(2,4)}")), (std::vector<std::int64_t>{4, 6}));
  EXPECT_EQ(shape("s32[]{:T(128)}").padded_bytes(), Bytes(512.0));
  EXPECT_EQ(shape("bf16[1,128]{1,0:T(8,128)(2,1)}").padded_bytes(), Bytes(2048.0));
}

TEST(Layout, ElementsLieTileByTile) {
  // Rows of tiles have 3 tiles of 4 elements: (2,4) is in tile (1,2), at (0,0) of it: 12 + 2 * 4.
  EXPECT_EQ(offset("f32[3,5]{1,0:T(2,2)}", {2, 4}), 20);
  EXPECT_EQ(offset("f32[3,5]{1,0}", {2, 4}), 14);
  EXPECT_EQ(offset("f32[3,5]{0,1}", {2, 4}), 14);
  EXPECT_EQ(offset("f32[3,5]{0,1}", {2, 1}), 5);
  // Pairs of rows are interleaved by the second tile.
  const char* packed = "bf16[4,8]{1,0:T(2,4)(2,1)}";
  EXPECT_EQ(offset(packed, {0, 1}), 2);
  EXPECT_EQ(offset(packed, {1, 0}), 1);
  EXPECT_EQ(offset(packed, {0, 4}), 8);
  EXPECT_EQ(offset(packed, {3, 7}), 31);
}

TEST(Layout, EveryElementHasAPlaceOfItsOwn) {
  for (const char* text :
       {"f32[3,5]{1,0:T(2,2)}", "bf16[5,7,9]{0,2,1:T(4,4)(2,1)}", "f32[6]{0:T(4)}", "f32[3]{0:T(2,4)}"}) {
    const Shape of = shape(text);
    std::set<std::int64_t> places;
    std::vector<std::int64_t> index(of.dims.size(), 0);
    for (auto left = static_cast<std::int64_t>(of.elements()); left > 0; --left) {
      places.insert(element_offset(of, index));
      for (std::size_t d = index.size(); d-- > 0;) {
        if (++index[d] < of.dims[d]) break;
        index[d] = 0;
      }
    }
    EXPECT_EQ(static_cast<double>(places.size()), of.elements()) << text;
    EXPECT_LT(static_cast<double>(*places.rbegin()), of.padded_bytes().value() * 8.0 / of.element->bits) << text;
  }
}

TEST(Shape, FaultsHaveAPlaceAndARemedy) {
  for (const char* text : {"", "f33[8]", "f32[8", "f32[8]{1}", "f32[8,8]{0}", "f32[8,8]{0,0}", "f32[8]{0:T(0)}",
                           "f32[-1]", "f32", "(f32[8]", "f32[8]x"}) {
    const auto read = parse_shape(text, "shape");
    ASSERT_FALSE(read) << text;
    EXPECT_EQ(read.error().where.substr(0, 8), "shape:1:") << text;
    EXPECT_FALSE(read.error().hint.empty()) << text;
  }
}

}  // namespace
}  // namespace assay::hlo

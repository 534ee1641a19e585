#include "assay/program/plan/notation.h"

#include <gtest/gtest.h>

namespace assay::plan {
namespace {

const program::Mesh cube_mesh{{{"X", 4}, {"Y", 2}, {"Z", 2}}};
const DimensionSizes cube_sizes{{"I", 64}, {"J", 128}, {"K", 256}};

TEST(Notation, RoundTrips) {
  for (const char* text : {"A[I_XY, J]", "A[I_X, J] -> A[I, J_X]", "A[I_X, J_Y] * B[J_Y, K] -> C[I_X, K] {U_Z}",
                           "A[I, J] {U_ZX}", "W[8_X, 16]"}) {
    const auto parsed = parse_sharding(text, cube_mesh, cube_sizes, Dtype::bf16);
    ASSERT_TRUE(parsed) << text << ": " << parsed.error().what;
    const std::string printed = expression_text(cube_mesh, *parsed);
    const auto again = parse_sharding(printed, cube_mesh, cube_sizes, Dtype::bf16);
    ASSERT_TRUE(again) << printed;
    EXPECT_EQ(expression_text(cube_mesh, *again), printed);
  }
}

TEST(Notation, WordsMayHaveAPlusBetweenThem) {
  const program::Mesh mesh{{{"dp", 2}, {"fsdp", 2}, {"tp", 2}}};
  for (const char* text : {"A[I_dpfsdp, J_tp]", "A[I_dp+fsdp, J_tp]"}) {
    const auto parsed = parse_sharding(text, mesh, cube_sizes, Dtype::bf16);
    ASSERT_TRUE(parsed) << text << ": " << parsed.error().what;
    EXPECT_EQ(expression_text(mesh, *parsed), "A[I_dp+fsdp, J_tp]");
  }
  EXPECT_FALSE(parse_sharding("A[I_dp+, J]", mesh, cube_sizes, Dtype::bf16));
  EXPECT_FALSE(parse_sharding("A[I_+dp, J]", mesh, cube_sizes, Dtype::bf16));
}

TEST(Notation, SubscriptOrderIsTraversalOrder) {
  const auto a = parse_sharding("A[I_YX, J]", cube_mesh, cube_sizes, Dtype::bf16);
  ASSERT_TRUE(a);
  EXPECT_EQ(a->left.sharding.dims[0].axes(), (std::vector<int>{1, 0}));
}

struct BadCase {
  const char* text;
  const char* what;
  std::size_t character;
};

TEST(Notation, ErrorsPointAtTheCharacter) {
  const BadCase cases[] = {
      {"A[I_X, J_X]", "used twice", 10}, {"A[I_W, J]", "not an axis", 5}, {"A[I_X, J", "] is missing", 9},
      {"A[I_X, Q]", "has no size", 8},   {"A I", "[ is missing", 3},      {"A[I_, J]", "axis is missing", 5},
      {"A[I] {U_I}", "not an axis", 9},  {"A[I] extra", "unexpected", 6}, {"A[I_X] -> A[J]", "keeps the", 11},
      {"A[I, I]", "appears twice", 6},   {"", "tensor is missing", 1}};
  for (const BadCase& bad : cases) {
    const auto parsed = parse_sharding(bad.text, cube_mesh, cube_sizes, Dtype::bf16);
    ASSERT_FALSE(parsed) << bad.text;
    EXPECT_NE(parsed.error().what.find(bad.what), std::string::npos) << bad.text << ": " << parsed.error().what;
    EXPECT_NE(parsed.error().where.find("character " + std::to_string(bad.character)), std::string::npos)
        << bad.text << ": " << parsed.error().where;
  }
}

}  // namespace
}  // namespace assay::plan

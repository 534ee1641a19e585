#include "assay/engine/kernels/product.h"

#include <gtest/gtest.h>

namespace assay::engine {
namespace {

TEST(Product, IsTheMatrixProductByHand) {
  // [1 2; 3 4] * [5 6; 7 8] = [19 22; 43 50]
  const Array a{{2, 2}, {1, 2, 3, 4}}, b{{2, 2}, {5, 6, 7, 8}};
  EXPECT_EQ(product(a, {"I", "J"}, b, {"J", "K"}, {"I", "K"}).values, (std::vector<double>{19, 22, 43, 50}));
  EXPECT_EQ(product(a, {"I", "J"}, b, {"J", "K"}, {"K", "I"}).values, (std::vector<double>{19, 43, 22, 50}));
  EXPECT_EQ(product_by_loops(a, {"I", "J"}, b, {"J", "K"}, {"I", "K"}).values, (std::vector<double>{19, 22, 43, 50}));
}

TEST(Product, SumsOverEverythingWhenNothingIsKept) {
  const Array a{{2, 2}, {1, 2, 3, 4}};
  const Array sum = product(a, {"I", "J"}, a, {"I", "J"}, {});
  EXPECT_EQ(sum.shape, Shape{});
  EXPECT_EQ(sum.values, std::vector<double>{30.0});
  EXPECT_EQ(product_by_loops(a, {"I", "J"}, a, {"I", "J"}, {}), sum);
}

TEST(Product, BatchAndSeveralContractedDimensionsAgreeWithLoops) {
  const Array a = random_integers({3, 4, 2, 5}, 1), b = random_integers({5, 2, 3, 6}, 2);
  const DimensionNames left{"I", "J", "B", "L"}, right{"L", "B", "I", "K"}, result{"K", "B", "J"};
  EXPECT_EQ(product(a, left, b, right, result), product_by_loops(a, left, b, right, result));
}

}  // namespace
}  // namespace assay::engine

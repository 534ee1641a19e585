#include "assay/engine/kernels/blas.h"

#include <gtest/gtest.h>

#include <array>

namespace assay::engine {
namespace {

// [1 2 3; 4 5 6] [1 0; 0 1; 1 1] = [1+3 2+3; 4+6 5+6]
template <class T>
void expect_product() {
  const std::array<T, 6> a{1, 2, 3, 4, 5, 6}, b{1, 0, 0, 1, 1, 1};
  std::array<T, 4> c{};
  multiply_matrices(2, 2, 3, {a.data()}, {b.data()}, c.data());
  EXPECT_EQ(c, (std::array<T, 4>{4, 5, 10, 11}));
}

TEST(Blas, MultipliesRowsByColumns) {
  expect_product<float>();
  expect_product<double>();
}

TEST(Blas, SaysWhatItIs) { EXPECT_NE(blas_configuration().find("OpenBLAS"), std::string::npos); }

TEST(Blas, ALibraryThatIsNotThereIsSaidWithItsRemedy) {
  EXPECT_TRUE(check_blas());
  const auto found = check_blas("libno-such-library.so.0");
  ASSERT_FALSE(found);
  EXPECT_EQ(found.error().kind, Error::Kind::missing);
  EXPECT_NE(found.error().hint.find("install OpenBLAS"), std::string::npos);
}

}  // namespace
}  // namespace assay::engine

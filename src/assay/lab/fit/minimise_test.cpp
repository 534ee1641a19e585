#include "assay/lab/fit/minimise.h"

#include <gtest/gtest.h>

#include <cmath>

namespace assay::validate {
namespace {

TEST(Minimise, FindsTheBottomOfAValleyWithinItsBounds) {
  double x = 0.5, y = 2.0;
  const double found = minimise({fit(x, 0.01, 100.0), fit(y, 0.01, 5.0)}, [&] {
    const double a = std::log(x / 3.0), b = std::log(y / 9.0) + 0.5 * a;
    return a * a + b * b;
  });
  EXPECT_NEAR(y, 5.0, 1e-6);  // the bound
  EXPECT_LT(found, 0.4);
  double z = 0.1;
  minimise({fit(z, 0.01, 10.0)}, [&] { return std::abs(std::log(z / 2.0)); });
  EXPECT_NEAR(z, 2.0, 1e-3);
}

}  // namespace
}  // namespace assay::validate

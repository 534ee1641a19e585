#include "assay/predict/search/divisors.h"

#include <gtest/gtest.h>

namespace assay::search {
namespace {

TEST(Divisors, AreAllNumbersThatDivide) {
  for (std::int64_t n = 1; n <= 1000; ++n) {
    std::vector<std::int64_t> tried;
    for (std::int64_t d = 1; d <= n; ++d)
      if (n % d == 0) tried.push_back(d);
    EXPECT_EQ(divisors(n), tried);
    while (tried.back() > 20) tried.pop_back();
    EXPECT_EQ(divisors(n, 20), tried);
  }
}

// 2^40 has 41; 10^12 = 2^12 5^12 has 13 x 13; 999999999989 is prime.
TEST(Divisors, OfLargeNumbers) {
  EXPECT_EQ(divisors(std::int64_t{1} << 40).size(), 41u);
  EXPECT_EQ(divisors(1'000'000'000'000).size(), 169u);
  EXPECT_EQ(divisors(999'999'999'989), (std::vector<std::int64_t>{1, 999'999'999'989}));
}

}  // namespace
}  // namespace assay::search

#include "assay/predict/search/divisors.h"

#include <algorithm>

namespace assay::search {

std::vector<std::int64_t> divisors(std::int64_t n, std::int64_t most) {
  std::vector<std::int64_t> all;
  if (n < 1 || most < 1) return all;
  all.push_back(1);
  const auto multiply_by = [&](std::int64_t prime) {
    for (std::size_t from = 0; n % prime == 0; n /= prime) {
      const std::size_t until = all.size();
      for (; from < until; ++from)
        if (all[from] <= most / prime) all.push_back(all[from] * prime);
    }
  };
  for (std::int64_t prime = 2; prime <= most && prime * prime <= n; ++prime) multiply_by(prime);
  if (n > 1 && n <= most) multiply_by(n);
  std::sort(all.begin(), all.end());
  return all;
}

}  // namespace assay::search

// Numbers that divide a number: the degrees of parallelism that a search may try.
#pragma once
#include <cstdint>
#include <limits>
#include <vector>

namespace assay::search {

/// The divisors up to `most`, in ascending order; without it, all.
std::vector<std::int64_t> divisors(std::int64_t n, std::int64_t most = std::numeric_limits<std::int64_t>::max());

}  // namespace assay::search

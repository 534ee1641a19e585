// Numbers that divide a number: the degrees of parallelism that a search may try.
#pragma once
#include <cstdint>
#include <vector>

namespace assay::search {

/// All divisors, in ascending order.
std::vector<std::int64_t> divisors(std::int64_t n);

}  // namespace assay::search

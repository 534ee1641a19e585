// Which instructions run together as one kernel. A compiled module says so by its fusions. One that is not yet fused is
// grouped as a fusing compiler would: element-wise work joins its only reader, broadcasts are made where they are read.
#pragma once
#include <cstdint>
#include <vector>

#include "assay/profile/hlo/module.h"
#include "assay/profile/hlo/work.h"

namespace assay::hlo {

inline constexpr std::uint32_t no_kernel = 0xFFFFFFFF;

struct Grouping {
  std::vector<std::uint32_t> kernel;  ///< of each instruction, the last one of its kernel; none for views and the like
  std::vector<bool> in_place = {};    ///< made by each kernel that reads it; empty: none is
};

/// Whether the module has fusions.
bool is_fused(const Module& module);
Grouping grouping(const Computation& computation, const Users& users, bool fused);
/// Where the bytes of a value lie: behind views and what is made where it is read.
std::uint32_t source_of(const Computation& computation, const Grouping& groups, std::uint32_t value);

}  // namespace assay::hlo

// Places arrays in one range of memory: those that are never in use at the same time may share bytes.
#pragma once
#include <cstdint>
#include <vector>

namespace assay::engine {

/// An array of `bytes`, in use from task `first` to task `last`, both included.
struct Lifetime {
  std::int64_t bytes = 0;
  std::int64_t first = 0, last = 0;
};

struct MemoryPlan {
  std::vector<std::int64_t> offsets;  ///< by array, multiples of `alignment`
  std::int64_t bytes = 0;             ///< of the whole range

  static constexpr std::int64_t alignment = 256;
};

/// First fit, in the order in which arrays come into use.
MemoryPlan plan_memory(const std::vector<Lifetime>& arrays);

}  // namespace assay::engine

#include "assay/engine/cuda/memory_plan.h"

#include <algorithm>
#include <map>
#include <numeric>

namespace assay::engine {

MemoryPlan plan_memory(const std::vector<Lifetime>& arrays) {
  MemoryPlan plan;
  plan.offsets.assign(arrays.size(), 0);
  std::vector<std::size_t> order(arrays.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) { return arrays[a].first < arrays[b].first; });
  std::map<std::int64_t, std::size_t> placed;  // in use, by offset
  for (const std::size_t i : order) {
    if (arrays[i].bytes == 0) continue;
    for (auto other = placed.begin(); other != placed.end();)
      other = arrays[other->second].last < arrays[i].first ? placed.erase(other) : std::next(other);
    const auto rounded = [](std::int64_t bytes) {
      return (bytes + MemoryPlan::alignment - 1) / MemoryPlan::alignment * MemoryPlan::alignment;
    };
    std::int64_t offset = 0;
    for (const auto& [start, other] : placed) {
      if (start >= offset + rounded(arrays[i].bytes)) break;
      offset = std::max(offset, start + rounded(arrays[other].bytes));
    }
    plan.offsets[i] = offset;
    placed[offset] = i;
    plan.bytes = std::max(plan.bytes, offset + rounded(arrays[i].bytes));
  }
  return plan;
}

}  // namespace assay::engine

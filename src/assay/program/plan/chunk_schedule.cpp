#include "assay/program/plan/chunk_schedule.h"

#include <algorithm>

namespace assay::plan {

ChunkSchedule chunk_schedule(ChunkOrder order, std::int64_t chunks, Seconds product, Seconds collective) {
  const Seconds each = product / static_cast<double>(chunks);
  const Seconds hop = chunks > 1 ? collective / static_cast<double>(chunks - 1) : Seconds();
  ChunkSchedule out;
  Seconds multiplied, moved;  // when either resource is free again
  for (std::int64_t i = 0; i < chunks; ++i) {
    if (order == ChunkOrder::gather_first) {
      if (i > 0) {
        out.hops.push_back({moved, moved + hop});
        moved += hop;
      }
      const Seconds start = std::max(multiplied, moved);
      out.products.push_back({start, start + each});
      multiplied = start + each;
    } else {
      out.products.push_back({multiplied, multiplied + each});
      multiplied += each;
      if (i + 1 == chunks) continue;  // the device keeps the last chunk's sums
      const Seconds start = std::max(multiplied, moved);
      out.hops.push_back({start, start + hop});
      moved = start + hop;
    }
  }
  out.end = std::max(multiplied, moved);
  return out;
}

}  // namespace assay::plan

// A product that overlaps with its collective: both are cut into chunks, and one travels while another is multiplied.
#pragma once
#include <cstdint>
#include <vector>

#include "assay/base/units.h"

namespace assay::plan {

/// Which comes first for a chunk.
enum class ChunkOrder {
  gather_first,  ///< the all-gather brings a chunk's operand; the device's own chunk is there from the start
  reduce_after   ///< the reduce-scatter takes a chunk's partial sums away once they are there
};

struct ChunkSpan {
  Seconds start, end;
};

struct ChunkSchedule {
  std::vector<ChunkSpan> hops;      ///< hops of the collective: one fewer than chunks
  std::vector<ChunkSpan> products;  ///< one for each chunk
  Seconds end;
};

/// Cuts both into as many chunks as the collective has devices; each hop and each product takes an equal part.
ChunkSchedule chunk_schedule(ChunkOrder order, std::int64_t chunks, Seconds product, Seconds collective);

}  // namespace assay::plan

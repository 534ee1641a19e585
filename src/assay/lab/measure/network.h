// Collectives between the ranks of a run, as the engine of `assay run` does them: by kind, size and group.
#pragma once
#include "assay/engine/transport.h"
#include "assay/lab/measure/grid.h"
#include "assay/lab/measure/rows.h"

namespace assay::measure {

/// A collective of one group alone, and of two groups at the same time.
struct Contention {
  std::string op;
  std::int64_t bytes = 0, ranks = 0;
  Seconds alone, together;
};

struct NetworkMeasurement {
  std::vector<MeasuredRow> rows;  ///< the time of the slowest rank
  std::vector<Contention> contention;
  std::vector<Seconds> own_times;  ///< by rank, of the same work on all at once: stragglers take longer
};

/// Groups of 2, 3, ... 8, 16, ... ranks from the first one on, and all of them. To be called by all ranks; the first
/// one has the rows.
NetworkMeasurement measure_network(engine::Transport& ranks, Extent extent);

}  // namespace assay::measure

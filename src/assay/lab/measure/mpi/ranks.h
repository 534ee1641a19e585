// Measures collectives between the ranks of one MPI run. Standard library and MPI only, see rows.h.
#pragma once
#include "assay/lab/measure/grid.h"
#include "assay/lab/measure/rows.h"

namespace assay::measure {

/// Rows `all_gather`, `reduce_scatter`, `all_reduce` and `all_to_all` in fp32, by size of the whole array. A time is
/// the slowest rank's, after a barrier; medians are over many calls. Called by every rank between MPI_Init and
/// MPI_Finalize; the first rank's result counts.
Measurement measure_ranks(Extent extent);

}  // namespace assay::measure

// assay-measure-mpi: measures collectives between the ranks it runs on and prints the rows as CSV;
// `assay measure` runs it: mpirun -n 2 assay-measure-mpi [--quick].
#include <mpi.h>

#include <cstdio>
#include <cstring>

#include "assay/lab/measure/mpi/ranks.h"

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  assay::measure::Extent extent = assay::measure::Extent::full;
  for (int i = 1; i < argc; ++i)
    if (std::strcmp(argv[i], "--quick") == 0) extent = assay::measure::Extent::quick;
  const assay::measure::Measurement measured = assay::measure::measure_ranks(extent);
  int rank = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  if (rank == 0) std::fputs(assay::measure::rows_text(measured).c_str(), stdout);
  MPI_Finalize();
  return measured.rows.empty() ? 1 : 0;
}

// Where no library can be loaded there are no other processes.
#include "assay/engine/ranks/mpi.h"

namespace assay::engine {

Result<std::unique_ptr<Ranks>> connect_mpi(const std::string&, Seconds) {
  return fail("--engine mpi", "there is no MPI here", "use --engine virtual", Error::Kind::missing);
}

std::vector<int> own_cores() { return {0}; }

}  // namespace assay::engine

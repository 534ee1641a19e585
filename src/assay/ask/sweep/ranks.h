// One command, started many times over by mpirun or srun.
#pragma once
#include <string>

namespace assay::sweep {

/// Which of the processes of one launch this is.
struct Ranks {
  int rank = 0, count = 1;
  std::string launch;  ///< the same for all ranks, and another one for every launch
};

}  // namespace assay::sweep

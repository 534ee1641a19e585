// Memory of a program over time: each value has a buffer from where it is made to where it is last used.
#pragma once
#include <vector>

#include "assay/profile/hlo/kernels.h"

namespace assay::hlo {

struct LiveBuffer {
  std::uint32_t computation = 0, instruction = 0;
  Bytes bytes;
};

struct ProgramMemory {
  Bytes arguments;                     ///< parameters, which live throughout
  Bytes outputs;                       ///< results that are not written over parameters
  Bytes aliased;                       ///< results that are
  Bytes temporaries;                   ///< at their peak
  Bytes host;                          ///< parameters in the memory of the host
  std::vector<Bytes> over_time;        ///< temporaries and outputs at each instruction of the entry
  std::vector<LiveBuffer> at_peak;     ///< temporaries and outputs at the peak, the largest first
  std::uint32_t peak_instruction = 0;  ///< of the entry

  Bytes peak() const { return arguments + outputs + temporaries; }
};

/// Buffers are made in the order of the text, which is the order of execution in a scheduled module. Loops update what
/// they carry in place; element-wise kernels write over an operand that nobody needs any more. The allocator's
/// fragmentation is not counted.
ProgramMemory program_memory(const Module& module, const ProgramKernels& kernels);

}  // namespace assay::hlo

// When each step of a program runs if every resource does one thing at a time: the chip, and one network lane per set
// of mesh axes. A step starts when its inputs are ready and its lane is free; lanes keep the program's order. So
// weights are prefetched and gradients reduced in the background as far as the links allow.
#pragma once
#include <vector>

#include "assay/estimate/kernels.h"
#include "assay/network/placement.h"

namespace assay::estimate {

/// Estimated seconds of every step of a program on a placed mesh.
struct StepTimes {
  std::vector<Seconds> estimate;
};

struct ScheduledStep {
  std::int32_t step = 0;
  std::int32_t lane = 0;  ///< 0: the chip; then the network lanes
  Seconds start, end;
};

/// Time that each layer offloads to the host after its forward pass, and loads before its backward pass.
struct HostCopies {
  Seconds out, in;
};
struct ScheduledCopy {
  bool in = false;  ///< on the lane from the host
  Seconds start, end;
};

struct OverlapSchedule {
  std::vector<program::AxisSet> lanes;  ///< of the network lanes, from lane 1 on
  std::vector<ScheduledStep> steps;
  std::vector<ScheduledCopy> copies;
  Seconds end;
};

/// Runs the blocks one after the other, each once. With copies, the chip has room for two layers: a forward pass waits
/// until the layer before the last is offloaded, a backward pass until its own is loaded.
OverlapSchedule schedule_blocks(const program::Program& program, const std::vector<program::Block>& blocks,
                                const StepTimes& times, const HostCopies& copies = {});

}  // namespace assay::estimate

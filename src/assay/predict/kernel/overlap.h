// When each step of a program runs: the chip, and one network lane per set of mesh axes, each do one thing at a time. A
// pass takes its kernels, and what its collectives add to it. What is hidden of a collective runs concurrently with
// kernels, which it slows; the rest is waited for.
#pragma once
#include <vector>

#include "assay/predict/collective/placement.h"
#include "assay/predict/kernel/kernels.h"

namespace assay::kernel {

/// Estimated seconds of a step on a placed mesh.
struct StepTime {
  Seconds time;                      ///< by itself
  Seconds exposed;                   ///< that it adds to its pass: slowed kernels, and waiting; of a kernel, all of it
  Seconds copies;                    ///< of a collective: copies from and to its buffers, on the chip
  bool is_background = false;        ///< hides behind the whole pass
  std::uint32_t links = 0;           ///< of a collective: background traffic does not share them
  std::vector<std::int32_t> beside;  ///< kernels that hide it, the first ones before others
};

struct StepTimes {
  std::vector<StepTime> steps;
  double chip_share = 0;  ///< that a collective takes of the chip while it runs concurrently with kernels
};

struct ScheduledStep {
  std::int32_t step = 0;
  std::int32_t lane = 0;  ///< 0: the chip, with copies of collectives; then the network lanes
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
  std::vector<Seconds> passes;  ///< when each block ends
  Seconds end;
};

/// Runs the blocks one after the other, each once. Background traffic of a layer runs while the one before or after it
/// computes, so that each pass has that of its neighbour; what is exposed of it is waited for at the end of the pass.
/// With copies, the chip has room for two layers: a forward pass waits until the layer before the last is offloaded, a
/// backward pass until its own is loaded.
OverlapSchedule schedule_blocks(const program::Program& program, const std::vector<program::Block>& blocks,
                                const StepTimes& times, const HostCopies& copies = {});

}  // namespace assay::kernel

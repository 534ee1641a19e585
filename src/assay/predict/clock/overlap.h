// When each step of a program runs: the chip, and one network lane per set of mesh axes, each do one thing at a time. A
// pass takes its kernels, and what its collectives add to it. What is hidden of a collective runs concurrently with
// kernels, which it slows; the rest is waited for.
#pragma once
#include <vector>

#include "assay/program/form/program.h"

namespace assay::clock {

/// Estimated seconds of a step on a placed mesh.
struct StepTime {
  Seconds time;                ///< by itself
  Seconds exposed;             ///< that it adds to its pass; of a kernel, all of it
  Seconds waited;              ///< of a collective: that it adds if the pass does not wait for the host meanwhile
  Seconds copies;              ///< of a collective: copies from and to its buffers, on the chip
  bool is_background = false;  ///< hides behind the whole pass
  std::uint32_t links = 0;     ///< of a collective: background traffic does not share them
  std::vector<std::int32_t> hidden_by;  ///< kernels that hide it, the first ones before others
  std::int32_t part_of = -1;            ///< the step that has the time of several: fused products, a bucket of weights
  std::vector<std::int32_t> parts;      ///< of such a step: the others
};

struct StepTimes {
  std::vector<StepTime> steps;
  std::vector<Seconds> host_waits;  ///< by block: what its kernels wait for the host, in all
  double chip_share = 0;            ///< that a collective takes of the chip while it runs concurrently with kernels
};

struct ScheduledStep {
  std::int32_t step = 0;
  std::int32_t lane = 0;  ///< 0: the chip, with copies of collectives; then the network lanes
  Seconds start, end;     ///< of one piece of a collective that is interrupted
  Seconds alone;          ///< the whole step by itself
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

}  // namespace assay::clock

// How long a step of any program takes by itself on a placed mesh, and what its steps take together.
#pragma once
#include <optional>
#include <vector>

#include "assay/hardware/calibration.h"
#include "assay/hardware/cluster.h"
#include "assay/predict/clock/lanes.h"
#include "assay/predict/collective/placement.h"
#include "assay/predict/kernel/kernels.h"

namespace assay::clock {

/// What kernels and collectives run on. Holds references: for the duration of a call.
struct PricedOn {
  const hardware::Cluster& cluster;
  const kernel::KernelRates& rates;
  const std::optional<hardware::CollectiveCalibration>& collectives;
};

/// A collective of a whole array of so many bytes: as measured, or else by the chip's own figures.
Seconds collective_time(const PricedOn& on, program::Collective kind, const collective::CollectiveGroup& group,
                        Bytes array);
/// A step of a program whose mesh is placed on the cluster.
Seconds step_time(const PricedOn& on, const collective::Placement& placement, const program::Program& program,
                  const program::Step& step);

/// The steps of a program as a rank runs them: in their order, but a collective starts as soon as what it reads is
/// there, and travels while other steps run. `times` has those of all steps.
std::vector<Item> eager_items(const program::Program& program, const std::vector<Seconds>& times);

/// A program whose collectives block, and the same one whose collectives travel while other steps run.
struct OverlapTimes {
  Seconds blocking, overlapped;
  Seconds moving, hidden;  ///< of collectives, and the part of it that other steps hide
};
/// The times of a rank that has so many cores: one that computes has to copy what it receives by itself, and hides
/// nothing.
OverlapTimes on_cores(OverlapTimes ideal, double cores);
OverlapTimes overlap_times(const program::Program& program, const std::vector<Seconds>& times, double cores);

}  // namespace assay::clock

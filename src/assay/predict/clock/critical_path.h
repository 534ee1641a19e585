// Which passes and sends of a pipeline step follow each other without a pause until its busiest stage is done.
#pragma once
#include <vector>

#include "assay/predict/clock/clock.h"

namespace assay::clock {

/// The interval from step to step is the time to the end of the stage that is occupied longest, and of its own end of
/// the step, less the time until it begins.
struct CriticalPath {
  std::size_t stage = 0;
  std::vector<OperationWork> to_end, to_begin;
  /// Operations until the ends of the two operations that lie a period of the clock apart.
  std::vector<OperationWork> to_period, to_next_period;
};

/// The critical path of a valid input under any schedule but gpipe, whose interval has a closed form.
CriticalPath critical_path(const PipelineInput& input, const PipelineClock::Echo& period = {});

}  // namespace assay::clock

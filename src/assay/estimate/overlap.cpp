#include "assay/estimate/overlap.h"

#include <algorithm>

#include "assay/base/index.h"

namespace assay::estimate {
OverlapSchedule schedule_blocks(const program::Program& program, const std::vector<program::Block>& blocks,
                                const StepTimes& times, const HostCopies& copies) {
  OverlapSchedule schedule;
  std::vector<Seconds> ready(program.tensors.size());  // when each tensor is ready; inputs are from the start
  std::vector<Seconds> free(1);
  Seconds chain;  // the steps that wait for each other
  Seconds out_free, in_free, before_last, last_start;
  for (const program::Block& block : blocks) {
    if (copies.in > Seconds() && block.phase == program::Phase::backward) {
      const Seconds start = std::max(in_free, last_start);
      in_free = start + copies.in;
      schedule.copies.push_back({true, start, in_free});
      chain = std::max(chain, in_free);
    } else if (block.phase == program::Phase::forward) {
      chain = std::max(chain, before_last);
    }
    before_last = out_free;
    last_start = chain;
    for (std::int32_t i = block.first; i < block.last; ++i) {
      const program::Step& step = program.steps[at(i)];
      if (step.once) continue;
      std::size_t lane = 0;
      if (program::is_collective(step.op)) {
        const auto known = std::find(schedule.lanes.begin(), schedule.lanes.end(), step.axes);
        lane = static_cast<std::size_t>(known - schedule.lanes.begin()) + 1;
        if (known == schedule.lanes.end()) {
          schedule.lanes.push_back(step.axes);
          free.emplace_back();
        }
      }
      Seconds start = free[lane];
      if (step.urgency == program::Urgency::critical) start = std::max(start, chain);
      for (int id : step.in)
        if (id >= 0) start = std::max(start, ready[at(id)]);
      const Seconds end = start + times.estimate[at(i)];
      for (int id : step.out)
        if (id >= 0) ready[at(id)] = end;
      free[lane] = end;
      if (step.urgency == program::Urgency::critical) chain = end;
      schedule.end = std::max(schedule.end, end);
      if (end > start) schedule.steps.push_back({i, static_cast<std::int32_t>(lane), start, end});
    }
    if (copies.out > Seconds() && block.phase == program::Phase::forward) {
      const Seconds start = std::max(out_free, chain);
      out_free = start + copies.out;
      schedule.copies.push_back({false, start, out_free});
    }
  }
  return schedule;
}

}  // namespace assay::estimate

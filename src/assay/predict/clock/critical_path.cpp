#include "assay/predict/clock/critical_path.h"

#include <algorithm>

namespace assay::clock {

CriticalPath critical_path(const PipelineInput& input, const PipelineClock::Echo& period) {
  const EventOrder order = event_order(input.shape);
  EventTimes times;
  times.fill(input);
  const auto stages = static_cast<std::size_t>(input.shape.stages);
  EventEnds ends;
  std::vector<std::uint32_t> waited_for(order.operations.size(), 0);  // what each follows without a pause; 0: nothing
  std::vector<std::uint32_t> last(stages, 0), first(stages, 0);
  run(order, times, ends, [&](std::size_t i, Seconds) {
    const EventOrder::Operation& operation = order.operations[i];
    std::uint32_t& before = last[operation.stage];
    waited_for[i] = ends.done[before] < ends.done[operation.after] ? operation.after : before;
    before = static_cast<std::uint32_t>(i);
    if (first[operation.stage] == 0) first[operation.stage] = before;
  });
  const auto chain = [&](std::uint32_t to) {
    std::vector<OperationWork> steps;
    for (; to != 0; to = waited_for[to]) steps.push_back(work_of(order.shape, order.operations[to].duration));
    std::reverse(steps.begin(), steps.end());
    return steps;
  };
  CriticalPath path;
  Seconds longest(-1.0);
  for (std::size_t stage = 0; stage < stages; ++stage) {
    const Seconds at_end = input.at_end.empty() ? Seconds() : input.at_end[input.at_end.size() == 1 ? 0 : stage];
    const Seconds interval = ends.free[stage] + at_end - ends.first[stage];
    if (!(interval > longest)) continue;
    longest = interval;
    path.stage = stage;
  }
  path.to_end = chain(last[path.stage]);
  path.to_begin = chain(waited_for[first[path.stage]]);
  path.to_period = chain(period.first);
  path.to_next_period = chain(period.second);
  return path;
}

}  // namespace assay::clock

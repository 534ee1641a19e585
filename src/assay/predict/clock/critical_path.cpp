#include "assay/predict/clock/critical_path.h"

#include <algorithm>

namespace assay::clock {

CriticalPath critical_path(const PipelineInput& input, const PipelineClock::Echo& period) {
  const EventOrder order = event_order(input.shape);
  EventTimes times;
  times.fill(input);
  const auto stages = static_cast<std::size_t>(input.shape.stages);
  struct Event {
    Seconds done;
    std::uint32_t waited_for = 0;  ///< the event that it follows without a pause; 0: none
  };
  std::vector<Event> events(order.operations.size());
  std::vector<std::uint32_t> last(stages, 0), first(stages, 0);
  for (std::uint32_t i = 1; i < order.operations.size(); ++i) {
    const EventOrder::Operation& operation = order.operations[i];
    std::uint32_t& before = last[operation.stage];
    const std::uint32_t from = events[before].done < events[operation.after].done ? operation.after : before;
    const EventTimes::Duration& taken = times[operation.duration];
    events[i] = {events[from].done + taken.work + taken.send, from};
    if (first[operation.stage] == 0) first[operation.stage] = i;
    before = i;
  }
  const auto chain = [&](std::uint32_t to) {
    std::vector<OperationWork> steps;
    for (; to != 0; to = events[to].waited_for) steps.push_back(work_of(order.shape, order.operations[to].duration));
    std::reverse(steps.begin(), steps.end());
    return steps;
  };
  CriticalPath path;
  Seconds longest(-1.0);
  for (std::size_t stage = 0; stage < stages; ++stage) {
    const Seconds at_end = input.at_end.empty() ? Seconds() : input.at_end[input.at_end.size() == 1 ? 0 : stage];
    const Seconds interval = events[last[stage]].done + at_end - events[events[first[stage]].waited_for].done;
    if (!(interval > longest)) continue;
    longest = interval;
    path.stage = stage;
  }
  path.to_end = chain(last[path.stage]);
  path.to_begin = chain(events[first[path.stage]].waited_for);
  path.to_period = chain(period.first);
  path.to_next_period = chain(period.second);
  return path;
}

}  // namespace assay::clock

#include "assay/profile/trace/trace.h"

#include <algorithm>
#include <utility>

namespace assay::trace {
namespace {

/// Of the events of one thread, in order of their starts, the longer ones first.
void nest(Trace& trace, const std::vector<std::uint32_t>& thread) {
  std::vector<std::uint32_t> open;
  for (const std::uint32_t index : thread) {
    Event& event = trace.events[index];
    // Clocks of driver and framework differ a little: a call that starts inside belongs there, even if it ends later.
    while (!open.empty() && trace.events[open.back()].end() <= event.start) open.pop_back();
    event.parent = open.empty() ? none : open.back();
    open.push_back(index);
  }
}

/// Numbers that several events share, each with the first event that has it.
class FirstEvents {
 public:
  void add(std::int64_t number, std::uint32_t event) {
    sorted_ = sorted_ && (all_.empty() || all_.back().first <= number);
    all_.emplace_back(number, event);
  }
  /// No more are added; events were added in their order.
  void finish() {
    if (!sorted_) std::sort(all_.begin(), all_.end());
  }
  std::uint32_t find(std::int64_t number) const {
    const auto at = std::lower_bound(all_.begin(), all_.end(), std::pair{number, std::uint32_t{0}});
    return at == all_.end() || at->first != number ? none : at->second;
  }

 private:
  std::vector<std::pair<std::int64_t, std::uint32_t>> all_;
  bool sorted_ = true;
};

}  // namespace

std::uint32_t Names::id(std::string_view text) {
  if (const auto known = ids_.find(text); known != ids_.end()) return known->second;
  const auto id = static_cast<std::uint32_t>(texts_.size());
  texts_.emplace_back(text);
  ids_.emplace(texts_.back(), id);
  return id;
}

void link_events(Trace& trace) {
  std::vector<std::uint32_t> host;
  FirstEvents launches, operations;
  for (std::uint32_t i = 0; i < trace.events.size(); ++i) {
    const Event& event = trace.events[i];
    if (on_device(event.kind)) continue;
    host.push_back(i);
    if (event.kind == EventKind::launch && event.correlation >= 0) launches.add(event.correlation, i);
    if (event.kind == EventKind::operation && event.external >= 0) operations.add(event.external, i);
  }
  launches.finish();
  operations.finish();
  std::sort(host.begin(), host.end(), [&](std::uint32_t a, std::uint32_t b) {
    const Event &left = trace.events[a], &right = trace.events[b];
    if (left.lane != right.lane) return left.lane < right.lane;
    if (left.start != right.start) return left.start < right.start;
    return left.duration != right.duration ? left.duration > right.duration : a < b;
  });
  for (std::size_t first = 0; first < host.size();) {
    const std::uint32_t lane = trace.events[host[first]].lane;
    std::size_t last = first;
    while (last < host.size() && trace.events[host[last]].lane == lane) ++last;
    nest(trace, {host.begin() + static_cast<std::ptrdiff_t>(first), host.begin() + static_cast<std::ptrdiff_t>(last)});
    first = last;
  }
  for (Event& event : trace.events) {
    if (!on_device(event.kind)) continue;
    std::uint32_t starts = event.correlation >= 0 ? launches.find(event.correlation) : none;
    if (starts == none && event.external >= 0) starts = operations.find(event.external);
    if (starts != none) event.parent = starts;
  }
}

std::uint32_t enclosing(const Trace& trace, std::uint32_t event, EventKind kind) {
  while (event != none && trace.events[event].kind != kind) event = trace.events[event].parent;
  return event;
}

std::uint32_t operation_of(const Trace& trace, const Event& event) {
  return event.captured != none ? event.captured : enclosing(trace, event.parent, EventKind::operation);
}

}  // namespace assay::trace

#include <algorithm>
#include <map>

#include "assay/profile/trace/trace.h"

namespace assay::trace {
namespace {

/// Copies operations of a capture with those around them, each once.
class OperationCopier {
 public:
  OperationCopier(Trace& to, const Trace& from) : to_(to), from_(from) {
    lane_ = static_cast<std::uint32_t>(to.lanes.size());
    to.lanes.push_back({"capture", from.file, -1});
  }

  std::uint32_t copy(std::uint32_t operation) {
    if (operation == none) return none;
    if (const auto known = copied_.find(operation); known != copied_.end()) return known->second;
    Event event = from_.events[operation];
    event.name = to_.names.id(from_.names[event.name]);
    if (event.inputs != none) event.inputs = to_.names.id(from_.names[event.inputs]);
    event.stated = none;
    event.lane = lane_;
    event.parent = copy(enclosing(from_, event.parent, EventKind::operation));
    const auto place = static_cast<std::uint32_t>(to_.events.size());
    to_.events.push_back(event);
    copied_.emplace(operation, place);
    return place;
  }

 private:
  Trace& to_;
  const Trace& from_;
  std::uint32_t lane_ = 0;
  std::map<std::uint32_t, std::uint32_t> copied_;
};

/// Launches that say which kernel they start, in order of time.
std::vector<std::uint32_t> named_launches(const Trace& capture) {
  std::vector<std::uint32_t> out;
  for (std::uint32_t i = 0; i < capture.events.size(); ++i)
    if (capture.events[i].kind == EventKind::launch && capture.events[i].stated != none) out.push_back(i);
  std::stable_sort(out.begin(), out.end(),
                   [&](std::uint32_t a, std::uint32_t b) { return capture.events[a].start < capture.events[b].start; });
  return out;
}

/// Kernels by the launch that replayed them, launches and kernels in order of time.
std::vector<std::vector<std::uint32_t>> replays(const Trace& trace) {
  std::map<std::pair<Ticks, std::uint32_t>, std::vector<std::uint32_t>> by_launch;
  for (std::uint32_t i = 0; i < trace.events.size(); ++i) {
    const Event& event = trace.events[i];
    if (event.kind != EventKind::kernel || event.parent == none) continue;
    if (trace.events[event.parent].kind == EventKind::launch)
      by_launch[{trace.events[event.parent].start, event.parent}].push_back(i);
  }
  std::vector<std::vector<std::uint32_t>> out;
  for (auto& [launch, kernels] : by_launch) {
    if (kernels.size() < 2) continue;  // one launch, one kernel: not a graph
    std::stable_sort(kernels.begin(), kernels.end(),
                     [&](std::uint32_t a, std::uint32_t b) { return trace.events[a].start < trace.events[b].start; });
    out.push_back(std::move(kernels));
  }
  return out;
}

}  // namespace

std::int64_t adopt_capture(Trace& trace, const Trace& capture) {
  const std::vector<std::uint32_t> launches = named_launches(capture);
  std::vector<std::string_view> captured;
  for (const std::uint32_t launch : launches) captured.emplace_back(capture.names[capture.events[launch].stated]);
  OperationCopier copier(trace, capture);
  std::int64_t found = 0;
  std::size_t from = 0;  // graphs are replayed in the order of their capture, again and again
  for (const std::vector<std::uint32_t>& kernels : replays(trace)) {
    std::vector<std::string_view> replayed;
    for (const std::uint32_t kernel : kernels) replayed.emplace_back(trace.name(trace.events[kernel]));
    const auto first = captured.begin(), last = captured.end();
    auto match = std::search(first + static_cast<std::ptrdiff_t>(from), last, replayed.begin(), replayed.end());
    if (match == last) match = std::search(first, last, replayed.begin(), replayed.end());
    if (match == last) continue;
    const auto place = static_cast<std::size_t>(match - first);
    from = place + kernels.size();
    for (std::size_t i = 0; i < kernels.size(); ++i) {
      const std::uint32_t operation = copier.copy(enclosing(capture, launches[place + i], EventKind::operation));
      trace.events[kernels[i]].captured = operation;
      found += operation != none ? 1 : 0;
    }
  }
  return found;
}

}  // namespace assay::trace

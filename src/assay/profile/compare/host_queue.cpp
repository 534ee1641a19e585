#include "assay/profile/compare/host_queue.h"

#include <algorithm>
#include <map>
#include <set>
#include <string_view>
#include <tuple>

namespace assay::compare {
namespace {

/// A mean of times.
struct MeanTime {
  Seconds sum;
  double count = 0;
  void add(Seconds time, double weight = 1.0) { sum += time, count += weight; }
  Seconds value() const { return count > 0.0 ? sum / count : Seconds(0); }
};

/// Kernels in calls up to each one.
std::vector<std::int64_t> kernels_until(const std::vector<MeasuredCall>& calls) {
  std::vector<std::int64_t> out(calls.size() + 1, 0);
  for (std::size_t i = 0; i < calls.size(); ++i) out[i + 1] = out[i] + calls[i].kernels;
  return out;
}

}  // namespace

HostQueue::HostQueue(const MeasuredStep& measured, const trace::HostHabits& habits)
    : measured_(measured), habits_(habits) {
  if (measured.replayed) return;
  double launches = 0, unknown = 0;
  for (const MeasuredCall& call : measured.calls) {
    launches += static_cast<double>(call.kernels);
    if (!call.launched) unknown += static_cast<double>(call.kernels);
    if (!first_ && call.launched) first_ = &call;
  }
  constexpr double most_unknown = 0.1;
  if (!first_ || unknown > most_unknown * launches) return;
  set_befores();
  set_times();
  if (pace_) pace_->launches = launches;
}

void HostQueue::set_befores() {
  const std::vector<MeasuredCall>& calls = measured_.calls;
  const std::vector<std::int64_t> until = kernels_until(calls);
  before_.assign(calls.size(), Before::unknown);
  const MeasuredCall* last = nullptr;
  std::size_t started = 0;
  for (std::size_t i = 0; i < calls.size(); ++i) {
    const MeasuredCall& call = calls[i];
    if (!call.launched) continue;
    while (started < i && calls[started].started <= *call.launched) ++started;
    const bool is_full = habits_.ahead > 0 && until[i] - until[started] >= habits_.ahead;
    if (!is_full && last && *call.launched > *last->launched) {
      const trace::Ticks taken = *call.launched - *last->launched;
      const bool lasts = trace::seconds(taken) > habits_.pause;
      const bool waits = lasts && 2 * (*call.launched - last->ended) < taken;  // until the device had caught up
      before_[i] = waits ? Before::wait : lasts ? Before::pause : Before::launch;
    }
    last = &call;
  }
}

void HostQueue::set_times() {
  const std::vector<MeasuredCall>& calls = measured_.calls;
  using Kind = std::tuple<bool, bool, std::string_view, std::string_view>;  // thread, first time, operation, kernel
  std::map<Kind, MeanTime> by_kind;
  MeanTime begins, others;
  std::set<std::string_view> seen;
  std::vector<Kind> kinds(calls.size());
  const MeasuredCall* last = nullptr;
  for (std::size_t i = 0; i < calls.size(); ++i) {
    const MeasuredCall& call = calls[i];
    const bool by_first = call.launched ? call.thread == first_->thread : i > 0 && std::get<0>(kinds[i - 1]);
    kinds[i] = {by_first, seen.insert(call.kernel).second, call.label, call.kernel};
    if (before_[i] == Before::launch) {
      const Seconds taken = trace::seconds(*call.launched - *last->launched);
      by_kind[kinds[i]].add(taken);
      // Another thread begins with more than a launch.
      if (last->thread == call.thread) (by_first ? begins : others).add(taken, static_cast<double>(last->kernels));
    }
    if (call.launched) last = &call;
  }
  constexpr double fewest = 24;
  if (begins.count < fewest) return;
  pace_ = HostPace{begins.value(), others.count > 0.0 ? others.value() : begins.value(), 0};
  time_.resize(calls.size());
  for (std::size_t i = 0; i < calls.size(); ++i) {
    const auto known = by_kind.find(kinds[i]);
    time_[i] = known != by_kind.end()  ? known->second.value()
               : std::get<0>(kinds[i]) ? pace_->forward
                                       : pace_->backward;
  }
}

IdleTime HostQueue::idle(const std::vector<double>& share) const {
  const std::vector<MeasuredCall>& calls = measured_.calls;
  const std::vector<std::int64_t> until = kernels_until(calls);
  std::vector<Seconds> starts(calls.size());
  IdleTime idle;
  // The first launch of a profile takes longer; in a later step the host may be ahead of the device.
  Seconds host, device = trace::seconds(first_->started - *first_->launched);
  std::size_t room = 0;  // the call that has to start before the next one can be launched
  for (std::size_t i = 0; i < calls.size(); ++i) {
    if (i > 0) {
      if (before_[i] == Before::wait) host = std::max(host, device);
      host += time_[i];
      while (room < i && habits_.ahead > 0 && until[i] - until[room] >= habits_.ahead) ++room;
      if (room > 0) host = std::max(host, starts[room - 1]);
      const Seconds start = std::max(device + habits_.between, host + habits_.latency);
      (host > device ? idle.dry : idle.between) += start - device;
      device = start;
    }
    starts[i] = device;
    const Seconds more = static_cast<double>(calls[i].kernels - 1) * habits_.between;
    idle.between += more;
    device += share[i] * trace::seconds(calls[i].duration) + more;
  }
  return idle;
}

trace::Ticks HostQueue::paused() const {
  trace::Ticks sum = 0;
  for (std::size_t i = 0; i < before_.size(); ++i)
    if (before_[i] == Before::pause) sum += measured_.calls[i].late;
  return sum;
}

}  // namespace assay::compare

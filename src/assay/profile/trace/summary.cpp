#include "assay/profile/trace/summary.h"

#include <algorithm>
#include <map>
#include <unordered_map>
#include <unordered_set>

#include "assay/profile/trace/intervals.h"
#include "assay/profile/trace/rank.h"

namespace assay::trace {
namespace {

/// Categories of names, each found once.
class Categories {
 public:
  Categories(const Trace& trace, const Vocabulary& vocabulary)
      : trace_(trace), vocabulary_(vocabulary), optimizer_(vocabulary.optimizer_category()) {}

  PlacedEvent place(std::uint32_t index) {
    const Event& event = trace_.events[index];
    Vocabulary::Found found = of(event.name);
    // A stated kind is more exact than the name of a kernel that does one of several things, and a collective is stated
    // by its name where its kernel only sends.
    if (event.stated != none)
      if (const Vocabulary::Found stated = of(event.stated);
          stated.category + 1 < vocabulary_.categories.size() &&
          (found.kind.empty() || (stated.category == found.category && !stated.kind.empty())))
        found = stated;
    if (is_unknown(found)) found = of_operation(event, found);
    PlacedEvent out{index, found.category, found.kind, false};
    bool optimizes = false;
    for (std::uint32_t around = event.parent; around != none; around = trace_.events[around].parent)
      if (trace_.events[around].kind == EventKind::mark) {
        const auto role = vocabulary_.role(trace_.name(trace_.events[around]));
        optimizes |= role == MarkRole::optimizer;
        out.recomputed |= role == MarkRole::recompute;
      }
    if (optimizes && optimizer_ < vocabulary_.categories.size() && event.kind == EventKind::kernel &&
        vocabulary_.categories[out.category].work_class == WorkClass::computation) {
      out.category = optimizer_;
      out.kind = {};
    }
    return out;
  }

 private:
  bool is_unknown(const Vocabulary::Found& found) const { return found.category + 1 == vocabulary_.categories.size(); }

  /// The operation that launched a kernel tells what it does where the kernel's name does not.
  Vocabulary::Found of_operation(const Event& event, const Vocabulary::Found& unknown) const {
    const OperationForm* form = nullptr;
    for (std::uint32_t at = operation_of(trace_, event); at != none && !form;
         at = enclosing(trace_, trace_.events[at].parent, EventKind::operation))
      form = vocabulary_.operation(trace_.name(trace_.events[at]));
    if (!form) return unknown;
    const std::string_view wanted = category_of(form->form);
    const auto at = std::find_if(vocabulary_.categories.begin(), vocabulary_.categories.end(),
                                 [&](const Category& category) { return category.id == wanted; });
    if (at == vocabulary_.categories.end()) return unknown;
    return {static_cast<std::size_t>(at - vocabulary_.categories.begin()), {}};
  }
  static std::string_view category_of(Form form) {
    switch (form) {
      case Form::product:
        return "matmul";
      case Form::attention:
      case Form::attention_gradient:
        return "attention";
      case Form::convolution:
      case Form::convolution_gradient:
        return "convolution";
      case Form::element_wise:
        break;
    }
    return "element-wise";
  }

  Vocabulary::Found of(std::uint32_t name) {
    const auto [known, is_new] = found_.try_emplace(name);
    if (is_new) known->second = vocabulary_.category(trace_.names[name]);
    return known->second;
  }

  const Trace& trace_;
  const Vocabulary& vocabulary_;
  std::size_t optimizer_;
  std::unordered_map<std::uint32_t, Vocabulary::Found> found_;
};

std::optional<RecomputationTimes> recomputation_times(const Trace& trace, const Vocabulary& vocabulary,
                                                      const std::vector<PlacedEvent>& events) {
  std::vector<PlacedEvent> recomputed, rest;
  for (const PlacedEvent& placed : events) (placed.recomputed ? recomputed : rest).push_back(placed);
  if (recomputed.empty()) return std::nullopt;
  return RecomputationTimes{times_of(trace, vocabulary, recomputed), times_of(trace, vocabulary, rest)};
}

/// Sums over calls of operations that are alike.
struct CallGroup {
  std::uint32_t operation = none, inputs = none;  ///< names
  std::int64_t calls = 0, kernels = 0;
  double time = 0.0;
  Ticks shortest = 0, longest = 0;
  Flops flops;  ///< where the file states them
  Bytes bytes;
  std::map<std::uint32_t, std::pair<double, PlacedEvent>> by_kernel;  ///< by the kernel's name
};

class Grouping {
 public:
  Grouping(const Trace& trace, const Vocabulary& vocabulary) : trace_(trace), vocabulary_(vocabulary) {}

  void add(const PlacedEvent& placed) {
    const Event& event = trace_.events[placed.event];
    std::uint32_t operation = operation_of(trace_, event);
    std::uint32_t with_work = operation;
    while (with_work != none && !has_form(trace_.events[with_work].name))
      with_work = enclosing(trace_, trace_.events[with_work].parent, EventKind::operation);
    const bool known = with_work != none && trace_.events[with_work].inputs != none &&
                       vocabulary_.categories[placed.category].work_class == WorkClass::computation;
    if (known) operation = with_work;
    const std::uint32_t name = operation == none ? none : trace_.events[operation].name;
    const std::uint32_t inputs = known ? trace_.events[operation].inputs : none;
    CallGroup& group = groups_[{name, inputs, known ? none : event.name}];
    group.operation = name;
    group.inputs = inputs;
    // A captured operation is called once with each replay.
    const std::uint32_t replay = event.captured != none ? event.parent : none;
    if (!known || called_.insert(std::uint64_t{operation} << 32 | replay).second) ++group.calls;
    if (group.kernels++ == 0) group.shortest = group.longest = event.duration;
    group.shortest = std::min(group.shortest, event.duration);
    group.longest = std::max(group.longest, event.duration);
    group.time += static_cast<double>(event.duration);
    group.flops += std::max(event.flops, Flops());
    group.bytes += std::max(event.bytes, Bytes());
    auto& [time, example] = group.by_kernel[event.name];
    time += static_cast<double>(event.duration);
    example = placed;
  }

  std::vector<OperationTime> finish() const {
    std::vector<OperationTime> out;
    for (const auto& [key, group] : groups_) out.push_back(finished(group));
    std::stable_sort(out.begin(), out.end(),
                     [](const OperationTime& a, const OperationTime& b) { return a.time > b.time; });
    return out;
  }

 private:
  bool has_form(std::uint32_t name) {
    const auto [known, is_new] = forms_.try_emplace(name);
    if (is_new) known->second = vocabulary_.operation(trace_.names[name]);
    return known->second != nullptr;
  }

  OperationTime finished(const CallGroup& group) const {
    const auto longest = std::max_element(group.by_kernel.begin(), group.by_kernel.end(),
                                          [](const auto& a, const auto& b) { return a.second.first < b.second.first; });
    OperationTime out;
    if (group.operation != none) out.name = trace_.names[group.operation];
    out.kernel = trace_.names[longest->first];
    out.category = longest->second.second.category;
    out.kind = longest->second.second.kind;
    out.calls = group.calls;
    out.kernels = group.kernels;
    out.time = seconds(group.time);
    out.shortest = seconds(group.shortest);
    out.longest = seconds(group.longest);
    if (group.inputs != none) {
      const std::vector<InputTensor> inputs = parse_inputs(trace_.names[group.inputs]);
      out.shapes = shapes_text(inputs);
      out.work = work_of(*vocabulary_.operation(out.name), inputs, vocabulary_);
    } else if (group.flops > Flops() || group.bytes > Bytes()) {
      const double calls = static_cast<double>(group.calls);
      out.work = Work{group.flops / calls, group.bytes / calls, std::nullopt, false};
    }
    return out;
  }

  const Trace& trace_;
  const Vocabulary& vocabulary_;
  std::map<std::tuple<std::uint32_t, std::uint32_t, std::uint32_t>, CallGroup> groups_;
  std::unordered_set<std::uint64_t> called_;  ///< pairs of an operation and a replay
  std::unordered_map<std::uint32_t, const OperationForm*> forms_;
};

IdleGap described(const Trace& trace, const Gap& gap, Ticks origin) {
  IdleGap out;
  out.start = seconds(gap.after->end() - origin);
  out.length = seconds(gap.length());
  out.after = trace.name(*gap.after);
  out.before = trace.name(*gap.before);
  out.host_bound = gap.host_bound;
  if (const std::uint32_t host = operation_of(trace, *gap.before); host != none)
    out.host = trace.name(trace.events[host]);
  return out;
}

std::vector<StreamTimes> stream_times(const Trace& trace, const std::vector<PlacedEvent>& events) {
  constexpr Ticks back_to_back = 30 * ticks_per_nanosecond;
  struct Sums {
    std::int64_t events = 0;
    double busy = 0.0, host = 0.0, kernel = 0.0, other = 0.0;
    Ticks last_end = 0;
  };
  std::map<std::uint32_t, Sums> lanes;
  for (const PlacedEvent& placed : events) {
    const Event& event = trace.events[placed.event];
    Sums& sums = lanes[event.lane];
    if (sums.events++ > 0) {
      const Ticks gap = event.start - sums.last_end;
      const Event* launch = launch_of(trace, event);
      double& wait = launch && launch->start > sums.last_end ? sums.host
                     : gap < back_to_back                    ? sums.kernel
                                                             : sums.other;
      wait += static_cast<double>(gap);
    }
    sums.busy += static_cast<double>(event.duration);
    sums.last_end = event.end();
  }
  std::vector<StreamTimes> out;
  for (const auto& [lane, sums] : lanes)
    out.push_back({trace.lanes[lane].thread, sums.events, seconds(sums.busy), seconds(sums.host), seconds(sums.kernel),
                   seconds(sums.other)});
  return out;
}

/// A stretch of the host's time whose launches are one step.
struct StepRange {
  std::string name;
  Ticks begin = 0, end = 0;
};

std::vector<StepRange> step_ranges(const Trace& trace, const Vocabulary& vocabulary, MarkRole wanted) {
  std::vector<StepRange> out;
  for (const Event& event : trace.events) {
    if (event.kind != EventKind::mark || vocabulary.role(trace.name(event)) != wanted) continue;
    bool inner = false;
    for (std::uint32_t around = event.parent; around != none; around = trace.events[around].parent)
      inner |=
          trace.events[around].kind == EventKind::mark && vocabulary.role(trace.name(trace.events[around])) == wanted;
    if (!inner) out.push_back({trace.name(event), event.start, event.end()});
  }
  std::stable_sort(out.begin(), out.end(), [](const StepRange& a, const StepRange& b) { return a.begin < b.begin; });
  return out;
}

}  // namespace

DeviceTimes times_of(const Trace& trace, const Vocabulary& vocabulary, const std::vector<PlacedEvent>& events) {
  std::vector<Interval> by_class[3], kernels, all;
  for (const PlacedEvent& placed : events) {
    const Event& event = trace.events[placed.event];
    const Category& category = vocabulary.categories[placed.category];
    const Interval interval{event.start, event.end()};
    all.push_back(interval);
    by_class[static_cast<std::size_t>(category.work_class)].push_back(interval);
    if (category.work_class == WorkClass::computation && !category.fills) kernels.push_back(interval);
  }
  const Intervals computing = united(std::move(by_class[0])), communicating = united(std::move(by_class[1])),
                  copying = united(std::move(by_class[2])), busy = united(std::move(all));
  DeviceTimes out;
  if (busy.empty()) return out;
  out.total = seconds(busy.back().end - busy.front().begin);
  out.busy = seconds(covered(busy));
  out.idle = seconds(busy.back().end - busy.front().begin - covered(busy));
  out.computation = seconds(covered(computing));
  out.communication = seconds(covered(communicating));
  out.copies = seconds(covered(copying));
  out.exposed_communication = seconds(covered(difference(communicating, computing)));
  out.exposed_copies = seconds(covered(difference(difference(copying, computing), communicating)));
  const Intervals in_kernels = united(std::move(kernels));
  out.without_fills = seconds(covered(in_kernels));
  out.overlap = seconds(covered(communicating) - covered(difference(communicating, in_kernels)));
  return out;
}

std::vector<CategoryTime> category_times(const Trace& trace, const std::vector<PlacedEvent>& events) {
  std::map<std::pair<std::size_t, std::string_view>, std::pair<std::int64_t, double>> sums;
  for (const PlacedEvent& placed : events) {
    auto& [count, time] = sums[{placed.category, placed.kind}];
    ++count;
    time += static_cast<double>(trace.events[placed.event].duration);
  }
  std::vector<CategoryTime> out;
  for (const auto& [key, sum] : sums)
    out.push_back({key.first, std::string(key.second), sum.first, seconds(sum.second)});
  std::stable_sort(out.begin(), out.end(),
                   [](const CategoryTime& a, const CategoryTime& b) { return a.time > b.time; });
  return out;
}

std::vector<Gap> idle_gaps(const Trace& trace, const std::vector<PlacedEvent>& events) {
  std::vector<Gap> out;
  const Event* last = nullptr;  // of all so far, the one that ends last
  for (const PlacedEvent& placed : events) {
    const Event& event = trace.events[placed.event];
    if (last && event.start > last->end()) {
      const Event* launch = launch_of(trace, event);
      out.push_back({last, &event, launch && launch->start > last->end()});
    }
    if (!last || event.end() > last->end()) last = &event;
  }
  return out;
}

std::string device_name(const Trace& trace, std::int64_t device) {
  for (const DeviceProperties& known : trace.devices)
    if (known.id == device && !known.name.empty()) return known.name;
  // Drivers of some makers number devices by their place on the bus; all devices of a machine are alike.
  return trace.devices.empty() ? "" : trace.devices.front().name;
}

const Event* launch_of(const Trace& trace, const Event& event) {
  if (event.parent == none || trace.events[event.parent].kind != EventKind::launch) return nullptr;
  return &trace.events[event.parent];
}

DeviceSteps device_steps(const Trace& trace, const Vocabulary& vocabulary, std::int64_t device,
                         const std::vector<PlacedEvent>& events) {
  DeviceSteps out;
  std::vector<StepRange> ranges;
  const bool stated = std::any_of(trace.steps.begin(), trace.steps.end(),
                                  [&](const DeviceStep& step) { return step.device == device; });
  if (stated) {
    for (const DeviceStep& step : trace.steps)
      if (step.device == device) ranges.push_back({step.name, step.start, step.end});
  } else {
    ranges = step_ranges(trace, vocabulary, MarkRole::step);
    if (ranges.empty()) {
      ranges = step_ranges(trace, vocabulary, MarkRole::optimizer);
      out.by_optimizer = !ranges.empty();
      for (std::size_t i = 0; i < ranges.size(); ++i) {
        ranges[i].begin = i == 0 ? INT64_MIN : ranges[i - 1].end;
        ranges[i].name = "update " + std::to_string(i + 1);
      }
    }
  }
  std::vector<StepEvents> found(ranges.size());
  for (const PlacedEvent& placed : events) {
    const Event& event = trace.events[placed.event];
    const Event* launch = launch_of(trace, event);
    if (!stated && !launch) continue;
    const Ticks at = stated ? event.start : launch->start;
    const auto after = std::upper_bound(ranges.begin(), ranges.end(), at,
                                        [](Ticks time, const StepRange& range) { return time < range.begin; });
    if (after == ranges.begin() || at > std::prev(after)->end) continue;
    found[static_cast<std::size_t>(after - ranges.begin()) - 1].events.push_back(placed);
  }
  std::optional<Ticks> before;
  for (std::size_t i = 0; i < ranges.size(); ++i) {
    if (found[i].events.empty()) continue;
    Ticks first = INT64_MAX, last = INT64_MIN;
    for (const PlacedEvent& placed : found[i].events) {
      first = std::min(first, trace.events[placed.event].start);
      last = std::max(last, trace.events[placed.event].end());
    }
    found[i].name = ranges[i].name;
    // A step whose work ends before that of the step before it stands by itself.
    found[i].begin = before && *before < last ? *before : first;
    found[i].end = last;
    before = std::max(before.value_or(last), last);
    out.steps.push_back(std::move(found[i]));
  }
  return out;
}

std::map<std::int64_t, std::vector<PlacedEvent>> device_events(const Trace& trace, const Vocabulary& vocabulary) {
  std::map<std::int64_t, std::vector<PlacedEvent>> out;
  Categories categories(trace, vocabulary);
  for (std::uint32_t i = 0; i < trace.events.size(); ++i)
    if (on_device(trace.events[i].kind)) out[trace.lanes[trace.events[i].lane].device].push_back(categories.place(i));
  for (auto& [device, events] : out)
    std::stable_sort(events.begin(), events.end(), [&](const PlacedEvent& a, const PlacedEvent& b) {
      return trace.events[a.event].start < trace.events[b.event].start;
    });
  return out;
}

DeviceSummary summary_of(const Trace& trace, const Vocabulary& vocabulary, const RankSummary& rank,
                         const std::vector<PlacedEvent>& events) {
  DeviceSummary out;
  out.rank = rank.rank;
  out.device = rank.device;
  out.name = rank.device_name;
  out.times = rank.times;
  out.categories = rank.categories;
  out.host_bound = rank.host_bound;
  out.events = static_cast<std::int64_t>(events.size());
  double sum = 0.0;
  std::vector<PlacedEvent> linked;
  std::unordered_map<std::uint32_t, int> of_launch;
  for (const PlacedEvent& placed : events) ++of_launch[trace.events[placed.event].parent];
  Grouping grouping(trace, vocabulary);
  for (const PlacedEvent& placed : events) {
    const Event& event = trace.events[placed.event];
    sum += static_cast<double>(event.duration);
    out.graph_events += event.graph ? 1 : 0;
    out.launched += launch_of(trace, event) ? 1 : 0;
    // One arrow is drawn for all that a graph replays.
    if (event.arrow || (launch_of(trace, event) && of_launch[event.parent] > 1)) linked.push_back(placed);
    grouping.add(placed);
  }
  out.kernel_time = seconds(sum);
  out.recomputation = recomputation_times(trace, vocabulary, events);
  if (trace.has_arrows && linked.size() < events.size()) {
    out.linked = times_of(trace, vocabulary, linked);
    out.linked_recomputation = recomputation_times(trace, vocabulary, linked);
  }
  out.operations = grouping.finish();
  std::vector<Gap> gaps = idle_gaps(trace, events);
  std::stable_sort(gaps.begin(), gaps.end(), [](const Gap& a, const Gap& b) { return a.length() > b.length(); });
  constexpr std::size_t most_gaps = 20;
  if (gaps.size() > most_gaps) gaps.resize(most_gaps);
  for (const Gap& gap : gaps) out.gaps.push_back(described(trace, gap, trace.events[events.front().event].start));
  out.streams = stream_times(trace, events);
  const DeviceSteps steps = device_steps(trace, vocabulary, rank.device, events);
  out.steps_by_optimizer = steps.by_optimizer;
  for (const StepEvents& step : steps.steps)
    out.steps.push_back({step.name, seconds(step.end - step.begin), times_of(trace, vocabulary, step.events)});
  return out;
}

std::vector<DeviceSummary> summarize(const Trace& trace, const Vocabulary& vocabulary) {
  std::vector<DeviceSummary> out;
  for (const auto& [device, events] : device_events(trace, vocabulary))
    out.push_back(summary_of(trace, vocabulary, rank_summary(trace, vocabulary, device, events), events));
  return out;
}

}  // namespace assay::trace

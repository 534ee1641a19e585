#include "assay/profile/trace/rank.h"

#include <algorithm>
#include <map>
#include <unordered_map>

#include "assay/profile/trace/intervals.h"
#include "assay/program/form/collective.h"

namespace assay::trace {
namespace {

/// How much of the time up to a moment some intervals cover.
class Coverage {
 public:
  explicit Coverage(Intervals intervals) : intervals_(std::move(intervals)), before_(intervals_.size() + 1) {
    for (std::size_t i = 0; i < intervals_.size(); ++i)
      before_[i + 1] = before_[i] + intervals_[i].end - intervals_[i].begin;
  }
  Ticks until(Ticks time) const {
    const auto next = std::upper_bound(intervals_.begin(), intervals_.end(), time,
                                       [](Ticks at, const Interval& one) { return at < one.begin; });
    const auto count = static_cast<std::size_t>(next - intervals_.begin());
    if (count == 0) return 0;
    return before_[count] - std::max<Ticks>(0, intervals_[count - 1].end - time);
  }

 private:
  Intervals intervals_;
  std::vector<Ticks> before_;
};

/// What a device did over time.
class Activity {
 public:
  Activity(const Trace& trace, const Vocabulary& vocabulary, const std::vector<PlacedEvent>& events) {
    std::vector<Interval> by_class[3], all, late;
    first_ = trace.events[events.front().event].start;
    for (const Event& event : trace.events) first_ = std::min(first_, event.start);
    late.push_back({first_, trace.events[events.front().event].start});
    for (const PlacedEvent& placed : events) {
      const Event& event = trace.events[placed.event];
      by_class[static_cast<std::size_t>(vocabulary.categories[placed.category].work_class)].push_back(
          {event.start, event.end()});
    }
    for (const Gap& gap : idle_gaps(trace, events))
      if (gap.host_bound) late.push_back({gap.after->end(), gap.before->start});
    const Intervals computing = united(std::move(by_class[0])),
                    communicating = difference(united(std::move(by_class[1])), computing),
                    copying = difference(difference(united(std::move(by_class[2])), computing), communicating);
    for (const Intervals* one : {&computing, &communicating, &copying}) parts_.emplace_back(*one);
    parts_.emplace_back(united(std::move(late)));
  }

  Ticks first() const { return first_; }
  std::array<float, doing_kinds> between(Ticks from, Ticks to) const {
    std::array<float, doing_kinds> out{};
    Ticks left = to - from;
    for (std::size_t i = 0; i < parts_.size(); ++i) {
      const Ticks part = parts_[i].until(to) - parts_[i].until(from);
      out[i] = static_cast<float>(seconds(part).value());
      left -= part;
    }
    out.back() = static_cast<float>(seconds(left).value());
    return out;
  }

 private:
  Ticks first_ = 0;
  std::vector<Coverage> parts_;  ///< of what it does, but for being idle
};

/// A group by its name and ranks, which tell it from others of the same name.
std::string group_key(const ProcessGroup& group) {
  std::string out = group.name;
  std::size_t sum = 0;
  for (const std::int64_t rank : group.ranks) sum = sum * 1'000'003 + static_cast<std::size_t>(rank);
  if (!group.ranks.empty())
    out += "\x1f" + std::to_string(group.ranks.front()) + "\x1f" + std::to_string(group.ranks.back()) + "\x1f" +
           std::to_string(sum);
  return out;
}

/// What a device of a group receives of an array of which it sends so much.
Bytes moved_bytes(std::string_view kind, std::int64_t devices, const Collective& stated) {
  const auto known = std::find_if(program::all_collectives.begin(), program::all_collectives.end(),
                                  [&](const program::CollectiveFacts& one) { return one.name == kind; });
  if (known == program::all_collectives.end()) return std::max(stated.sent, stated.received);
  if (devices < 2) return Bytes();
  return program::received_share(known->kind, static_cast<double>(devices)) * stated.sent;
}

std::vector<CollectiveSequence> collectives_of(const Trace& trace, const Vocabulary& vocabulary,
                                               const std::vector<PlacedEvent>& events, const Activity& activity) {
  std::unordered_map<std::uint32_t, const Collective*> stated;
  for (const Collective& one : trace.collectives) stated.emplace(one.event, &one);
  std::map<std::pair<std::uint32_t, std::string>, std::size_t> known;
  std::map<std::uint32_t, Ticks> ended;  // by group
  std::vector<CollectiveSequence> out;
  for (const PlacedEvent& placed : events) {
    if (vocabulary.categories[placed.category].work_class != WorkClass::communication) continue;
    const Event& event = trace.events[placed.event];
    const auto says = stated.find(placed.event);
    const std::uint32_t group = says == stated.end() ? none : says->second->group;
    const std::string kind(placed.kind), kernel = group == none ? trace.name(event) : "";
    const auto [at, is_new] = known.try_emplace({group, group == none ? kernel : kind}, out.size());
    if (is_new) {
      CollectiveSequence& sequence = out.emplace_back();
      sequence.kind = kind;
      sequence.kernel = kernel;
      if (group != none) {
        const ProcessGroup& in = trace.groups[group];
        sequence.group = group_key(in);
        sequence.description = in.description;
        sequence.devices = in.size;
        if (!in.ranks.empty()) sequence.first_rank = in.ranks.front(), sequence.last_rank = in.ranks.back();
      }
    }
    CollectiveSequence& sequence = out[at->second];
    if (group != none) {
      sequence.bytes += std::max(says->second->sent, says->second->received);
      sequence.moved += moved_bytes(kind, sequence.devices, *says->second);
    }
    const auto last = ended.try_emplace(group, activity.first()).first;
    const Ticks from = std::min(last->second, event.start);
    sequence.calls.push_back({placed.event, event.duration, activity.between(from, event.start)});
    last->second = event.end();
  }
  return out;
}

}  // namespace

RankSummary rank_summary(const Trace& trace, const Vocabulary& vocabulary, std::int64_t device,
                         const std::vector<PlacedEvent>& events) {
  RankSummary out;
  out.file = trace.file;
  out.device_name = device_name(trace, device);
  out.rank = trace.rank;
  out.world_size = trace.world_size;
  out.device = device;
  out.unread = trace.unread;
  out.times = times_of(trace, vocabulary, events);
  out.launched = std::any_of(events.begin(), events.end(), [&](const PlacedEvent& placed) {
    return launch_of(trace, trace.events[placed.event]) != nullptr;
  });
  for (const Gap& gap : idle_gaps(trace, events))
    if (gap.host_bound) out.host_bound += seconds(gap.length());
  out.categories = category_times(trace, events);
  if (out.times.communication > Seconds(0))
    out.collectives = collectives_of(trace, vocabulary, events, Activity(trace, vocabulary, events));
  return out;
}

}  // namespace assay::trace

#include "assay/profile/compare/ranks.h"

#include <algorithm>
#include <map>
#include <tuple>

namespace assay::compare {
namespace {

using trace::CollectiveCall;
using trace::CollectiveSequence;
using trace::Ticks;

/// Sends and receives end together, too, but wait for other stages as the schedule of a pipeline has it.
constexpr std::string_view between_stages = "send-receive";

/// One sequence of a rank.
struct Part {
  std::size_t rank = 0;
  const CollectiveSequence* sequence = nullptr;
};

/// Adds why the last rank came as late as it did, by what it did longer than the others.
void add_causes(RankDelay& last, const CollectiveCall& call, const std::array<double, trace::doing_kinds>& others,
                Seconds held) {
  std::array<double, trace::doing_kinds> longer{};
  double sum = 0.0;
  for (std::size_t i = 0; i < longer.size(); ++i)
    sum += longer[i] = std::max(0.0, static_cast<double>(call.seconds_before[i]) - others[i]);
  const double part = sum > held.value() ? held.value() / sum : 1.0;
  for (std::size_t i = 0; i < longer.size(); ++i) last.causes[i] += Seconds(part * longer[i]);
  last.unexplained += std::max(Seconds(0), held - Seconds(part * sum));
}

/// The call at one place of a sequence, on all ranks that have it.
Seconds add_call(const std::vector<Part>& parts, std::size_t place, CollectiveDelay& delay, RankComparison& out) {
  std::array<double, trace::doing_kinds> before{};
  double durations = 0.0;
  const Part* last = &parts.front();
  Ticks longest = 0;
  for (const Part& part : parts) {
    const CollectiveCall& call = part.sequence->calls[place];
    if (call.duration < last->sequence->calls[place].duration) last = &part;
    longest = std::max(longest, call.duration);
    durations += static_cast<double>(call.duration);
    for (std::size_t i = 0; i < before.size(); ++i) before[i] += static_cast<double>(call.seconds_before[i]);
  }
  const CollectiveCall& shortest = last->sequence->calls[place];
  const double ranks = static_cast<double>(parts.size());
  delay.shortest.push_back(shortest.duration);
  delay.moving += trace::seconds(shortest.duration);
  delay.waiting += trace::seconds(durations / ranks) - trace::seconds(shortest.duration);
  if (parts.size() < 2) return Seconds(0);
  for (const Part& part : parts) {
    const CollectiveCall& call = part.sequence->calls[place];
    out.ranks[part.rank].waits += trace::seconds(call.duration - shortest.duration);
  }
  for (std::size_t i = 0; i < before.size(); ++i)
    before[i] = (before[i] - static_cast<double>(shortest.seconds_before[i])) / (ranks - 1.0);
  const Seconds held = trace::seconds((durations - ranks * static_cast<double>(shortest.duration)) / (ranks - 1.0));
  RankDelay& of = out.ranks[last->rank];
  of.held += held;
  add_causes(of, shortest, before, held);
  return trace::seconds(longest - shortest.duration);
}

/// How many calls most of the ranks have: a profile that was cut off has others, and is left out.
std::size_t usual_calls(const std::vector<Part>& parts) {
  std::map<std::size_t, std::size_t> times;
  for (const Part& part : parts) ++times[part.sequence->calls.size()];
  return std::max_element(times.begin(), times.end(), [](const auto& a, const auto& b) { return a.second < b.second; })
      ->first;
}

}  // namespace

RankComparison compare_ranks(const std::vector<trace::RankSummary>& ranks) {
  RankComparison out;
  out.ranks.resize(ranks.size());
  out.groups.resize(ranks.size());
  std::map<std::tuple<std::string_view, std::string_view, std::string_view>, std::uint32_t> known;
  std::vector<std::vector<Part>> all;
  for (std::size_t r = 0; r < ranks.size(); ++r)
    for (const CollectiveSequence& sequence : ranks[r].collectives) {
      const auto place =
          known.try_emplace({sequence.group, sequence.kernel, sequence.kind}, static_cast<std::uint32_t>(all.size()));
      if (place.second) all.emplace_back();
      all[place.first->second].push_back({r, &sequence});
      out.groups[r].push_back(place.first->second);
    }
  out.collectives.resize(all.size());
  for (std::size_t g = 0; g < all.size(); ++g) {
    std::vector<Part>& parts = all[g];
    const std::size_t calls = usual_calls(parts);
    parts.erase(std::remove_if(parts.begin(), parts.end(),
                               [&](const Part& part) { return part.sequence->calls.size() != calls; }),
                parts.end());
    CollectiveDelay& delay = out.collectives[g];
    delay.ranks = parts.size();
    const CollectiveSequence& first = *parts.front().sequence;
    if (first.kind == between_stages && !first.group.empty()) parts.resize(1), delay.ranks = 1;
    std::vector<Seconds> skews;
    for (std::size_t i = 0; i < calls; ++i) skews.push_back(add_call(parts, i, delay, out));
    std::sort(skews.begin(), skews.end());
    if (!skews.empty()) delay.skew = skews[skews.size() / 2], delay.largest_skew = skews.back();
  }
  return out;
}

std::optional<std::size_t> waited_for(const RankComparison& comparison, Seconds least) {
  const std::vector<RankDelay>& ranks = comparison.ranks;
  const auto most = std::max_element(ranks.begin(), ranks.end(),
                                     [](const RankDelay& a, const RankDelay& b) { return a.held < b.held; });
  Seconds all;
  for (const RankDelay& one : ranks) all += one.held;
  constexpr double beyond = 1.5;  // times the mean of all ranks
  if (ranks.size() < 2 || most->held < least || most->held * static_cast<double>(ranks.size()) < beyond * all)
    return std::nullopt;
  return static_cast<std::size_t>(most - ranks.begin());
}

Waits waits_of(const RankComparison& comparison, const std::vector<trace::RankSummary>& ranks, std::size_t rank) {
  Waits out;
  for (std::size_t i = 0; i < ranks[rank].collectives.size(); ++i) {
    const CollectiveDelay& delay = comparison.collectives[comparison.groups[rank][i]];
    const std::vector<CollectiveCall>& calls = ranks[rank].collectives[i].calls;
    if (delay.ranks < 2 || calls.size() != delay.shortest.size()) continue;
    for (std::size_t k = 0; k < calls.size(); ++k)
      if (calls[k].duration > delay.shortest[k]) out[calls[k].event] = calls[k].duration - delay.shortest[k];
  }
  return out;
}

}  // namespace assay::compare

#include "assay/ask/verbs/collective/collective.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "assay/base/text.h"
#include "assay/predict/collective/simulator/link_schedule.h"

namespace assay::verbs::collective_verb {
namespace {

constexpr double most_transfers = 4000;    // more than that cannot be told apart in a picture
constexpr std::ptrdiff_t most_lanes = 16;  // with more links, those of one direction are drawn together
constexpr int hop_classes = 8;             // more shades cannot be told apart

void name_hops(draw::Timeline& timeline) {
  for (int hop = 1; hop <= hop_classes; ++hop)
    timeline.classes.emplace_back(hop < hop_classes ? fmt::format("hop {}", hop) : fmt::format("hop {} and later", hop),
                                  draw::network_colour, 1.6 * std::pow(0.75, hop - 1));
}

/// "X+ from chip 3", "leaf to chip 1".
std::string link_name(const collective::ScheduledLink& link, bool torus, const std::string& place) {
  const bool every = link.chip == collective::ScheduledLink::every_chip;
  if (torus)
    return fmt::format("{}{} from {}", place, link.direction == 0 ? '+' : '-',
                       every ? "every chip" : fmt::format("chip {}", link.chip));
  return fmt::format("{} {} chip{}", place, link.direction == 0 ? "from" : "to",
                     every ? "" : fmt::format(" {}", link.chip));
}

/// A bar of a torus by its hop, and by whose data it is where that is known: "hop 2 of shard 0, 8 MiB".
std::string hop_label(program::Collective kind, const collective::ScheduledTransfer& transfer) {
  const std::string of = !transfer.origin                          ? ""
                         : kind == program::Collective::all_gather ? fmt::format(" of shard {}", *transfer.origin)
                                                                   : fmt::format(" from chip {}", *transfer.origin);
  return fmt::format("hop {}{}, {}", transfer.hop, of, human(transfer.bytes));
}

void note_chips(draw::Timeline& timeline, const collective::LinkSchedule& schedule, bool torus) {
  using Chips = collective::LinkSchedule::Chips;
  const std::string same = "all chips do the same at the same time, so one stands for all";
  if (schedule.chips == Chips::deepest_branches)
    timeline.notes.push_back(
        fmt::format("the array in {} chunks; only the deepest branch of each tree is shown", schedule.chunks));
  else if (torus && schedule.chips == Chips::one_for_all)
    timeline.notes.push_back("on rings " + same);
  else if (!torus)
    timeline.notes.push_back(
        fmt::format("a shard in {} chunk{}; {}", schedule.chunks, schedule.chunks == 1 ? "" : "s",
                    schedule.chips == Chips::one_per_role ? "one chip is shown for each role" : same));
}

/// A lane for each link in use and a bar for each transfer. Bars are classed by hop on a torus and by direction on a
/// tree.
void add_schedule(draw::Timeline& timeline, const collective::LinkSchedule& schedule, program::Collective kind,
                  bool torus, const std::vector<std::string>& places) {
  std::vector<bool> used(schedule.links.size());
  for (const collective::ScheduledTransfer& transfer : schedule.transfers) used[transfer.link] = true;
  std::vector<std::size_t> lane(schedule.links.size());
  const bool together = std::count(used.begin(), used.end(), true) > most_lanes;
  std::map<std::pair<std::size_t, int>, std::size_t> lanes;  // by place and direction
  for (std::size_t i = 0; i < schedule.links.size(); ++i) {
    if (!used[i]) continue;
    const collective::ScheduledLink& link = schedule.links[i];
    const auto [known, is_new] = lanes.try_emplace({link.place, link.direction}, timeline.lanes.size());
    lane[i] = together ? known->second : timeline.lanes.size();
    if (together && !is_new)
      timeline.lanes[lane[i]].members += 1;
    else
      timeline.lanes.push_back({link_name(link, torus, places[link.place])});
  }
  for (const auto& [where, at] : lanes)
    if (together && timeline.lanes[at].members > 1.0)
      timeline.lanes[at].name = fmt::format("{}{}, {} links", places[where.first],
                                            torus               ? (where.second == 0 ? "+" : "-")
                                            : where.second == 0 ? " up"
                                                                : " down",
                                            human_number(timeline.lanes[at].members));
  for (const collective::ScheduledTransfer& transfer : schedule.transfers)
    timeline.bars.push_back(
        {lane[transfer.link], transfer.start, transfer.end, torus ? hop_label(kind, transfer) : human(transfer.bytes),
         torus ? std::min(transfer.hop, hop_classes) - 1 : schedule.links[transfer.link].direction});
  if (torus)
    name_hops(timeline);
  else
    timeline.classes = {{"into the switches", draw::network_colour, 1.4},
                        {"out of the switches", draw::network_colour, 0.5}};
  note_chips(timeline, schedule, torus);
}

/// The closed form, spread evenly over its hops.
void add_hops(draw::Timeline& timeline, program::Collective kind, Bytes array, const collective::CollectiveGroup& group,
              const std::vector<std::string>& axis_names, const std::vector<std::string>& level_names) {
  const collective::CollectiveCost<Plain> cost = collective::collective_cost(Plain{}, kind, array, group);
  const auto hops = static_cast<std::int64_t>(std::max(1.0, collective::collective_hops(kind, group)));
  for (std::size_t axis = 0; axis < group.axes.size(); ++axis)
    for (int direction = 0; direction < (group.one_way ? 1 : 2); ++direction) {
      for (std::int64_t hop = 0; hop < hops; ++hop)
        timeline.bars.push_back(
            {timeline.lanes.size(), (static_cast<double>(hop) / static_cast<double>(hops)) * cost.lower,
             (static_cast<double>(hop + 1) / static_cast<double>(hops)) * cost.lower, fmt::format("hop {}", hop + 1),
             static_cast<int>(std::min<std::int64_t>(hop, hop_classes - 1))});
      timeline.lanes.push_back({fmt::format("{}{}", axis_names[axis], direction == 0 ? '+' : '-')});
    }
  for (const collective::LevelTraffic& level : collective::level_traffic(kind, array, group)) {
    timeline.bars.push_back(
        {timeline.lanes.size(), Seconds(0), level.time, human(level.into_child) + " into each child", 0});
    timeline.lanes.push_back({level_names[level.level]});
  }
  if (!group.axes.empty()) name_hops(timeline);
  timeline.notes.push_back(
      group.axes.empty()
          ? "too many transfers to draw individually: bars show how long each level is busy in the closed form"
          : "too many transfers to draw individually: bars show the closed form, spread evenly over its hops");
}

}  // namespace

std::vector<std::string> torus_axis_names(const hardware::Cluster& cluster, const std::vector<std::string>& axes) {
  std::vector<std::string> names;
  if (!cluster.torus) return names;
  for (const hardware::Axis& axis : cluster.torus->axes)
    if (axes.empty() && axis.size > 1) names.push_back(axis.name);
  for (const std::string& text : axes) {
    const std::string name(trim(std::string_view(text).substr(0, text.find('='))));
    const auto& all = cluster.torus->axes;
    const auto found =
        std::find_if(all.begin(), all.end(), [&](const hardware::Axis& axis) { return axis.name == name; });
    const bool alone = text.find('=') != std::string::npos && trim(text.substr(text.find('=') + 1)).substr(0, 2) == "1";
    if (found != all.end() && found->size > 1 && !alone) names.push_back(text);
  }
  return names;
}

draw::Timeline collective_timeline(program::Collective kind, Bytes array, const collective::CollectiveGroup& group,
                                   const std::vector<std::string>& axis_names,
                                   const std::vector<std::string>& level_names) {
  std::vector<std::string> names = axis_names;
  if (names.size() != group.axes.size()) {
    names.clear();
    for (std::size_t i = 0; i < group.axes.size(); ++i) names.push_back(fmt::format("axis {}", i + 1));
  }
  draw::Timeline timeline;
  const collective::CollectiveCost<Plain> cost = collective::collective_cost(Plain{}, kind, array, group);
  timeline.title =
      fmt::format("{} of {} over {} devices", program::name(kind), human(array), human_number(group.devices));
  timeline.subtitle = collective::algorithm(kind, group);
  const auto schedule = collective::link_schedule(kind, array, group, most_transfers);
  if (schedule)
    add_schedule(timeline, *schedule, kind, group.torus(), group.torus() ? names : level_names);
  else
    add_hops(timeline, kind, array, group, names, level_names);
  timeline.marks.push_back({cost.lower, "closed form"});
  if (schedule && cost.latency > Seconds(0))
    timeline.notes.push_back(
        fmt::format("a bar is the time on the link; data arrives {} later", human(group.hop_latency)));
  return timeline;
}

}  // namespace assay::verbs::collective_verb

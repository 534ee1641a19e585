#include "assay/verbs/collective/timeline.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <queue>
#include <tuple>

#include "assay/base/text.h"
#include "assay/network/simulator/schedules.h"
#include "assay/network/simulator/simulator.h"

namespace assay::verbs::collective {
namespace {

constexpr double most_transfers = 4000;  // more than that is no picture any more
constexpr int hop_classes = 8;           // as many as there are colours

/// When each transfer occupies its link, which crossing of a link it is for its data, and where that set out; -1 if it
/// is a sum of several chips' data.
struct Moment {
  double start = 0, end = 0;
  int hop = 0;
  std::int64_t origin = unknown;

  static constexpr std::int64_t unknown = -2, several = -1;
  /// Takes over what is known of the data it waits for.
  void follow(const Moment& before) {
    hop = std::max(hop, before.hop);
    origin = origin == unknown || origin == before.origin ? before.origin : several;
  }
};

/// What a picture calls a link, and who sends over it (-1: one chip that stands for all).
struct NamedLink {
  std::string name = {};
  std::int64_t sender = -1;
};

/// Runs transfers by the rules of run_transfers and keeps every moment; the totals of both must agree.
std::vector<Moment> moments(const network::LinkNetwork& network, const network::TransferGraph& graph,
                            const std::vector<NamedLink>& links) {
  const auto at = [](std::int32_t i) { return static_cast<std::size_t>(i); };
  std::vector<std::vector<std::int32_t>> successors(at(graph.size()));
  for (std::size_t i = 0; i < graph.before.size(); ++i) successors[at(graph.before[i])].push_back(graph.after[i]);
  std::vector<std::int32_t> waits = graph.waits_for;
  std::vector<double> free(network.size(), 0.0);
  std::vector<Moment> when(at(graph.size()));
  // Earliest arrival first, then the lower link, then the order in which transfers were sent.
  using Arrival = std::tuple<double, std::int32_t, std::int64_t, std::int32_t>;
  std::priority_queue<Arrival, std::vector<Arrival>, std::greater<>> arrivals;
  std::int64_t sent = 0;
  double last = 0.0;
  const auto release = [&](const auto& self, std::int32_t transfer, double time) -> void {
    Moment& moment = when[at(transfer)];
    const std::int32_t link = graph.link[at(transfer)];
    if (link != network::TransferGraph::no_link) {
      moment.start = std::max(time, free[at(link)]);
      moment.end = free[at(link)] = moment.start + graph.bytes[at(transfer)] * network.seconds_per_byte[at(link)];
      if (moment.hop++ == 0) moment.origin = links[at(link)].sender;
      arrivals.emplace(moment.end + network.latency[at(link)], link, sent++, transfer);
      return;
    }
    for (std::int32_t next : successors[at(transfer)]) {
      when[at(next)].follow(moment);
      if (--waits[at(next)] == 0) self(self, next, time);
    }
  };
  for (std::int32_t i = 0; i < graph.size(); ++i)
    if (graph.waits_for[at(i)] == 0) release(release, i, 0.0);
  while (!arrivals.empty()) {
    const auto [time, link, order, transfer] = arrivals.top();
    arrivals.pop();
    last = time;
    for (std::int32_t next : successors[at(transfer)]) {
      when[at(next)].follow(when[at(transfer)]);
      if (--waits[at(next)] == 0) release(release, next, time);
    }
  }
  if (const double total = network::run_transfers(network, graph).time; std::abs(total - last) > 1e-9 * total)
    throw InternalError("a timeline and its simulation end at different times");
  return when;
}

/// Adds a lane for each link in use and a bar for each transfer, which `describe` labels and classifies.
template <class F>
void add_moments(draw::Timeline& timeline, const network::LinkNetwork& network, const network::TransferGraph& graph,
                 const std::vector<NamedLink>& links, const F& describe) {
  std::vector<std::size_t> lane(network.size());
  std::vector<bool> used(network.size());
  for (std::int32_t link : graph.link)
    if (link != network::TransferGraph::no_link) used[static_cast<std::size_t>(link)] = true;
  for (std::size_t i = 0; i < links.size(); ++i) {
    if (!used[i]) continue;
    lane[i] = timeline.lanes.size();
    timeline.lanes.push_back({links[i].name});
  }
  const std::vector<Moment> when = moments(network, graph, links);
  for (std::size_t i = 0; i < when.size(); ++i) {
    if (graph.link[i] == network::TransferGraph::no_link) continue;
    const auto link = static_cast<std::size_t>(graph.link[i]);
    const auto [label, colour_class] = describe(link, when[i], human(Bytes(graph.bytes[i])));
    timeline.bars.push_back({lane[link], Seconds(when[i].start), Seconds(when[i].end), label, colour_class});
  }
}

/// A bar by its hop, and by whose data it is where that is known: "hop 2 of shard 0, 8 MiB".
std::pair<std::string, int> by_hop(network::CollectiveKind kind, const Moment& moment, const std::string& bytes) {
  const std::string of = moment.origin < 0                             ? ""
                         : kind == network::CollectiveKind::all_gather ? fmt::format(" of shard {}", moment.origin)
                                                                       : fmt::format(" from chip {}", moment.origin);
  return {fmt::format("hop {}{}, {}", moment.hop, of, bytes), std::min(moment.hop, hop_classes) - 1};
}

void name_hops(draw::Timeline& timeline) {
  for (int hop = 1; hop <= hop_classes; ++hop)
    timeline.classes.push_back(hop < hop_classes ? fmt::format("hop {}", hop) : fmt::format("hop {} and later", hop));
}

/// "axis 0+ from chip 3" with the axis's name; one chip that stands for all is not numbered.
std::vector<NamedLink> link_names(const network::TorusLinks& torus, const std::vector<std::string>& axis_names) {
  std::vector<NamedLink> names(torus.network.size());
  const bool spelt_out =
      std::all_of(torus.axes.begin(), torus.axes.end(), [](const auto& axis) { return axis.spelt_out == axis.size; });
  for (std::size_t axis = 0; axis < torus.axes.size(); ++axis)
    for (int direction = 0; direction < 2; ++direction)
      for (std::int64_t chip = 0; chip < torus.positions; ++chip) {
        const std::int32_t link = torus.link(axis, direction, chip);
        if (link == network::TransferGraph::no_link) continue;
        const std::string of = torus.positions == 1 ? "every chip" : fmt::format("chip {}", chip);
        names[static_cast<std::size_t>(link)] = {
            fmt::format("{}{} from {}", axis_names[axis], direction == 0 ? '+' : '-', of), spelt_out ? chip : -1};
      }
  return names;
}

bool rooted(network::CollectiveKind kind) {
  return kind == network::CollectiveKind::broadcast || kind == network::CollectiveKind::reduce;
}

/// Adds the simulated transfers if they are few enough to look at.
bool add_torus(draw::Timeline& timeline, network::CollectiveKind kind, Bytes array,
               const network::CollectiveGroup& group, const std::vector<std::string>& axis_names) {
  network::SimulationOptions options;
  options.both_directions = !group.one_way;
  if (kind == network::CollectiveKind::ragged_all_to_all) options.skew = group.imbalance - 1.0;
  options.use_symmetry = options.skew == 0.0 && kind != network::CollectiveKind::point_to_point;
  network::TransferGraph graph;
  if (rooted(kind)) {
    constexpr std::int64_t chunks = 32;
    network::RootedTorus torus(group, false);
    if (static_cast<double>(torus.edges() * chunks) > most_transfers) return false;
    torus.add(graph, kind, array.value(), chunks);
    std::vector<NamedLink> links;
    for (const std::string& name : torus.names) {
      links.push_back({name});
      for (std::size_t axis = 0; axis < axis_names.size(); ++axis)
        if (const std::string number = fmt::format("axis {}", axis);
            name.starts_with(number + "+") || name.starts_with(number + "-"))
          links.back().name = axis_names[axis] + name.substr(number.size());
    }
    add_moments(
        timeline, torus.network, graph, links,
        [&](std::size_t, const Moment& moment, const std::string& bytes) { return by_hop(kind, moment, bytes); });
    name_hops(timeline);
    timeline.notes.push_back(
        fmt::format("the array in {} chunks; only the deepest branch of each tree is shown", chunks));
    return true;
  }
  options.chunks = 1;
  if (network::simulation_events(kind, group, options) > most_transfers) return false;
  const network::CollectiveKind schedule =
      kind == network::CollectiveKind::ragged_all_to_all ? network::CollectiveKind::all_to_all : kind;
  const network::TorusLinks torus(group, options.use_symmetry);
  network::add_torus_collective(graph, torus, {schedule, array, {}}, options, options.chunks);
  add_moments(timeline, torus.network, graph, link_names(torus, axis_names),
              [&](std::size_t, const Moment& moment, const std::string& bytes) { return by_hop(kind, moment, bytes); });
  name_hops(timeline);
  if (torus.positions < static_cast<std::int64_t>(group.devices))
    timeline.notes.push_back("on rings all chips do the same at the same time, so one stands for all");
  return true;
}

bool add_tree(draw::Timeline& timeline, network::CollectiveKind kind, Bytes array,
              const network::CollectiveGroup& group, const std::vector<std::string>& level_names) {
  const bool roles =
      rooted(kind) || kind == network::CollectiveKind::permute || kind == network::CollectiveKind::point_to_point;
  const bool adds = kind == network::CollectiveKind::all_reduce &&
                    std::any_of(group.levels.begin(), group.levels.end(),
                                [](const auto& level) { return level.reduces && level.groups > 1.0; });
  if (kind == network::CollectiveKind::ragged_all_to_all || (!roles && !adds && group.devices > 512.0)) return false;
  const network::TreeLinks tree(group, roles ? network::tree_roles : 1);
  if (tree.stages.empty()) return false;
  // Enough chunks that filling the way through the levels is a small part of the picture.
  const std::int64_t chunks =
      roles || adds ? 32 : std::clamp<std::int64_t>(512 / static_cast<std::int64_t>(group.devices), 4, 32);
  network::TransferGraph graph;
  if (roles)
    network::add_tree_rooted(graph, tree, kind, array.value(), chunks);
  else if (adds)
    network::add_tree_in_network(graph, tree, array.value(), chunks);
  else
    network::add_tree_collective(graph, tree, {kind, array, {}}, {}, chunks);
  if (static_cast<double>(graph.size()) > 4.0 * most_transfers) return false;
  // Up and down are what tells bars apart here; a chunk has the same hops whenever it comes.
  std::vector<NamedLink> links;
  std::vector<int> classes;
  for (const auto& level : group.levels) {
    if (level.groups <= 1.0) continue;
    for (int direction = 0; direction < 2; ++direction)
      for (std::int64_t p = 0; p < tree.positions; ++p) {
        links.push_back({fmt::format("{} {} chip{}", level_names[level.level], direction == 0 ? "from" : "to",
                                     tree.positions == 1 ? "" : fmt::format(" {}", p))});
        classes.push_back(direction);
      }
  }
  if (links.size() != tree.network.size())
    throw InternalError("the stages of a tree do not match the levels of its group");
  add_moments(timeline, tree.network, graph, links, [&](std::size_t link, const Moment&, const std::string& bytes) {
    return std::pair(bytes, classes[link]);
  });
  timeline.classes = {"into the switches", "out of the switches"};
  timeline.notes.push_back(fmt::format(
      "a shard in {} chunk{}; {}", chunks, chunks == 1 ? "" : "s",
      roles ? "one chip is shown for each role" : "all chips do the same at the same time, so one stands for all"));
  return true;
}

/// The closed form, spread evenly over its hops.
void add_hops(draw::Timeline& timeline, network::CollectiveKind kind, Bytes array,
              const network::CollectiveGroup& group, const std::vector<std::string>& axis_names,
              const std::vector<std::string>& level_names) {
  const network::CollectiveCost<Plain> cost = network::collective_cost(Plain{}, kind, array, group);
  const auto hops = static_cast<std::int64_t>(std::max(1.0, network::collective_hops(kind, group)));
  for (std::size_t axis = 0; axis < group.axes.size(); ++axis)
    for (int direction = 0; direction < (group.one_way ? 1 : 2); ++direction) {
      for (std::int64_t hop = 0; hop < hops; ++hop)
        timeline.bars.push_back(
            {timeline.lanes.size(), (static_cast<double>(hop) / static_cast<double>(hops)) * cost.lower,
             (static_cast<double>(hop + 1) / static_cast<double>(hops)) * cost.lower, fmt::format("hop {}", hop + 1),
             static_cast<int>(std::min<std::int64_t>(hop, hop_classes - 1))});
      timeline.lanes.push_back({fmt::format("{}{}", axis_names[axis], direction == 0 ? '+' : '-')});
    }
  for (const auto& level : group.levels) {
    if (level.groups <= 1.0) continue;
    const Bytes moved = network::share_into_child(kind, group, level) * array;
    const Seconds time = moved / (network::lanes_used(kind, group, level) * level.chip_bandwidth);
    timeline.bars.push_back({timeline.lanes.size(), Seconds(0), time, human(moved) + " into each child", 0});
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

draw::Timeline collective_timeline(network::CollectiveKind kind, Bytes array, const network::CollectiveGroup& group,
                                   const std::vector<std::string>& axis_names,
                                   const std::vector<std::string>& level_names) {
  std::vector<std::string> names = axis_names;
  if (names.size() != group.axes.size()) {
    names.clear();
    for (std::size_t i = 0; i < group.axes.size(); ++i) names.push_back(fmt::format("axis {}", i + 1));
  }
  draw::Timeline timeline;
  const network::CollectiveCost<Plain> cost = network::collective_cost(Plain{}, kind, array, group);
  timeline.title =
      fmt::format("{} of {} over {} devices", network::name(kind), human(array), human_number(group.devices));
  timeline.subtitle = network::algorithm(kind, group);
  const bool drawn = !group.mixed() && (group.torus() ? add_torus(timeline, kind, array, group, names)
                                                      : add_tree(timeline, kind, array, group, level_names));
  if (!drawn) add_hops(timeline, kind, array, group, names, level_names);
  timeline.marks.push_back({cost.lower, "closed form"});
  if (drawn && cost.latency > Seconds(0))
    timeline.notes.push_back(
        fmt::format("a bar is the time on the link; data arrives {} later", human(group.hop_latency)));
  return timeline;
}

}  // namespace assay::verbs::collective

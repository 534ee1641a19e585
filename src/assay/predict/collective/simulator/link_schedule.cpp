#include "assay/predict/collective/simulator/link_schedule.h"

#include <algorithm>
#include <cmath>
#include <queue>
#include <tuple>

#include "assay/base/result.h"
#include "assay/predict/collective/simulator/schedules.h"
#include "assay/predict/collective/simulator/simulator.h"

namespace assay::collective {
namespace {

constexpr std::int64_t rooted_schedule_chunks = 32;

/// When a transfer occupies its link, how many links its data has crossed, and where the data originated.
struct Moment {
  static constexpr std::int64_t unknown = -2, several = -1;

  Seconds start, end;
  int hop = 0;
  std::int64_t origin = unknown;

  /// Inherits from a transfer that it depends on.
  void follow(const Moment& before) {
    hop = std::max(hop, before.hop);
    origin = origin == unknown || origin == before.origin ? before.origin : several;
  }
};

/// Runs transfers by the rules of run_transfers and records every time.
class MomentRun {
 public:
  MomentRun(const LinkNetwork& network, const TransferGraph& graph, const std::vector<ScheduledLink>& links)
      : network_(network),
        graph_(graph),
        links_(links),
        successors_(graph.link.size()),
        waits_(graph.waits_for),
        free_(network.size()),
        moments_(graph.link.size()) {
    for (std::size_t i = 0; i < graph.before.size(); ++i) successors_[index(graph.before[i])].push_back(graph.after[i]);
  }

  std::vector<Moment> finish() {
    for (std::int32_t i = 0; i < graph_.size(); ++i)
      if (graph_.waits_for[index(i)] == 0) release(i, Seconds());
    Seconds last;
    while (!arrivals_.empty()) {
      const auto [time, link, order, transfer] = arrivals_.top();
      arrivals_.pop();
      last = time;
      release_successors(transfer, time);
    }
    if (const Seconds total = run_transfers(network_, graph_).time; std::abs(last / total - 1.0) > 1e-9)
      throw InternalError("a schedule and its simulation end at different times");
    return std::move(moments_);
  }

 private:
  // Earliest arrival first, then the lower link, then the order in which transfers were sent.
  using Arrival = std::tuple<Seconds, std::int32_t, std::int64_t, std::int32_t>;

  static std::size_t index(std::int32_t i) { return static_cast<std::size_t>(i); }

  void release(std::int32_t transfer, Seconds time) {
    const std::int32_t link = graph_.link[index(transfer)];
    if (link == TransferGraph::no_link) return release_successors(transfer, time);
    Moment& moment = moments_[index(transfer)];
    const ScheduledLink& described = links_[index(link)];
    moment.start = std::max(time, free_[index(link)]);
    moment.end = moment.start + graph_.bytes[index(transfer)] * network_.per_byte[index(link)];
    free_[index(link)] = moment.end;
    if (moment.hop++ == 0) moment.origin = described.tracks_origin ? described.chip : Moment::several;
    arrivals_.emplace(moment.end + network_.latency[index(link)], link, sent_++, transfer);
  }

  void release_successors(std::int32_t transfer, Seconds time) {
    for (const std::int32_t next : successors_[index(transfer)]) {
      moments_[index(next)].follow(moments_[index(transfer)]);
      if (--waits_[index(next)] == 0) release(next, time);
    }
  }

  const LinkNetwork& network_;
  const TransferGraph& graph_;
  const std::vector<ScheduledLink>& links_;
  std::vector<std::vector<std::int32_t>> successors_;
  std::vector<std::int32_t> waits_;
  std::vector<Seconds> free_;  ///< when each link has sent all it was given
  std::vector<Moment> moments_;
  std::priority_queue<Arrival, std::vector<Arrival>, std::greater<>> arrivals_;
  std::int64_t sent_ = 0;
};

void run_schedule(LinkSchedule& schedule, const LinkNetwork& network, const TransferGraph& graph) {
  const std::vector<Moment> moments = MomentRun(network, graph, schedule.links).finish();
  for (std::size_t i = 0; i < moments.size(); ++i) {
    if (graph.link[i] == TransferGraph::no_link) continue;
    const Moment& moment = moments[i];
    schedule.transfers.push_back({static_cast<std::size_t>(graph.link[i]), moment.start, moment.end, graph.bytes[i],
                                  moment.hop, moment.origin < 0 ? std::nullopt : std::optional(moment.origin)});
  }
}

std::vector<ScheduledLink> torus_links(const TorusLinks& torus) {
  std::vector<ScheduledLink> links(torus.network.size());
  const bool all_chips =
      std::all_of(torus.axes.begin(), torus.axes.end(), [](const auto& axis) { return axis.simulated == axis.size; });
  for (std::size_t axis = 0; axis < torus.axes.size(); ++axis)
    for (int direction = 0; direction < 2; ++direction)
      for (std::int64_t chip = 0; chip < torus.positions; ++chip)
        if (const std::int32_t link = torus.link(axis, direction, chip); link != TransferGraph::no_link)
          links[static_cast<std::size_t>(link)] = {axis, direction,
                                                   torus.positions == 1 ? ScheduledLink::every_chip : chip, all_chips};
  return links;
}

std::optional<LinkSchedule> rooted_torus_schedule(program::Collective kind, Bytes array, const CollectiveGroup& group,
                                                  double most_transfers) {
  RootedTorus torus(group, false);
  if (static_cast<double>(torus.edges() * rooted_schedule_chunks) > most_transfers) return std::nullopt;
  TransferGraph graph;
  torus.add(graph, kind, array, rooted_schedule_chunks);
  LinkSchedule schedule;
  schedule.chunks = rooted_schedule_chunks;
  schedule.chips = LinkSchedule::Chips::deepest_branches;
  for (const RootedTorus::LinkEnd& end : torus.ends) schedule.links.push_back({end.axis, end.direction, end.from});
  run_schedule(schedule, torus.network, graph);
  return schedule;
}

std::optional<LinkSchedule> torus_schedule(program::Collective kind, Bytes array, const CollectiveGroup& group,
                                           double most_transfers) {
  SimulationOptions options;
  options.both_directions = !group.one_way;
  if (kind == program::Collective::ragged_all_to_all) options.skew = group.imbalance - 1.0;
  options.use_symmetry = options.skew == 0.0 && kind != program::Collective::point_to_point;
  options.chunks = 1;
  if (simulation_events(kind, group, options) > most_transfers) return std::nullopt;
  const program::Collective sent =
      kind == program::Collective::ragged_all_to_all ? program::Collective::all_to_all : kind;
  const TorusLinks torus(group, options.use_symmetry);
  TransferGraph graph;
  add_torus_collective(graph, torus, {sent, array, {}}, options, options.chunks);
  LinkSchedule schedule;
  if (torus.positions < static_cast<std::int64_t>(group.devices)) schedule.chips = LinkSchedule::Chips::one_for_all;
  schedule.links = torus_links(torus);
  run_schedule(schedule, torus.network, graph);
  return schedule;
}

std::optional<LinkSchedule> tree_schedule(program::Collective kind, Bytes array, const CollectiveGroup& group,
                                          double most_transfers) {
  const bool roles = is_rooted(kind) || is_one_to_one(kind);
  const bool adds = kind == program::Collective::all_reduce &&
                    std::any_of(group.levels.begin(), group.levels.end(),
                                [](const auto& level) { return level.reduces && level.groups > 1.0; });
  constexpr double most_devices = 512;
  if (kind == program::Collective::ragged_all_to_all || (!roles && !adds && group.devices > most_devices))
    return std::nullopt;
  const TreeLinks tree(group, roles ? tree_roles : 1);
  if (tree.stages.empty()) return std::nullopt;
  LinkSchedule schedule;
  schedule.chips = roles ? LinkSchedule::Chips::one_per_role : LinkSchedule::Chips::one_for_all;
  // Enough chunks that filling the levels takes a small part of the time.
  schedule.chunks = roles || adds ? rooted_schedule_chunks
                                  : std::clamp<std::int64_t>(512 / static_cast<std::int64_t>(group.devices), 4, 32);
  TransferGraph graph;
  if (roles)
    add_tree_rooted(graph, tree, kind, array, schedule.chunks);
  else if (adds)
    add_tree_in_network(graph, tree, array, schedule.chunks);
  else
    add_tree_collective(graph, tree, {kind, array, {}}, {}, schedule.chunks);
  if (static_cast<double>(graph.size()) > 4.0 * most_transfers) return std::nullopt;
  for (const auto& level : group.levels) {
    if (level.groups <= 1.0) continue;
    for (int direction = 0; direction < 2; ++direction)
      for (std::int64_t p = 0; p < tree.positions; ++p)
        schedule.links.push_back({level.level, direction, tree.positions == 1 ? ScheduledLink::every_chip : p});
  }
  if (schedule.links.size() != tree.network.size())
    throw InternalError("the stages of a tree do not match the levels of its group");
  run_schedule(schedule, tree.network, graph);
  return schedule;
}

}  // namespace

std::optional<LinkSchedule> link_schedule(program::Collective kind, Bytes array, const CollectiveGroup& group,
                                          double most_transfers) {
  if (group.mixed()) return std::nullopt;
  if (!group.torus()) return tree_schedule(kind, array, group, most_transfers);
  return is_rooted(kind) ? rooted_torus_schedule(kind, array, group, most_transfers)
                         : torus_schedule(kind, array, group, most_transfers);
}

}  // namespace assay::collective

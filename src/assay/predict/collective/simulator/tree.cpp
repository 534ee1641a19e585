// Collectives on a switched network. Ranks that differ only in the lowest digit exchange over the scale-up ports; all
// others over the ports above, rail by rail: chip i of a node talks to chip i of the other nodes.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "assay/base/index.h"
#include "assay/base/result.h"
#include "assay/predict/collective/simulator/schedules.h"

namespace assay::collective {
namespace {

/// The part of a tree below the ports of the upper network, and the part above.
struct Split {
  explicit Split(const TreeLinks& tree) : has_local(tree.stages.front().scale_up || tree.stages.size() == 1) {
    local = has_local ? tree.stages.front().groups : 1;
    upper = tree.participants / local;
    first = has_local ? 1 : 0;
  }
  bool has_local;
  std::int64_t local, upper;
  std::size_t first;  ///< first stage of the upper network
};

/// A graph under construction, and the tree that its transfers cross.
struct TreeWork {
  TransferGraph& graph;
  const TreeLinks& tree;
  Split split{tree};
};

/// Sends from one participant to another at a digit-wise offset, after `before` (if any). Returns the last hop.
std::int32_t send(const TreeWork& work, std::int64_t from, std::int64_t offset, Bytes bytes, bool last,
                  std::int32_t before) {
  TransferGraph& graph = work.graph;
  const TreeLinks& tree = work.tree;
  const Split& split = work.split;
  const std::int64_t to = tree.shifted(from, offset);
  std::size_t low = 0, top = 0;
  if (offset >= split.local) {
    low = split.first;
    top = tree.stages.size() - 1;
    while (offset / tree.stages[top].below == 0) --top;
  }
  std::int32_t previous = before;
  const auto hop = [&](std::int32_t link, bool is_last) {
    const std::int32_t transfer = graph.add(link, bytes, is_last);
    if (previous >= 0) graph.order(previous, transfer);
    previous = transfer;
  };
  for (std::size_t stage = low; stage <= top; ++stage) hop(tree.up(stage, from), false);
  for (std::size_t stage = top + 1; stage > low; --stage) hop(tree.down(stage - 1, to), last && stage - 1 == low);
  return previous;
}

/// Every shard crosses the upper network once per rail; each chip then sends everything it has to its node.
void add_gather(const TreeWork& work, Bytes size, const std::vector<std::int32_t>& roots) {
  const TreeLinks& tree = work.tree;
  const Split& split = work.split;
  const std::int64_t positions = tree.positions;
  std::vector<std::int32_t> held(at(split.upper * positions), -1);
  for (std::int64_t p = 0; p < positions && !roots.empty(); ++p) held[at(p)] = roots[at(p)];
  for (std::int64_t d = 1; d < split.upper; ++d)
    for (std::int64_t p = 0; p < positions; ++p)
      held[at(d * positions + tree.shifted(p, d * split.local))] =
          send(work, p, d * split.local, size, true, roots.empty() ? -1 : roots[at(p)]);
  for (std::int64_t d = 0; d < split.upper; ++d)
    for (std::int64_t offset = 1; offset < split.local; ++offset)
      for (std::int64_t p = 0; p < positions; ++p) send(work, p, offset, size, true, held[at(d * positions + p)]);
}

/// Adds a reduce-scatter, add_gather() reversed. Returns, for each participant, when its shard is complete.
std::vector<std::int32_t> add_scatter(const TreeWork& work, Bytes size) {
  TransferGraph& graph = work.graph;
  const TreeLinks& tree = work.tree;
  const Split& split = work.split;
  const std::int64_t positions = tree.positions;
  std::vector<std::int32_t> complete, summed(at(split.upper * positions));
  for (std::int64_t p = 0; p < positions; ++p) complete.push_back(graph.add_meeting());
  for (std::int32_t& meeting : summed) meeting = graph.add_meeting();
  for (std::int64_t d = split.upper - 1; d >= 0; --d)
    for (std::int64_t offset = 1; offset < split.local; ++offset)
      for (std::int64_t p = 0; p < positions; ++p)
        graph.order(send(work, p, offset, size, d == 0, -1), summed[at(d * positions + tree.shifted(p, offset))]);
  for (std::int64_t d = split.upper - 1; d >= 0; --d)
    for (std::int64_t p = 0; p < positions; ++p) {
      const std::int32_t sum = summed[at(d * positions + p)];
      if (d == 0)
        graph.order(sum, complete[at(p)]);
      else
        graph.order(send(work, p, d * split.local, size, true, sum), complete[at(tree.shifted(p, d * split.local))]);
    }
  return complete;
}

/// Adds a chain of transfers; returns the last.
std::int32_t chain(TransferGraph& graph, std::int32_t before,
                   std::initializer_list<std::pair<std::int32_t, Bytes>> hops) {
  for (const auto& [link, bytes] : hops) {
    const std::int32_t transfer = graph.add(link, bytes, false);
    if (before >= 0) graph.order(before, transfer);
    before = transfer;
  }
  return before;
}

/// Chunks in flight at once. A chip that gave all chunks to its port at once would delay the results of the first ones
/// behind the last; too few would leave links idle during a hop's latency.
class Window {
 public:
  Window(const TreeLinks& tree, Bytes chunk_bytes) {
    double wait = 0;  // chunks that fit into the round-trip latency through all levels
    for (std::size_t link = 0; link < tree.network.size(); ++link)
      wait = std::max(wait, tree.network.latency[link] / (tree.network.per_byte[link] * chunk_bytes));
    size_ = 8 + static_cast<std::size_t>(std::min(8.0 * static_cast<double>(tree.stages.size()) * wait, 1e9));
  }
  std::int32_t start() const { return finished_.size() < size_ ? -1 : finished_[finished_.size() - size_]; }
  void finish(std::int32_t transfer) { finished_.push_back(transfer); }

 private:
  std::size_t size_;
  std::vector<std::int32_t> finished_;
};

/// Sends up to the top of the upper network and down again over the link shares of one participant. Where switches
/// reduce (all-reduce) or copy (broadcast), each sends one copy up, spread over the shares of all participants below
/// it.
std::int32_t over_the_top(const TreeWork& work, std::int64_t from, std::int64_t to, Bytes bytes, std::int32_t before,
                          bool is_spread) {
  TransferGraph& graph = work.graph;
  const TreeLinks& tree = work.tree;
  const std::size_t first = work.split.first;
  const auto share = [&](std::size_t stage) {
    return is_spread ? bytes / static_cast<double>(tree.stages[stage].below / tree.stages[first].below) : bytes;
  };
  for (std::size_t stage = first; stage < tree.stages.size(); ++stage)
    before = chain(graph, before, {{tree.up(stage, from), share(stage)}});
  for (std::size_t stage = tree.stages.size(); stage > first; --stage)
    before = chain(graph, before, {{tree.down(stage - 1, to), share(stage - 1)}});
  return before;
}

bool upper_reduces(const TreeLinks& tree, const Split& split) {
  for (std::size_t stage = split.first; stage < tree.stages.size(); ++stage)
    if (!tree.stages[stage].reduces) return false;
  return split.upper > 1;
}

/// The links of one participant into and out of a stage.
struct Ports {
  std::int32_t up, down;
};

/// Reduces the parts of n participants into the first: each of the others reduces one piece and sends it there.
/// `other` represents the n - 1.
std::int32_t sum_to_first(TransferGraph& graph, std::int64_t n, Bytes bytes, const Ports& first, const Ports& other,
                          std::int32_t before) {
  const Bytes piece = bytes / static_cast<double>(n - 1);
  const std::int32_t sum = graph.add_meeting();
  graph.order(chain(graph, before, {{first.up, bytes}, {other.down, piece}}), sum);
  for (std::int64_t i = 2; i < n; ++i) graph.order(chain(graph, before, {{other.up, piece}, {other.down, piece}}), sum);
  return chain(graph, sum, {{other.up, piece}, {first.down, bytes}});
}

}  // namespace

TreeLinks::TreeLinks(const CollectiveGroup& group, std::int64_t simulated) {
  for (std::size_t i = 0; i < group.levels.size(); ++i) {
    const auto& level = group.levels[i];
    const std::int64_t groups = std::llround(level.groups);
    if (groups <= 1) continue;
    stages.push_back({groups, participants, level.lanes / static_cast<double>(participants) * level.chip_bandwidth,
                      level.reduces, i == 0, fmt::format("level {}", i)});
    participants *= groups;
  }
  positions = simulated == 0 ? participants : simulated;
  network.devices = positions;
  const Seconds latency = group.hop_latency;
  for (std::size_t stage = 0; stage < stages.size(); ++stage)
    for (int direction = 0; direction < 2; ++direction)
      for (std::int64_t p = 0; p < positions; ++p) {
        // The last hop into a chip adds no latency: a message between neighbours takes one hop.
        const bool into_chip = direction == 1 && (stage == 0 || (stage == 1 && stages[0].scale_up));
        network.add(stages[stage].bandwidth, into_chip ? Seconds() : latency, into_chip ? p : -1);
        names.push_back(fmt::format("{} {} {}", stages[stage].name, direction == 0 ? "from" : "to", p));
      }
}

std::int32_t TreeLinks::up(std::size_t stage, std::int64_t position) const {
  return static_cast<std::int32_t>(static_cast<std::int64_t>(stage) * 2 * positions + position);
}
std::int32_t TreeLinks::down(std::size_t stage, std::int64_t position) const {
  return static_cast<std::int32_t>((static_cast<std::int64_t>(stage) * 2 + 1) * positions + position);
}

std::int64_t TreeLinks::shifted(std::int64_t position, std::int64_t offset) const {
  if (positions == 1) return 0;
  std::int64_t to = 0;
  for (const Stage& stage : stages) to += (position / stage.below + offset / stage.below) % stage.groups * stage.below;
  return to;
}

void add_tree_collective(TransferGraph& graph, const TreeLinks& tree, const SimulatedCollective& collective,
                         const SimulationOptions& options, std::int64_t chunks) {
  const TreeWork work{graph, tree};
  const auto n = static_cast<double>(tree.participants);
  const Bytes bytes = collective.bytes / static_cast<double>(chunks);
  if (is_rooted(collective.kind) || is_one_to_one(collective.kind))
    throw InternalError("a collective with roles has its own schedule");
  for (std::int64_t chunk = 0; chunk < chunks; ++chunk) {
    if (is_exchange(collective.kind)) {
      for (std::int64_t offset = tree.participants - 1; offset > 0; --offset)
        for (std::int64_t p = 0; p < tree.positions; ++p) {
          const double share = options.skew == 0.0            ? 1.0
                               : tree.shifted(p, offset) == 0 ? 1.0 + options.skew
                                                              : 1.0 - options.skew / (n - 1.0);
          send(work, p, offset, share * bytes / (n * n), true, -1);
        }
      continue;
    }
    std::vector<std::int32_t> roots;
    if (collective.kind != program::Collective::all_gather) roots = add_scatter(work, bytes / n);
    if (collective.kind != program::Collective::reduce_scatter) add_gather(work, bytes / n, roots);
  }
}

void add_tree_in_network(TransferGraph& graph, const TreeLinks& tree, Bytes bytes, std::int64_t chunks) {
  const TreeWork work{graph, tree};
  const Split& split = work.split;
  const bool node_adds = split.has_local && tree.stages.front().reduces;
  const Bytes chunk_bytes = bytes / static_cast<double>(chunks);
  const Bytes piece = chunk_bytes / static_cast<double>(split.local);
  const std::int32_t up = tree.up(0, 0), down = tree.down(0, 0);
  Window window(tree, chunk_bytes);
  for (std::int64_t chunk = 0; chunk < chunks; ++chunk) {
    const std::int32_t start = window.start();
    if (split.upper == 1) {
      window.finish(chain(graph, start, {{up, chunk_bytes}, {down, chunk_bytes}}));
      continue;
    }
    std::int32_t sum = graph.add_meeting();
    if (start >= 0) graph.order(start, sum);
    if (node_adds) {
      for (std::int64_t i = 0; i < split.local; ++i) graph.order(chain(graph, start, {{up, piece}}), sum);
      sum = chain(graph, sum, {{down, piece}});
    } else {
      for (std::int64_t i = 1; i < split.local; ++i)
        graph.order(chain(graph, start, {{up, piece}, {down, piece}}), sum);
    }
    if (upper_reduces(tree, split)) {
      sum = over_the_top(work, 0, 0, piece, sum, true);
    } else {
      const Bytes shard = piece / static_cast<double>(split.upper);
      const std::int32_t scattered = graph.add_meeting(), gathered = graph.add_meeting();
      for (std::int64_t d = 1; d < split.upper; ++d)
        graph.order(send(work, 0, d * split.local, shard, false, sum), scattered);
      for (std::int64_t d = 1; d < split.upper; ++d)
        graph.order(send(work, 0, d * split.local, shard, false, scattered), gathered);
      sum = gathered;
    }
    if (node_adds) sum = chain(graph, sum, {{up, piece}});
    std::int32_t end = sum;
    for (std::int64_t i = 1; i < split.local; ++i)
      end = node_adds ? chain(graph, sum, {{down, piece}}) : chain(graph, sum, {{up, piece}, {down, piece}});
    window.finish(end);
  }
}

void add_tree_rooted(TransferGraph& graph, const TreeLinks& tree, program::Collective kind, Bytes bytes,
                     std::int64_t chunks) {
  // Roles: 0 the root, 1 the rest of its node, 2 the other nodes.
  const TreeWork work{graph, tree};
  const Split& split = work.split;
  const bool node_adds = split.has_local && tree.stages.front().reduces, rails_add = upper_reduces(tree, split);
  const Bytes chunk_bytes = bytes / static_cast<double>(chunks);
  const Bytes piece = chunk_bytes / static_cast<double>(split.local), rest = chunk_bytes - piece;
  const std::int64_t peer = split.has_local ? 1 : 0;
  Window window(tree, chunk_bytes);
  for (std::int64_t chunk = 0; chunk < chunks; ++chunk) {
    std::int32_t sum = window.start();
    switch (kind) {
      case program::Collective::broadcast:
        if (split.has_local) sum = chain(graph, sum, {{tree.up(0, 0), chunk_bytes}, {tree.down(0, 1), chunk_bytes}});
        if (split.upper == 1) break;
        sum = over_the_top(work, peer, 2, piece, sum, true);
        if (split.has_local) sum = chain(graph, sum, {{tree.up(0, 2), piece}, {tree.down(0, 2), rest}});
        break;
      case program::Collective::reduce:
        if (split.upper > 1) {
          if (split.has_local)  // a reduce-scatter in the node; a switch that reduces sends one sum down
            sum = chain(graph, sum,
                        {{tree.up(0, 2), node_adds ? chunk_bytes : rest}, {tree.down(0, 2), node_adds ? piece : rest}});
          sum = rails_add ? over_the_top(work, 2, peer, piece, sum, true)
                          : sum_to_first(graph, split.upper, piece,
                                         {tree.up(split.first, peer), tree.down(split.first, peer)},
                                         {tree.up(split.first, 2), tree.down(split.first, 2)}, sum);
        }
        if (!split.has_local) break;
        sum = node_adds ? chain(graph, sum, {{tree.up(0, 1), chunk_bytes}, {tree.down(0, 0), chunk_bytes}})
                        : sum_to_first(graph, split.local, chunk_bytes, {tree.up(0, 0), tree.down(0, 0)},
                                       {tree.up(0, 1), tree.down(0, 1)}, sum);
        break;
      case program::Collective::point_to_point:
        if (split.upper == 1) {
          sum = chain(graph, sum, {{tree.up(0, 0), chunk_bytes}, {tree.down(0, 1), chunk_bytes}});
          break;
        }
        sum = over_the_top(work, 0, 2, chunk_bytes, sum, false);
        break;
      case program::Collective::permute: {
        // A shift by one: all but the last of a node send to their neighbour, the last one to the next node.
        const std::int32_t start = sum;
        if (split.has_local) sum = chain(graph, start, {{tree.up(0, 0), chunk_bytes}, {tree.down(0, 0), chunk_bytes}});
        if (split.upper > 1) sum = over_the_top(work, 0, 0, chunk_bytes, start, false);
        break;
      }
      case program::Collective::all_gather:
      case program::Collective::reduce_scatter:
      case program::Collective::all_reduce:
      case program::Collective::all_to_all:
      case program::Collective::ragged_all_to_all:
        throw InternalError("a collective without roles has its own schedule");
    }
    window.finish(sum);
  }
}

}  // namespace assay::collective

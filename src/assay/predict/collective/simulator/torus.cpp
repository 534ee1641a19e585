#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <optional>

#include "assay/base/index.h"
#include "assay/base/result.h"
#include "assay/predict/collective/simulator/schedules.h"

namespace assay::collective {
namespace {

using Axes = std::vector<std::size_t>;

std::int64_t devices_of(const TorusLinks& torus, const Axes& axes) {
  std::int64_t n = 1;
  for (const std::size_t axis : axes) n *= torus.axes[axis].size;
  return n;
}

/// Shards over one chip's ports of each axis, for one order.
std::vector<double> axis_loads(const TorusLinks& torus, const Axes& axes, const Axes& order) {
  std::vector<double> loads(axes.size());
  double held = 1;
  for (const std::size_t axis : order) {
    const auto place = std::find(axes.begin(), axes.end(), axis) - axes.begin();
    const auto n = static_cast<double>(torus.axes[axis].size);
    loads[at(place)] = held * (n - 1.0);
    held *= n;
  }
  return loads;
}

/// Gaussian elimination with pivoting; empty if singular.
std::optional<std::vector<double>> solved(std::vector<std::vector<double>> rows) {
  const std::size_t n = rows.size();
  for (std::size_t i = 0; i < n; ++i) {
    std::size_t best = i;
    for (std::size_t r = i; r < n; ++r)
      if (std::abs(rows[r][i]) > std::abs(rows[best][i])) best = r;
    if (std::abs(rows[best][i]) < 1e-12) return std::nullopt;
    std::swap(rows[i], rows[best]);
    for (std::size_t r = 0; r < n; ++r) {
      if (r == i) continue;
      const double factor = rows[r][i] / rows[i][i];
      for (std::size_t c = i; c <= n; ++c) rows[r][c] -= factor * rows[i][c];
    }
  }
  std::vector<double> x(n);
  for (std::size_t i = 0; i < n; ++i) x[i] = rows[i][n] / rows[i][i];
  return x;
}

/// Shares of the given orders that load every port equally, if none has to be negative.
std::optional<std::vector<double>> balanced_shares(const TorusLinks& torus, const Axes& axes,
                                                   const std::vector<Axes>& orders) {
  const std::size_t k = axes.size();
  double ports = 0;
  for (const std::size_t axis : axes) ports += torus.axes[axis].ring ? 2.0 : 1.0;
  const double all = static_cast<double>(devices_of(torus, axes)) - 1.0;
  std::vector<std::vector<double>> rows(k, std::vector<double>(k + 1));
  for (std::size_t column = 0; column < k; ++column) {
    const std::vector<double> loads = axis_loads(torus, axes, orders[column]);
    for (std::size_t row = 0; row < k; ++row) rows[row][column] = loads[row] / all;
  }
  for (std::size_t row = 0; row < k; ++row) rows[row][k] = (torus.axes[axes[row]].ring ? 2.0 : 1.0) / ports;
  auto shares = solved(rows);
  if (!shares) return std::nullopt;
  for (double& share : *shares) {
    if (share < -1e-9) return std::nullopt;
    share = std::max(share, 0.0);
  }
  return shares;
}

std::vector<Axes> rotations(const Axes& axes) {
  std::vector<Axes> orders;
  for (std::size_t first = 0; first < axes.size(); ++first) {
    Axes order = axes;
    std::rotate(order.begin(), order.begin() + static_cast<std::ptrdiff_t>(first), order.end());
    orders.push_back(std::move(order));
  }
  return orders;
}

/// Rotated orders if they can be balanced, otherwise any k orders that can.
std::pair<std::vector<Axes>, std::vector<double>> balanced_orders(const TorusLinks& torus, const Axes& axes) {
  const std::vector<Axes> turned = rotations(axes);
  if (auto shares = balanced_shares(torus, axes, turned)) return {turned, *shares};
  std::vector<Axes> all;
  Axes order = axes;
  std::sort(order.begin(), order.end());
  do all.push_back(order);
  while (std::next_permutation(order.begin(), order.end()));
  std::vector<char> chosen(all.size(), 0);
  std::fill(chosen.begin(), chosen.begin() + static_cast<std::ptrdiff_t>(axes.size()), 1);
  do {
    std::vector<Axes> some;
    for (std::size_t i = 0; i < all.size(); ++i)
      if (chosen[i] != 0) some.push_back(all[i]);
    if (auto shares = balanced_shares(torus, axes, some)) return {some, *shares};
  } while (std::prev_permutation(chosen.begin(), chosen.end()));
  throw InternalError("no order of the axes balances the links of a torus");
}

bool has_ties(const TorusLinks& torus, const Axes& axes) {
  return std::any_of(axes.begin(), axes.end(),
                     [&](std::size_t axis) { return torus.axes[axis].ring && torus.axes[axis].size % 2 == 0; });
}

/// Chips reached by one chip's data in a direction of an axis.
std::int64_t reach(const TorusLinks& torus, std::size_t axis, int direction, std::int64_t position, bool mirrored,
                   bool both_directions) {
  const TorusLinks::Place& place = torus.axes[axis];
  if (!place.ring) {
    const std::int64_t x = torus.coordinate(axis, position);
    return direction == 0 ? place.size - 1 - x : x;
  }
  if (!both_directions) return direction == (mirrored ? 1 : 0) ? place.size - 1 : 0;
  const std::int64_t longer = place.size / 2;
  return direction == (mirrored ? 1 : 0) ? longer : place.size - 1 - longer;
}

/// How one chip's shard spreads to all others: edges in the order of growth, each from a chip that has the shard.
struct SpreadTree {
  std::vector<std::int32_t> parent;   ///< edge over which the sender got it; -1 at the root
  std::vector<std::int32_t> outward;  ///< link away from the root
  std::vector<std::int32_t> inward;   ///< link in the opposite direction
  std::vector<std::int32_t> depth;    ///< hops from the root
};

SpreadTree spread_tree(const TorusLinks& torus, std::int64_t root, const TravelPart& part, bool both_directions) {
  SpreadTree tree;
  struct Holder {
    std::int64_t position;
    std::int32_t edge;
  };
  std::vector<Holder> holders{{root, -1}};
  for (const std::size_t axis : part.order) {
    const std::size_t before = holders.size();
    for (std::size_t h = 0; h < before; ++h)
      for (int direction = 0; direction < 2; ++direction) {
        Holder holder = holders[h];
        const std::int64_t hops = reach(torus, axis, direction, holder.position, part.mirrored, both_directions);
        for (std::int64_t hop = 0; hop < hops; ++hop) {
          const std::int64_t next = torus.neighbour(axis, direction, holder.position);
          tree.parent.push_back(holder.edge);
          tree.outward.push_back(torus.link(axis, direction, holder.position));
          tree.inward.push_back(torus.link(axis, 1 - direction, next));
          tree.depth.push_back(holder.edge < 0 ? 1 : tree.depth[at(holder.edge)] + 1);
          holder = {next, static_cast<std::int32_t>(tree.parent.size()) - 1};
          holders.push_back(holder);
        }
      }
  }
  return tree;
}

/// Part of a shard in transit, for the shards of all explicitly simulated chips.
struct SpreadPart {
  std::vector<SpreadTree> trees;                                      ///< by position of the root
  Bytes bytes;                                                        ///< size of one chunk
  std::vector<std::pair<std::int32_t, std::int32_t>> farthest_first;  ///< edge, position

  std::int32_t edges() const { return static_cast<std::int32_t>(trees.front().parent.size()); }
};

std::vector<SpreadPart> spread_parts(const TorusLinks& torus, const Axes& axes, Bytes shard,
                                     const SimulationOptions& options, std::int64_t chunks) {
  std::vector<SpreadPart> parts;
  for (const TravelPart& travel : travel_parts(torus, axes, options)) {
    if (travel.share <= 0.0) continue;
    SpreadPart part{{}, travel.share * shard / static_cast<double>(chunks), {}};
    for (std::int64_t position = 0; position < torus.positions; ++position)
      part.trees.push_back(spread_tree(torus, position, travel, options.both_directions));
    for (std::int32_t edge = part.edges() - 1; edge >= 0; --edge)
      for (std::int32_t p = 0; p < static_cast<std::int32_t>(torus.positions); ++p)
        part.farthest_first.emplace_back(edge, p);
    std::stable_sort(part.farthest_first.begin(), part.farthest_first.end(), [&](const auto& a, const auto& b) {
      return part.trees[at(a.second)].depth[at(a.first)] > part.trees[at(b.second)].depth[at(b.first)];
    });
    parts.push_back(std::move(part));
  }
  return parts;
}

/// Sends one chunk of every shard from all chips to its owner, reducing on the way; chunks with the longest path first.
/// `complete` holds the point at which each position has its sum.
void add_inward(TransferGraph& graph, const SpreadPart& part, const std::vector<std::int32_t>& complete) {
  const std::size_t positions = part.trees.size();
  std::vector<std::int32_t> transfers(at(part.edges()) * positions);
  for (const auto& [edge, p] : part.farthest_first) {
    const SpreadTree& tree = part.trees[at(p)];
    transfers[at(edge) * positions + at(p)] = graph.add(tree.inward[at(edge)], part.bytes, tree.parent[at(edge)] < 0);
  }
  for (const auto& [edge, p] : part.farthest_first) {
    const std::int32_t parent = part.trees[at(p)].parent[at(edge)];
    graph.order(transfers[at(edge) * positions + at(p)],
                parent < 0 ? complete[at(p)] : transfers[at(parent) * positions + at(p)]);
  }
}

/// Sends one chunk of every shard to all chips, after `starts` (by position, or none). The chips' transfers over one
/// edge are adjacent in the graph, so that ties are broken the same way at all chips.
void add_outward(TransferGraph& graph, const SpreadPart& part, const std::vector<std::int32_t>& starts) {
  const auto positions = static_cast<std::int32_t>(part.trees.size());
  const std::int32_t base = graph.size();
  for (std::int32_t edge = 0; edge < part.edges(); ++edge)
    for (std::int32_t p = 0; p < positions; ++p) {
      const SpreadTree& tree = part.trees[at(p)];
      const std::int32_t parent = tree.parent[at(edge)];
      const std::int32_t transfer = graph.add(tree.outward[at(edge)], part.bytes, true);
      if (parent >= 0)
        graph.order(base + parent * positions + p, transfer);
      else if (!starts.empty())
        graph.order(starts[at(p)], transfer);
    }
}

/// Adds an all-gather, a reduce-scatter, or a reduce-scatter and then an all-gather.
void add_spread(TransferGraph& graph, const TorusLinks& torus, const SimulatedCollective& collective,
                const SimulationOptions& options, std::int64_t chunks) {
  const Bytes shard = collective.bytes / static_cast<double>(devices_of(torus, collective.axes));
  const std::vector<SpreadPart> parts = spread_parts(torus, collective.axes, shard, options, chunks);
  const bool reduces = collective.kind != program::Collective::all_gather,
             gathers = collective.kind != program::Collective::reduce_scatter;
  const std::int32_t all_reduced = graph.add_meeting();
  std::vector<std::int32_t> starts;
  if (reduces && !options.overlap_passes) starts.assign(at(torus.positions), all_reduced);
  for (std::int64_t chunk = 0; chunk < chunks; ++chunk)
    for (const SpreadPart& part : parts) {
      if (reduces) {
        std::vector<std::int32_t> complete;
        for (std::int64_t p = 0; p < torus.positions; ++p) complete.push_back(graph.add_meeting());
        add_inward(graph, part, complete);
        if (options.overlap_passes)
          starts = complete;
        else
          for (const std::int32_t meeting : complete) graph.order(meeting, all_reduced);
      }
      if (gathers) add_outward(graph, part, starts);
    }
}

struct Message {
  std::vector<std::int64_t> steps;  ///< by axis of the collective, signed
  std::int64_t distance = 0;
  bool to_first = false;  ///< goes to the device at the origin
};

/// All messages of one chip, the farthest first: on a line they have the longest path left.
std::vector<Message> messages_of(const TorusLinks& torus, const Axes& axes, std::int64_t position, bool mirrored) {
  std::vector<Message> messages{{std::vector<std::int64_t>(axes.size()), 0, true}};
  for (std::size_t i = 0; i < axes.size(); ++i) {
    const TorusLinks::Place& place = torus.axes[axes[i]];
    const std::int64_t x = torus.coordinate(axes[i], position);
    std::vector<Message> longer;
    for (const Message& message : messages)
      for (std::int64_t i_th = 0; i_th < place.size; ++i_th) {
        // By distance upwards on a ring, so that all chips use the same order; by position on a line.
        std::int64_t step = i_th - x, target = i_th;
        if (place.ring) {
          step = i_th;
          target = (x + i_th) % place.size;
          if (2 * step > place.size || (2 * step == place.size && mirrored)) step -= place.size;
        }
        Message next = message;
        next.steps[i] = step;
        next.distance += std::abs(step);
        next.to_first = message.to_first && target == 0;
        longer.push_back(std::move(next));
      }
    messages = std::move(longer);
  }
  std::stable_sort(messages.begin(), messages.end(),
                   [](const Message& a, const Message& b) { return a.distance > b.distance; });
  messages.pop_back();  // to itself
  return messages;
}

void add_all_to_all(TransferGraph& graph, const TorusLinks& torus, const Axes& axes, Bytes bytes,
                    const SimulationOptions& options, std::int64_t chunks) {
  const auto n = static_cast<double>(devices_of(torus, axes));
  const std::vector<Axes> orders = rotations(axes);
  const int mirrors = has_ties(torus, axes) ? 2 : 1;
  const Bytes size = bytes / (n * n) / static_cast<double>(chunks) / static_cast<double>(orders.size()) / mirrors;
  const double first = 1.0 + options.skew, other = 1.0 - options.skew / (n - 1.0);
  std::vector<std::vector<std::vector<Message>>> messages(static_cast<std::size_t>(mirrors));
  for (int mirror = 0; mirror < mirrors; ++mirror)
    for (std::int64_t position = 0; position < torus.positions; ++position)
      messages[at(mirror)].push_back(messages_of(torus, axes, position, mirror == 1));
  for (std::int64_t chunk = 0; chunk < chunks; ++chunk)
    for (std::size_t rank = 0; rank < messages[0][0].size(); ++rank)
      for (const Axes& order : orders)
        for (int mirror = 0; mirror < mirrors; ++mirror)
          for (std::int64_t position = 0; position < torus.positions; ++position) {
            const Message& message = messages[at(mirror)][at(position)][rank];
            std::int64_t here = position, left = message.distance;
            std::int32_t previous = -1;
            for (const std::size_t axis : order) {
              const std::int64_t step = message.steps[at(std::find(axes.begin(), axes.end(), axis) - axes.begin())];
              const int direction = step < 0 ? 1 : 0;
              for (std::int64_t hop = 0; hop < std::abs(step); ++hop) {
                const std::int32_t transfer = graph.add(torus.link(axis, direction, here),
                                                        size * (message.to_first ? first : other), --left == 0);
                if (previous >= 0) graph.order(previous, transfer);
                previous = transfer;
                here = torus.neighbour(axis, direction, here);
              }
            }
          }
}

/// Sends from the first chip to the farthest, axis by axis, without symmetry.
void add_farthest(TransferGraph& graph, const TorusLinks& torus, const Axes& axes, Bytes bytes, std::int64_t chunks) {
  for (std::int64_t chunk = 0; chunk < chunks; ++chunk) {
    std::int64_t here = 0, left = 0;
    std::int32_t previous = -1;
    const auto hops = [&](std::size_t axis) { return reach(torus, axis, 0, 0, false, true); };
    for (const std::size_t axis : axes) left += hops(axis);
    for (const std::size_t axis : axes)
      for (std::int64_t hop = hops(axis); hop > 0; --hop) {
        const std::int32_t transfer =
            graph.add(torus.link(axis, 0, here), bytes / static_cast<double>(chunks), --left == 0);
        if (previous >= 0) graph.order(previous, transfer);
        previous = transfer;
        here = torus.neighbour(axis, 0, here);
      }
  }
}

}  // namespace

TorusLinks::TorusLinks(const CollectiveGroup& group, bool use_symmetry) {
  for (const auto& axis : group.axes) {
    Place place;
    place.size = std::llround(axis.size);
    place.ring = axis.ring && place.size > 2;
    place.simulated = place.ring && use_symmetry ? 1 : place.size;
    place.stride = positions;
    positions *= place.simulated;
    axes.push_back(place);
  }
  network.devices = positions;
  for (std::size_t axis = 0; axis < axes.size(); ++axis)
    for (int direction = 0; direction < 2; ++direction)
      for (std::int64_t position = 0; position < positions; ++position) {
        const std::int64_t x = coordinate(axis, position), end = direction == 0 ? axes[axis].size - 1 : 0;
        if (!axes[axis].ring && x == end) {
          ids.push_back(TransferGraph::no_link);
          continue;
        }
        // This group gets its share of links used by several groups, and its members are `share` links apart.
        const double share = group.axes[axis].share;
        ids.push_back(network.add(group.link / share, group.hop_latency * share, neighbour(axis, direction, position)));
        names.push_back(fmt::format("axis {}{} from chip {}", axis, direction == 0 ? '+' : '-', position));
      }
}

std::int64_t TorusLinks::neighbour(std::size_t axis, int direction, std::int64_t position) const {
  const Place& place = axes[axis];
  const std::int64_t x = coordinate(axis, position);
  const std::int64_t next = (x + (direction == 0 ? 1 : place.simulated - 1)) % place.simulated;
  return position + (next - x) * place.stride;
}

std::vector<TravelPart> travel_parts(const TorusLinks& torus, const std::vector<std::size_t>& axes,
                                     const SimulationOptions& options) {
  const auto [orders, shares] = balanced_orders(torus, axes);
  const bool mirror = options.both_directions && has_ties(torus, axes) && (axes.size() > 1 || options.split_ties);
  std::vector<TravelPart> parts;
  for (std::size_t i = 0; i < orders.size(); ++i) {
    parts.push_back({orders[i], mirror ? shares[i] / 2.0 : shares[i], false});
    if (mirror) parts.push_back({orders[i], shares[i] / 2.0, true});
  }
  return parts;
}

void add_torus_collective(TransferGraph& graph, const TorusLinks& torus, const SimulatedCollective& collective,
                          const SimulationOptions& options, std::int64_t chunks) {
  SimulatedCollective over = collective;
  Axes& axes = over.axes;
  if (axes.empty()) {
    axes.resize(torus.axes.size());
    std::iota(axes.begin(), axes.end(), std::size_t{0});
  }
  const Bytes bytes = collective.bytes;
  switch (collective.kind) {
    case program::Collective::all_gather:
    case program::Collective::reduce_scatter:
    case program::Collective::all_reduce:
      return add_spread(graph, torus, over, options, chunks);
    case program::Collective::all_to_all:
      return add_all_to_all(graph, torus, axes, bytes, options, chunks);
    case program::Collective::permute:
      for (std::int64_t chunk = 0; chunk < chunks; ++chunk)
        for (std::int64_t position = 0; position < torus.positions; ++position)
          if (const std::int32_t link = torus.link(axes.front(), 0, position); link != TransferGraph::no_link)
            graph.add(link, bytes / static_cast<double>(chunks), true);
      return;
    case program::Collective::point_to_point:
      return add_farthest(graph, torus, axes, bytes, chunks);
    case program::Collective::ragged_all_to_all:
    case program::Collective::broadcast:
    case program::Collective::reduce:
      throw InternalError("collectives with a root or unequal pieces have their own schedules");
  }
}

}  // namespace assay::collective

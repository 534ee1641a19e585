// Broadcast and reduce on a torus over edge-disjoint trees.
//
// A chip's coordinates that differ from the root's form a set A. In tree j the chip gets the data along axis j if j is
// not in A, else along the first axis of A after j (cyclically). That is the family of edge-disjoint spanning trees of
// a hypercube (Johnsson and Ho, 1989) with each of its nodes blown up to a block of chips: along an axis of A the data
// comes from the neighbour nearer to the root; along another axis over the link that closes the ring, or on a line back
// from the neighbour. For each A the k trees use k different axes, so no link serves two trees. On closed rings the
// mirror images give k more.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "assay/base/index.h"
#include "assay/predict/collective/simulator/schedules.h"

namespace assay::collective {
namespace {

struct Grid {
  std::vector<std::int64_t> size, stride;
  std::vector<bool> ring;
  std::int64_t chips = 1;

  std::int64_t coordinate(std::int64_t chip, std::size_t axis) const { return chip / stride[axis] % size[axis]; }
};

struct Hop {
  std::int64_t from;
  std::size_t axis;
  int direction;  ///< 0 up, 1 down, before mirroring
};

Hop hop_into(const Grid& grid, std::int64_t chip, std::size_t tree) {
  const std::size_t k = grid.size.size();
  std::size_t axis = tree;
  if (grid.coordinate(chip, tree) != 0) {
    axis = (tree + 1) % k;
    while (grid.coordinate(chip, axis) == 0) axis = (axis + 1) % k;
  }
  const std::int64_t x = grid.coordinate(chip, axis);
  if (x > 0) return {chip - grid.stride[axis], axis, 0};
  if (grid.ring[axis]) return {chip + (grid.size[axis] - 1) * grid.stride[axis], axis, 0};
  return {chip + grid.stride[axis], axis, 1};
}

std::int64_t mirrored(const Grid& grid, std::int64_t chip) {
  std::int64_t image = 0;
  for (std::size_t axis = 0; axis < grid.size.size(); ++axis)
    image += (grid.size[axis] - grid.coordinate(chip, axis)) % grid.size[axis] * grid.stride[axis];
  return image;
}

}  // namespace

RootedTorus::RootedTorus(const CollectiveGroup& group, bool whole_trees) {
  Grid grid;
  for (const auto& axis : group.axes) {
    const std::int64_t n = std::llround(axis.size);
    grid.size.push_back(n);
    grid.stride.push_back(grid.chips);
    grid.ring.push_back(axis.ring && n > 2);
    grid.chips *= n;
  }
  network.devices = grid.chips;
  const std::size_t k = grid.size.size();
  const bool closed = std::all_of(grid.ring.begin(), grid.ring.end(), [](bool ring) { return ring; });
  std::vector<std::int32_t> ids(k * 2 * at(grid.chips), TransferGraph::no_link);
  const auto link = [&](std::size_t axis, int direction, std::int64_t from, std::int64_t to) {
    std::int32_t& id = ids[(axis * 2 + at(direction)) * at(grid.chips) + at(from)];
    if (id == TransferGraph::no_link) {
      id = network.add(group.link / group.axes[axis].share, group.hop_latency * group.axes[axis].share, to);
      ends.push_back({axis, direction, from});
      names.push_back(fmt::format("axis {}{} from chip {}", axis, direction == 0 ? '+' : '-', from));
    }
    return id;
  };
  for (std::size_t tree = 0; tree < k; ++tree) {
    // Chips by their distance from the root in this tree.
    std::vector<std::int64_t> hops(at(grid.chips), -1), path;
    hops[0] = 0;
    for (std::int64_t chip = 1; chip < grid.chips; ++chip) {
      path.clear();
      std::int64_t above = chip;
      for (; hops[at(above)] < 0; above = hop_into(grid, above, tree).from) path.push_back(above);
      for (std::int64_t known = hops[at(above)]; !path.empty(); path.pop_back()) hops[at(path.back())] = ++known;
    }
    std::vector<std::int64_t> chosen;
    const std::int64_t deepest = std::max_element(hops.begin(), hops.end()) - hops.begin();
    depth = std::max(depth, hops[at(deepest)]);
    if (whole_trees)
      for (std::int64_t chip = 1; chip < grid.chips; ++chip) chosen.push_back(chip);
    else
      for (std::int64_t chip = deepest; chip != 0; chip = hop_into(grid, chip, tree).from) chosen.push_back(chip);
    std::sort(chosen.begin(), chosen.end(), [&](std::int64_t a, std::int64_t b) {
      return hops[at(a)] != hops[at(b)] ? hops[at(a)] < hops[at(b)] : a < b;
    });
    for (int image = 0; image < (closed ? 2 : 1); ++image) {
      std::vector<std::int32_t> edge_into(at(grid.chips), -1);
      std::vector<Edge>& edges = trees.emplace_back();
      for (const std::int64_t chip : chosen) {
        const Hop hop = hop_into(grid, chip, tree);
        const std::int64_t from = image == 0 ? hop.from : mirrored(grid, hop.from);
        const std::int64_t to = image == 0 ? chip : mirrored(grid, chip);
        const int direction = image == 0 ? hop.direction : 1 - hop.direction;
        edge_into[at(chip)] = static_cast<std::int32_t>(edges.size());
        edges.push_back(
            {edge_into[at(hop.from)], link(hop.axis, direction, from, to), link(hop.axis, 1 - direction, to, from)});
      }
    }
  }
}

std::int64_t RootedTorus::edges() const {
  std::size_t count = 0;
  for (const auto& tree : trees) count += tree.size();
  return static_cast<std::int64_t>(count);
}

void RootedTorus::add(TransferGraph& graph, program::Collective kind, Bytes bytes, std::int64_t chunks) {
  const Bytes size = bytes / static_cast<double>(trees.size()) / static_cast<double>(chunks);
  for (std::int64_t chunk = 0; chunk < chunks; ++chunk)
    for (const std::vector<Edge>& tree : trees) {
      const std::int32_t base = graph.size();
      for (const Edge& edge : tree) {
        if (kind == program::Collective::broadcast) {
          const std::int32_t transfer = graph.add(edge.outward, size, true);
          if (edge.parent >= 0) graph.order(base + edge.parent, transfer);
        } else {
          const std::int32_t transfer = graph.add(edge.inward, size, edge.parent < 0);
          if (edge.parent >= 0) graph.order(transfer, base + edge.parent);
        }
      }
    }
}

}  // namespace assay::collective

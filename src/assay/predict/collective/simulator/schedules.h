// Collectives as transfers on links, with their dependencies. One builder for tori, one for trees.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "assay/predict/collective/simulator/links.h"
#include "assay/predict/collective/simulator/simulator.h"

namespace assay::collective {

/// A torus. Lines are simulated chip by chip; with symmetry, a ring is one chip linked to itself.
struct TorusLinks {
  TorusLinks(const CollectiveGroup& group, bool use_symmetry);

  struct Place {
    std::int64_t size = 1;  ///< chips on the axis
    bool ring = false;
    std::int64_t simulated = 1, stride = 1;
  };
  std::vector<Place> axes;
  std::int64_t positions = 1;
  LinkNetwork network;
  std::vector<std::int32_t> ids;  ///< by axis, direction (0 up, 1 down) and sender; no_link past the end of a line
  std::vector<std::string> names;

  std::int32_t link(std::size_t axis, int direction, std::int64_t sender) const {
    return ids[(axis * 2 + static_cast<std::size_t>(direction)) * static_cast<std::size_t>(positions) +
               static_cast<std::size_t>(sender)];
  }
  std::int64_t coordinate(std::size_t axis, std::int64_t position) const {
    return position / axes[axis].stride % axes[axis].simulated;
  }
  std::int64_t neighbour(std::size_t axis, int direction, std::int64_t position) const;
};

/// A share of the array that travels along the axes in one order. Mirrored: it goes the other way round an even ring,
/// which is equally long.
struct TravelPart {
  std::vector<std::size_t> order;
  double share = 1;
  bool mirrored = false;
};

/// Parts and shares that load all ports equally. An order loads its first axis with n1 - 1 shards, the next with
/// n1 (n2 - 1), and so on; a ring has two ports, a line counts one. Shares that balance this exist for all sizes: the
/// loads of all orders span the base polytope of the supermodular function prod(n) - 1.
std::vector<TravelPart> travel_parts(const TorusLinks& torus, const std::vector<std::size_t>& axes,
                                     const SimulationOptions& options);

/// Adds one collective to the graph, with each shard in `chunks`.
void add_torus_collective(TransferGraph& graph, const TorusLinks& torus, const SimulatedCollective& collective,
                          const SimulationOptions& options, std::int64_t chunks);

/// Broadcast and reduce have a root and no symmetry, but their trees share no link, so the deepest branch of each tree
/// determines the time; `whole_trees` simulates all branches.
struct RootedTorus {
  RootedTorus(const CollectiveGroup& group, bool whole_trees);

  void add(TransferGraph& graph, program::Collective kind, Bytes bytes, std::int64_t chunks);
  std::int64_t edges() const;  ///< edges of all simulated trees

  struct Edge {
    std::int32_t parent = -1;  ///< edge of the same tree; -1 at the root
    std::int32_t outward = 0, inward = 0;
  };
  std::vector<std::vector<Edge>> trees;
  std::int64_t depth = 0;  ///< hops of the deepest branch
  LinkNetwork network;
  struct LinkEnd {
    std::size_t axis;
    int direction;  ///< 0 up, 1 down
    std::int64_t from;
  };
  std::vector<LinkEnd> ends;  ///< ends of each link of the network
  std::vector<std::string> names;
};

/// The ports of each participant of a tree, or of the representative ones.
struct TreeLinks {
  TreeLinks(const CollectiveGroup& group, std::int64_t simulated);  ///< `simulated`: 0 for all

  struct Stage {
    std::int64_t groups = 1;
    std::int64_t below = 1;    ///< participants below one child
    BytesPerSecond bandwidth;  ///< bandwidth of one participant's share
    bool reduces = false;
    bool scale_up = false;  ///< chips have separate ports for the levels above
    std::string name;
  };
  std::vector<Stage> stages;
  std::int64_t participants = 1, positions = 1;
  LinkNetwork network;
  std::vector<std::string> names;

  std::int32_t up(std::size_t stage, std::int64_t position) const;
  std::int32_t down(std::size_t stage, std::int64_t position) const;
  std::int64_t shifted(std::int64_t position, std::int64_t offset) const;  ///< digit by digit
};

/// All-gather, reduce-scatter, all-reduce, all-to-all.
void add_tree_collective(TransferGraph& graph, const TreeLinks& tree, const SimulatedCollective& collective,
                         const SimulationOptions& options, std::int64_t chunks);
/// All-reduce with in-network reduction on at least one level. One participant represents all.
void add_tree_in_network(TransferGraph& graph, const TreeLinks& tree, Bytes bytes, std::int64_t chunks);
/// Broadcast, reduce, permute and point-to-point: participants have different roles, and the tree simulates one per
/// role (`tree_roles`). Switches copy broadcasts.
inline constexpr std::int64_t tree_roles = 3;
void add_tree_rooted(TransferGraph& graph, const TreeLinks& tree, program::Collective kind, Bytes bytes,
                     std::int64_t chunks);

}  // namespace assay::collective

// What collectives cost on tori and switched networks, in closed form. docs/collectives.md derives them.
// Bandwidth and latency are bounds of ideal hardware: lower = the larger of both, upper = their sum.
// Formulas are written once over a number policy; costing under Plain does not allocate.
#pragma once
#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "assay/base/explain.h"
#include "assay/base/result.h"
#include "assay/hardware/cluster.h"

namespace assay {

enum class CollectiveKind { all_gather, reduce_scatter, all_reduce, all_to_all, permute, broadcast, reduce };
std::string_view name(CollectiveKind kind);
Result<CollectiveKind> parse_collective(std::string_view text, std::string_view where);

/// The links that a collective may use: some axes of a torus, or the levels of a tree it crosses.
struct CollectiveGroup {
  struct TorusAxis {
    double size = 1;
    bool ring = false;
  };
  struct TreeLevel {
    double groups = 1;  ///< participants at this level that hold different shards
    double lanes = 1;   ///< chips whose links work side by side for one copy of the array
    Sourced<BytesPerSecond> chip_bandwidth;
    bool reduces = false;  ///< the switches add
    std::string name;
  };
  std::vector<TorusAxis> axes;
  std::vector<TreeLevel> levels;
  Sourced<BytesPerSecond> link;
  Sourced<Seconds> hop_latency;
  double devices = 1;    ///< that take part in one collective
  bool one_way = false;  ///< rings carry data in one direction only
  double inner = 1;      ///< devices that hold other shards of the same array

  bool torus() const { return levels.empty(); }
};

/// The group of a cluster for mesh axes given by name: torus axes X, Y, Z, `slices`; or nothing for all chips.
/// `inner` devices hold other shards of the array and lie closer together than the group (switched networks).
Result<CollectiveGroup> make_group(const Cluster& cluster, const std::vector<std::string>& axes, double inner,
                                   std::string_view where);

template <class N>
struct CollectiveCost {
  typename N::template Number<Dim{.sec = 1}> bandwidth, latency, lower, upper;
  typename N::template Number<Dim{.sec = 1}> approximate;  ///< bandwidth term without (n - 1) / n: the rule of thumb
};

/// Cost of a collective on an array of `bytes` in all, as one group sees it: what is gathered, reduced or exchanged.
template <class N>
CollectiveCost<N> collective_cost(const N& num, CollectiveKind kind, Bytes bytes, const CollectiveGroup& group);

/// Hops that the first byte of the longest chain takes.
double collective_hops(CollectiveKind kind, const CollectiveGroup& group);
/// Share of the array that crosses into one child of a level of a tree, all passes counted.
double share_into_child(CollectiveKind kind, const CollectiveGroup& group, const CollectiveGroup::TreeLevel& level);
/// Bytes over the busiest link of one chip, one way.
Bytes busiest_link(CollectiveKind kind, Bytes bytes, const CollectiveGroup& group);
/// How it is done: "bidirectional ring", "line", "axes side by side", "tree", "in-network reduction".
std::string algorithm(CollectiveKind kind, const CollectiveGroup& group);

}  // namespace assay

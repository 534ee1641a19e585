// The cost of collectives on tori and switched networks, in closed form. docs/collectives.md derives them.
// Bandwidth and latency are bounds of ideal hardware: lower = the larger of both, upper = their sum.
// Formulas are written once over a number policy; costing under Plain does not allocate.
#pragma once
#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "assay/base/explain.h"
#include "assay/base/result.h"
#include "assay/predict/collective/collective_group.h"
#include "assay/program/form/collective.h"

namespace assay::collective {

template <class N>
struct CollectiveCost {
  typename N::template Number<Dim{.sec = 1}> bandwidth, latency, lower, upper;
  typename N::template Number<Dim{.sec = 1}> approximate;  ///< bandwidth term without (n - 1) / n: the rule of thumb
};

/// Cost of a collective on an array of `bytes` in total, as one group sees it: what is gathered, reduced or exchanged.
/// Labels are for Traced; without them sources stay empty.
template <class N>
CollectiveCost<N> collective_cost(const N& num, program::Collective kind, Bytes bytes, const CollectiveGroup& group,
                                  const CollectiveLabels* labels = nullptr);

/// The cost as a straight line: the bandwidth term is proportional to the bytes, the latency does not depend on them.
struct CollectiveLine {
  SecondsPerByte rate;  ///< per byte of the array, as collective_cost counts it
  Seconds floor;        ///< latency

  Seconds lower(Bytes bytes) const { return max(rate * bytes, floor); }
  Seconds upper(Bytes bytes) const { return rate * bytes + floor; }
};
CollectiveLine collective_line(program::Collective kind, const CollectiveGroup& group);
/// The cost of a collective as a straight line, in numbers of a policy.
template <class N>
struct CollectiveLineOf {
  NumberOf<N, SecondsPerByte> rate;
  NumberOf<N, Seconds> floor;
};
template <class N>
CollectiveLineOf<N> collective_line(const N& num, program::Collective kind, const CollectiveGroup& group,
                                    const CollectiveLabels* labels = nullptr);
/// The lines of all kinds, by kind.
std::array<CollectiveLine, program::collective_kinds> collective_lines(const CollectiveGroup& group);

/// Hops of the longest chain.
double collective_hops(program::Collective kind, const CollectiveGroup& group);
/// Share of the array that crosses into one child of a level of a tree, over all passes.
double share_into_child(program::Collective kind, const CollectiveGroup& group,
                        const CollectiveGroup::TreeLevel& level);
/// Chips whose links into a child of a level serve one copy of the array.
double lanes_used(program::Collective kind, const CollectiveGroup& group, const CollectiveGroup::TreeLevel& level);
/// The traffic of a collective at one level of a tree.
struct LevelTraffic {
  std::uint8_t level = 0;  ///< number of the level in the cluster
  double groups = 1;       ///< children that hold different shards
  double lanes = 1;        ///< chips whose links work in parallel for one copy
  BytesPerSecond stream;   ///< bandwidth of all lanes, one way
  Bytes into_child;        ///< bytes over all passes
  Seconds time;
  bool reduces = false;  ///< the switches reduce
};
/// Traffic of each level that is crossed, from the chip upwards.
std::vector<LevelTraffic> level_traffic(program::Collective kind, Bytes bytes, const CollectiveGroup& group);
/// A copy of the group without in-network reduction.
CollectiveGroup without_in_network_reduction(CollectiveGroup group);

/// Bytes over the busiest link of one chip, one way.
Bytes busiest_link(program::Collective kind, Bytes bytes, const CollectiveGroup& group);
/// The algorithm: "bidirectional ring", "line", "axes in parallel", "tree", "in-network reduction".
std::string algorithm(program::Collective kind, const CollectiveGroup& group);

}  // namespace assay::collective

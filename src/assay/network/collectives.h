// What collectives cost on tori and switched networks, in closed form. docs/collectives.md derives them.
// Bandwidth and latency are bounds of ideal hardware: lower = the larger of both, upper = their sum.
// Formulas are written once over a number policy; costing under Plain does not allocate.
#pragma once
#include <array>
#include <optional>
#include <string>
#include <string_view>

#include "assay/base/explain.h"
#include "assay/base/result.h"
#include "assay/network/collective_group.h"

namespace assay::network {

enum class CollectiveKind {
  all_gather,
  reduce_scatter,
  all_reduce,
  all_to_all,
  permute,
  broadcast,
  reduce,
  point_to_point,     ///< from one device to the one farthest from it, by one way
  ragged_all_to_all,  ///< devices receive unlike amounts; see CollectiveGroup::imbalance
};
inline constexpr std::size_t collective_kinds = 9;
std::string_view name(CollectiveKind kind);
Result<CollectiveKind> parse_collective(std::string_view text, std::string_view where);

template <class N>
struct CollectiveCost {
  typename N::template Number<Dim{.sec = 1}> bandwidth, latency, lower, upper;
  typename N::template Number<Dim{.sec = 1}> approximate;  ///< bandwidth term without (n - 1) / n: the rule of thumb
};

/// Cost of a collective on an array of `bytes` in all, as one group sees it: what is gathered, reduced or exchanged.
/// Labels are for Traced; without them sources stay empty.
template <class N>
CollectiveCost<N> collective_cost(const N& num, CollectiveKind kind, Bytes bytes, const CollectiveGroup& group,
                                  const CollectiveLabels* labels = nullptr);

/// The cost as a straight line: the bandwidth term is proportional to the bytes, the latency does not depend on them.
struct CollectiveLine {
  decltype(1_s / 1_B) rate;  ///< per byte of the array, as collective_cost counts it
  Seconds floor;             ///< latency

  Seconds lower(Bytes bytes) const { return max(rate * bytes, floor); }
  Seconds upper(Bytes bytes) const { return rate * bytes + floor; }
};
CollectiveLine collective_line(CollectiveKind kind, const CollectiveGroup& group);
/// The lines of all kinds, by kind.
std::array<CollectiveLine, collective_kinds> collective_lines(const CollectiveGroup& group);

/// Hops that the first byte of the longest chain takes.
double collective_hops(CollectiveKind kind, const CollectiveGroup& group);
/// Share of the array that crosses into one child of a level of a tree, all passes counted.
double share_into_child(CollectiveKind kind, const CollectiveGroup& group, const CollectiveGroup::TreeLevel& level);
/// Chips whose links into a child of a level work for one copy of the array.
double lanes_used(CollectiveKind kind, const CollectiveGroup& group, const CollectiveGroup::TreeLevel& level);
/// Bytes over the busiest link of one chip, one way.
Bytes busiest_link(CollectiveKind kind, Bytes bytes, const CollectiveGroup& group);
/// How it is done: "bidirectional ring", "line", "axes in parallel", "tree", "in-network reduction".
std::string algorithm(CollectiveKind kind, const CollectiveGroup& group);

}  // namespace assay::network

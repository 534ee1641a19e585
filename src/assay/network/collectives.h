// The cost of collectives on tori and switched networks, in closed form. docs/collectives.md derives them.
// Bandwidth and latency are bounds of ideal hardware: lower = the larger of both, upper = their sum.
// Formulas are written once over a number policy; costing under Plain does not allocate.
#pragma once
#include <array>
#include <cstdint>
#include <iterator>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

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
  point_to_point,     ///< from one device to the farthest one, over one path
  ragged_all_to_all,  ///< devices receive different amounts; see CollectiveGroup::imbalance
};
inline constexpr std::size_t collective_kinds = 9;

/// The communication pattern.
enum class CollectivePattern {
  sharded,     ///< each device holds a shard before, after, or in between
  exchange,    ///< each pair of devices has a piece of its own
  one_to_one,  ///< each device sends to one other over its own links
  rooted,      ///< one device sends or receives the whole array
};

/// Properties of a kind of collective on every network.
struct CollectiveFacts {
  CollectiveKind kind;
  std::string_view name;  ///< in requests and answers
  CollectivePattern pattern;
  double passes;          ///< times the array crosses; an all-reduce is a reduce-scatter and an all-gather
  bool switches_can_add;  ///< in-network reduction applies
};
inline constexpr CollectiveFacts all_collectives[] = {
    {CollectiveKind::all_gather, "all-gather", CollectivePattern::sharded, 1.0, false},
    {CollectiveKind::reduce_scatter, "reduce-scatter", CollectivePattern::sharded, 1.0, false},
    {CollectiveKind::all_reduce, "all-reduce", CollectivePattern::sharded, 2.0, true},
    {CollectiveKind::all_to_all, "all-to-all", CollectivePattern::exchange, 1.0, false},
    {CollectiveKind::permute, "permute", CollectivePattern::one_to_one, 1.0, false},
    {CollectiveKind::broadcast, "broadcast", CollectivePattern::rooted, 1.0, false},
    {CollectiveKind::reduce, "reduce", CollectivePattern::rooted, 1.0, true},
    {CollectiveKind::point_to_point, "point-to-point", CollectivePattern::one_to_one, 1.0, false},
    {CollectiveKind::ragged_all_to_all, "ragged-all-to-all", CollectivePattern::exchange, 1.0, false},
};
constexpr const CollectiveFacts& facts(CollectiveKind kind) { return all_collectives[static_cast<std::size_t>(kind)]; }
static_assert([] {
  for (std::size_t i = 0; i < collective_kinds; ++i)
    if (all_collectives[i].kind != static_cast<CollectiveKind>(i)) return false;
  return std::size(all_collectives) == collective_kinds;
}());

constexpr std::string_view name(CollectiveKind kind) { return facts(kind).name; }
constexpr bool is_exchange(CollectiveKind kind) { return facts(kind).pattern == CollectivePattern::exchange; }
constexpr bool is_one_to_one(CollectiveKind kind) { return facts(kind).pattern == CollectivePattern::one_to_one; }
constexpr bool is_rooted(CollectiveKind kind) { return facts(kind).pattern == CollectivePattern::rooted; }
Result<CollectiveKind> parse_collective(std::string_view text, std::string_view where);

template <class N>
struct CollectiveCost {
  typename N::template Number<Dim{.sec = 1}> bandwidth, latency, lower, upper;
  typename N::template Number<Dim{.sec = 1}> approximate;  ///< bandwidth term without (n - 1) / n: the rule of thumb
};

/// Cost of a collective on an array of `bytes` in total, as one group sees it: what is gathered, reduced or exchanged.
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

/// Hops of the longest chain.
double collective_hops(CollectiveKind kind, const CollectiveGroup& group);
/// Share of the array that crosses into one child of a level of a tree, over all passes.
double share_into_child(CollectiveKind kind, const CollectiveGroup& group, const CollectiveGroup::TreeLevel& level);
/// Chips whose links into a child of a level serve one copy of the array.
double lanes_used(CollectiveKind kind, const CollectiveGroup& group, const CollectiveGroup::TreeLevel& level);
/// The traffic of a collective at one level of a tree.
struct LevelTraffic {
  std::uint8_t level = 0;  ///< of the cluster
  double groups = 1;       ///< children that hold different shards
  double lanes = 1;        ///< chips whose links work in parallel for one copy
  BytesPerSecond stream;   ///< of all lanes, one way
  Bytes into_child;        ///< over all passes
  Seconds time;
  bool reduces = false;  ///< the switches reduce
};
/// For the levels that are crossed, from the chip upwards.
std::vector<LevelTraffic> level_traffic(CollectiveKind kind, Bytes bytes, const CollectiveGroup& group);
/// The same group without in-network reduction.
CollectiveGroup without_in_network_reduction(CollectiveGroup group);

/// Bytes over the busiest link of one chip, one way.
Bytes busiest_link(CollectiveKind kind, Bytes bytes, const CollectiveGroup& group);
/// The algorithm: "bidirectional ring", "line", "axes in parallel", "tree", "in-network reduction".
std::string algorithm(CollectiveKind kind, const CollectiveGroup& group);

}  // namespace assay::network

// Collectives: the one list of their kinds, and what is true of each on every network. A new kind is a row here; what
// it costs is in predict/collective/, how it moves data in engine/, where plans use it in program/plan/.
#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "assay/base/result.h"

namespace assay::program {

enum class Collective : std::uint8_t {
  all_gather,
  reduce_scatter,
  all_reduce,
  all_to_all,
  permute,
  broadcast,
  reduce,
  point_to_point,     ///< from one device to the farthest one, over one path
  ragged_all_to_all,  ///< devices receive different amounts; see collective::CollectiveGroup::imbalance
};
inline constexpr std::size_t collective_kinds = 9;

/// The communication pattern.
enum class CollectivePattern : std::uint8_t {
  sharded,     ///< each device holds a shard before, after, or in between
  exchange,    ///< each pair of devices has a piece of its own
  one_to_one,  ///< each device sends to one other over its own links
  rooted,      ///< one device sends or receives the whole array
};

/// Which part of the array a device of the group holds.
enum class Holding : std::uint8_t { shard, whole };

/// All properties of a kind of collective.
struct CollectiveFacts {
  Collective kind;
  std::string_view name;      ///< in requests and answers
  std::string_view notation;  ///< in the sharding algebra: "AllGather_X(A)"
  CollectivePattern pattern;
  Holding before, after;
  double passes;           ///< times the array crosses; an all-reduce is a reduce-scatter and an all-gather
  bool sums;               ///< adds up what the devices hold
  bool switches_can_add;   ///< in-network reduction applies
  bool reshards;           ///< changes the sharding of a tensor: plans and programs use it
  Collective measured_as;  ///< the kind whose measured curve it follows
};

namespace collectives {

using enum Collective;
using enum CollectivePattern;
using enum Holding;

// clang-format off
inline constexpr std::array<CollectiveFacts, collective_kinds> table{{
    {all_gather, "all-gather", "AllGather", sharded, shard, whole, 1.0, false, false, true, all_gather},
    {reduce_scatter, "reduce-scatter", "ReduceScatter", sharded, whole, shard, 1.0, true, false, true, reduce_scatter},
    {all_reduce, "all-reduce", "AllReduce", sharded, whole, whole, 2.0, true, true, true, all_reduce},
    {all_to_all, "all-to-all", "AllToAll", exchange, shard, shard, 1.0, false, false, true, all_to_all},
    {permute, "permute", "Permute", one_to_one, whole, whole, 1.0, false, false, true, all_gather},
    {broadcast, "broadcast", "Broadcast", rooted, whole, whole, 1.0, false, false, false, all_gather},
    {reduce, "reduce", "Reduce", rooted, whole, whole, 1.0, true, true, false, reduce_scatter},
    {point_to_point, "point-to-point", "Send", one_to_one, whole, whole, 1.0, false, false, false, all_gather},
    {ragged_all_to_all, "ragged-all-to-all", "RaggedAllToAll", exchange, shard, shard, 1.0, false, false, false,
     all_to_all},
}};
// clang-format on

/// Whether every kind has its row, at the index of its number.
constexpr bool is_complete() {
  for (std::size_t i = 0; i < collective_kinds; ++i)
    if (table[i].kind != static_cast<Collective>(i) || table[i].name.empty()) return false;
  return true;
}
static_assert(is_complete());

}  // namespace collectives

inline constexpr const std::array<CollectiveFacts, collective_kinds>& all_collectives = collectives::table;
constexpr const CollectiveFacts& facts(Collective kind) { return all_collectives[static_cast<std::size_t>(kind)]; }
constexpr std::string_view name(Collective kind) { return facts(kind).name; }
constexpr bool is_exchange(Collective kind) { return facts(kind).pattern == CollectivePattern::exchange; }
constexpr bool is_one_to_one(Collective kind) { return facts(kind).pattern == CollectivePattern::one_to_one; }
constexpr bool is_rooted(Collective kind) { return facts(kind).pattern == CollectivePattern::rooted; }
/// Shards become copies of the whole array.
constexpr bool gathers(Collective kind) {
  return facts(kind).before == Holding::shard && facts(kind).after == Holding::whole;
}
/// Copies or partial sums of the whole array become shards.
constexpr bool scatters(Collective kind) {
  return facts(kind).before == Holding::whole && facts(kind).after == Holding::shard;
}

/// Bytes of the array that a group of n devices works on, per byte that a device holds before.
constexpr double array_share(Collective kind, double n) { return facts(kind).before == Holding::shard ? n : 1.0; }
/// Bytes that a device receives in a group of n, per byte that it holds before; for a rooted kind, the busiest device.
constexpr double received_share(Collective kind, double n) {
  const CollectiveFacts& of = facts(kind);
  if (of.pattern == CollectivePattern::one_to_one || of.pattern == CollectivePattern::rooted) return of.passes;
  return of.passes * (gathers(kind) ? n - 1.0 : (n - 1.0) / n);
}
/// Bytes that a device receives in a group of n, per byte of the array.
constexpr double received_of_array(Collective kind, double n) { return received_share(kind, n) / array_share(kind, n); }

Result<Collective> parse_collective(std::string_view text, std::string_view where);

}  // namespace assay::program

#include "assay/predict/collective/collectives.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace assay::collective {
namespace {

/// The axis is a ring and both of its directions are used.
bool both_ways(const CollectiveGroup& group, const CollectiveGroup::TorusAxis& axis) {
  return axis.ring && !group.one_way;
}

bool all_rings(const CollectiveGroup& group) {
  return std::all_of(group.axes.begin(), group.axes.end(), [](const auto& axis) { return axis.ring; });
}

/// Chips of the group within one torus.
double torus_chips(const CollectiveGroup& group) {
  double n = 1;
  for (const auto& axis : group.axes) n *= axis.size;
  return n;
}

/// Number of one-way links that feed one chip at the bottleneck: both directions of a ring, one end of a line.
double ports(const CollectiveGroup& group) {
  double n = 0;
  for (const auto& axis : group.axes) n += (both_ways(group, axis) ? 2.0 : 1.0) / axis.share;
  return n;
}

/// The largest number of groups that share a link.
double most_share(const CollectiveGroup& group) {
  double share = 1;
  for (const auto& axis : group.axes) share = std::max(share, axis.share);
  return share;
}

bool in_network(program::Collective kind, const CollectiveGroup::TreeLevel& level) {
  return level.reduces && facts(kind).switches_can_add;
}

/// Bytes received by each device except the busiest, over the mean.
double others_receive(const CollectiveGroup& group) {
  return group.devices > 1.0 ? 1.0 - (group.imbalance - 1.0) / (group.devices - 1.0) : 1.0;
}

/// Share of the array that a chip of a torus receives over its ports. A ring moves a shard floor(n/2) hops both ways,
/// which on an even ring amounts to the whole array; on a line, or in one direction, all but the chip's own shard
/// arrive.
double torus_share(const CollectiveGroup& group) {
  const double n = torus_chips(group);
  if (group.axes.size() == 1 && both_ways(group, group.axes[0])) return 2.0 * std::floor(n / 2.0) / n;
  return all_rings(group) && !group.one_way ? 1.0 : (n - 1.0) / n;
}

template <class N>
using Time = typename N::template Number<Dim{.sec = 1}>;

template <class N>
struct Terms {
  Time<N> exact, approximate;
};

/// Share of the array over the busiest link of an axis in a ragged all-to-all: the part that all receive equally, plus
/// the busiest chip's excess, over the links of its own line. Pieces travel axis by axis, in all rotations of the
/// order, so pieces that take an axis last arrive merged from all earlier axes. On a line the busiest chip is at the
/// end, and the worst link, k from it, carries (m - k) (k alike + beyond).
double ragged_share(const CollectiveGroup& group, std::size_t axis) {
  const double chips = torus_chips(group), m = group.axes[axis].size, alike = others_receive(group);
  const std::size_t k = group.axes.size();
  double joined = 0;  // pieces merged along the earlier axes, mean over the rotations
  for (std::size_t first = 0; first < k; ++first) {
    double before = 1;
    for (std::size_t i = first; i % k != axis; ++i) before *= group.axes[i % k].size;
    joined += before / static_cast<double>(k);
  }
  const double beyond = (group.imbalance - alike) * joined, lines = chips / m;
  const double pieces = chips * chips;
  if (group.axes[axis].ring && group.one_way) return (alike * lines * m / 2.0 + beyond) * (m - 1.0) / pieces;
  if (group.axes[axis].ring && m > 2.0) return (alike * lines * m * m / 8.0 + beyond * (m - 1.0) / 2.0) / pieces;
  const double best = alike > 0.0 ? (m - beyond / (alike * lines)) / 2.0 : 1.0;
  const double place = std::clamp(best, 1.0, m - 1.0);
  return (m - place) * (place * alike * lines + beyond) / pieces;
}

/// All-to-all on a torus: the busiest axis.
template <class N, class Array, class Link>
Terms<N> exchange_terms(const N& num, program::Collective kind, const Array& array, const Link& link,
                        const CollectiveGroup& group) {
  // Half of each half's bytes cross the middle of an axis, a quarter of the array each way.
  // In one direction, a piece takes (n - 1) / 2 hops on average, so a link carries (n - 1) / 2n of the array.
  std::optional<Time<N>> worst, rough;
  const double chips = torus_chips(group);
  for (std::size_t i = 0; i < group.axes.size(); ++i) {
    const auto& axis = group.axes[i];
    const bool round = group.one_way && axis.ring, ragged = kind == program::Collective::ragged_all_to_all;
    const auto share =
        ragged ? num.given("share over a link", ragged_share(group, i), "next to the busiest chip")
        : round
            ? num.given("share over a link", 0.5 * (axis.size - 1.0) / axis.size, "mean distance one way round, over n")
            : num.given("share that crosses", 0.25, "each half sends half of its bytes to the other");
    const double across = ragged ? 1.0 : chips / axis.size * (both_ways(group, axis) && axis.size > 2 ? 2.0 : 1.0);
    const auto links = num.given("links across", across / axis.share, "middle of the axis, one way");
    const auto time = num.named("axis", share * array / (links * link));
    const auto about =
        round && !ragged ? num.given("share over a link", 0.5, "n large") * array / (links * link) : time;
    worst = worst ? max(*worst, time) : time;
    rough = rough ? max(*rough, about) : about;
  }
  return {num.named("time at full bandwidth", *worst), *rough};
}

template <class N>
Terms<N> torus_terms(const N& num, program::Collective kind, Bytes bytes, const CollectiveGroup& group,
                     const CollectiveLabels* labels) {
  const auto array = num.given("array", bytes, "one group's bytes");
  const auto link = num.given("link bandwidth", group.link, labels ? std::string_view(labels->link) : "");
  if (is_one_to_one(kind)) {
    const double share = most_share(group);
    const auto time =
        num.named("time at full bandwidth",
                  share == 1.0 ? array / link
                               : num.given("groups per link", share, "interleaved groups share it") * array / link);
    return {time, time};
  }
  if (is_exchange(kind)) {
    if (!group.mixed()) return exchange_terms(num, kind, array, link, group);
    const double slices = group.devices / torus_chips(group);
    const auto inside = num.given("share within a slice", 1.0 / (slices * slices), "pieces between its own chips");
    return exchange_terms(num, kind, inside * array, link, group);
  }
  const auto share =
      num.given("share received", is_rooted(kind) ? 1.0 : torus_share(group), "of the array, by each chip");
  const auto width = num.given("ports", ports(group), "links into one chip, one way");
  const auto count = num.given("passes", facts(kind).passes, "reduce-scatter and all-gather make an all-reduce");
  const auto whole = array / (width * link);
  if (kind == program::Collective::all_reduce)
    return {num.named("time at full bandwidth", count * (share * whole)), num.named("approximate", count * whole)};
  return {num.named("time at full bandwidth", share * whole),
          num.named("approximate", num.given("whole array", 1.0, "n large") * whole)};
}

/// Share of the array that crosses into one child of a level, over all passes, and its limit for many participants.
struct Crossing {
  double exact, many;
};

Crossing crossing(program::Collective kind, const CollectiveGroup& group, const CollectiveGroup::TreeLevel& level) {
  if (is_exchange(kind)) {
    const double part = level.lanes / (group.devices * group.inner);  // share of the array below one child
    // The busiest chip's own port is the bottleneck: its data cannot use other chips' ports.
    const double more = kind == program::Collective::ragged_all_to_all ? group.imbalance : 1.0;
    const double once = group.routing.sent_share(1.0 / part);
    return {part * (1.0 - part) * more * once, part * more * once};
  }
  const bool whole = in_network(kind, level) || is_rooted(kind) || is_one_to_one(kind);
  const double factor = in_network(kind, level) ? 1.0 : facts(kind).passes;
  return {factor * (whole ? 1.0 : (level.groups - 1.0) / level.groups), factor};
}

template <class N>
Terms<N> tree_terms(const N& num, program::Collective kind, Bytes bytes, const CollectiveGroup& group,
                    const CollectiveLabels* labels) {
  const auto array = num.given("array", bytes, "one copy");
  std::optional<Time<N>> worst, rough;
  for (const auto& level : group.levels) {
    if (level.groups <= 1.0) continue;
    const std::string_view called = labels ? std::string_view(labels->levels[level.level].name) : "level";
    const auto chip = num.given("bandwidth per chip", level.chip_bandwidth,
                                labels ? std::string_view(labels->levels[level.level].source) : "");
    const auto lanes = num.given("chips in parallel", lanes_used(kind, group, level), called);
    const auto stream = lanes * chip;
    const Crossing share = crossing(kind, group, level);
    const auto into_child =
        num.given("share into one child", share.exact,
                  in_network(kind, level) ? "reduced in the switches" : "what it does not yet hold");
    const auto time = num.named(called, into_child * array / stream);
    const auto about = num.given("passes", share.many, "n large") * array / stream;
    worst = worst ? max(*worst, time) : time;
    rough = rough ? max(*rough, about) : about;
  }
  if (!worst) {
    const auto none = num.given("no level crossed", Seconds(0.0), "one participant");
    return {none, none};
  }
  return {num.named("time at full bandwidth", *worst), num.named("approximate", *rough)};
}

template <class N>
Terms<N> all_terms(const N& num, program::Collective kind, Bytes bytes, const CollectiveGroup& group,
                   const CollectiveLabels* labels) {
  if (group.torus()) return torus_terms(num, kind, bytes, group, labels);
  const Terms<N> tree = tree_terms(num, kind, bytes, group, labels);
  if (!group.mixed()) return tree;
  // Within and between slices concurrently, shard by shard.
  const Terms<N> torus = torus_terms(num, kind, bytes, group, labels);
  return {num.named("time at full bandwidth",
                    max(num.named("slice", torus.exact), num.named("between slices", tree.exact))),
          num.named("approximate", max(torus.approximate, tree.approximate))};
}

}  // namespace

double lanes_used(program::Collective kind, const CollectiveGroup& group, const CollectiveGroup::TreeLevel& level) {
  return is_one_to_one(kind) ? group.inner : level.lanes;
}

double collective_hops(program::Collective kind, const CollectiveGroup& group) {
  if (kind == program::Collective::permute) return most_share(group);
  double hops = 0.0;
  if (group.torus() || group.mixed()) {  // the catalogue has no latency for the network between slices
    for (const auto& axis : group.axes)
      hops += (both_ways(group, axis) ? std::floor(axis.size / 2.0) : axis.size - 1.0) * axis.share;
    return hops * facts(kind).passes;
  }
  for (const auto& level : group.levels) hops += level.groups > 1.0 ? 2.0 : 0.0;
  return std::max(hops - 1.0, 0.0);
}

template <class N>
CollectiveCost<N> collective_cost(const N& num, program::Collective kind, Bytes bytes, const CollectiveGroup& group,
                                  const CollectiveLabels* labels) {
  if (group.torus() && group.axes.empty()) {
    const auto none = num.given("no axis", Seconds(0.0), "one participant");
    return {none, none, none, none, none};
  }
  const Terms<N> terms = all_terms(num, kind, bytes, group, labels);
  const auto hops = num.given("hops", collective_hops(kind, group), "longest chain");
  const std::string_view source = group.hop_latency == Seconds(0) ? "not in the catalogue"
                                  : labels                        ? std::string_view(labels->hop_latency)
                                                                  : "";
  const auto latency = num.named("latency", hops * num.given("hop latency", group.hop_latency, source));
  return {terms.exact, latency, num.named("lower bound", max(terms.exact, latency)),
          num.named("upper bound", terms.exact + latency), terms.approximate};
}

template <class N>
CollectiveLineOf<N> collective_line(const N& num, program::Collective kind, const CollectiveGroup& group,
                                    const CollectiveLabels* labels) {
  std::optional<Origins> origins;
  if constexpr (N::traced) origins.emplace(num).add("array", num.constant(1_B));
  const CollectiveCost<N> one = collective_cost(num, kind, 1_B, group, labels);
  return {one.bandwidth / num.constant(1_B), one.latency};
}

CollectiveLine collective_line(program::Collective kind, const CollectiveGroup& group) {
  const CollectiveLineOf<Plain> line = collective_line(Plain{}, kind, group);
  return {line.rate, line.floor};
}

std::array<CollectiveLine, program::collective_kinds> collective_lines(const CollectiveGroup& group) {
  std::array<CollectiveLine, program::collective_kinds> lines;
  for (std::size_t kind = 0; kind < program::collective_kinds; ++kind)
    lines[kind] = collective_line(static_cast<program::Collective>(kind), group);
  return lines;
}

double share_into_child(program::Collective kind, const CollectiveGroup& group,
                        const CollectiveGroup::TreeLevel& level) {
  return crossing(kind, group, level).exact;
}

std::vector<LevelTraffic> level_traffic(program::Collective kind, Bytes bytes, const CollectiveGroup& group) {
  std::vector<LevelTraffic> rows;
  for (const auto& level : group.levels) {
    if (level.groups <= 1.0) continue;
    const double lanes = lanes_used(kind, group, level);
    const BytesPerSecond stream = lanes * level.chip_bandwidth;
    const Bytes moved = share_into_child(kind, group, level) * bytes;
    rows.push_back({level.level, level.groups, lanes, stream, moved, moved / stream, level.reduces});
  }
  return rows;
}

CollectiveGroup without_in_network_reduction(CollectiveGroup group) {
  for (auto& level : group.levels) level.reduces = false;
  return group;
}

Bytes busiest_link(program::Collective kind, Bytes bytes, const CollectiveGroup& group) {
  if (group.torus()) return collective_cost(Plain{}, kind, bytes, group).bandwidth * group.link;
  Bytes most(0);
  for (const auto& level : group.levels)
    if (level.groups > 1.0)
      most = std::max(most, crossing(kind, group, level).exact / lanes_used(kind, group, level) * bytes);
  return most;
}

std::string algorithm(program::Collective kind, const CollectiveGroup& group) {
  if (group.devices <= 1.0) return "nothing to do";
  if (kind == program::Collective::point_to_point) return "one way, pipelined";
  if (group.mixed()) return "within and between slices concurrently";
  if (!group.torus()) {
    for (const auto& level : group.levels)
      if (level.groups > 1.0 && in_network(kind, level)) return "tree with in-network reduction";
    return "tree, all levels concurrently";
  }
  if (kind == program::Collective::permute) return "one hop";
  if (is_exchange(kind)) return group.one_way ? "one way round each ring" : "shortest paths, all links";
  const std::string base = group.axes.size() > 1 ? fmt::format("{} axes in parallel, ", group.axes.size()) : "";
  const std::string_view lines = !all_rings(group) ? "lines"
                                 : group.one_way   ? "one-directional rings"
                                                   : "bidirectional rings";
  const double share = most_share(group);
  return base + std::string(lines) + (share > 1.0 ? fmt::format(", {} interleaved groups per link", share) : "");
}

#define ASSAY_INSTANTIATE(N)                                                                               \
  template CollectiveCost<N> collective_cost(const N&, program::Collective, Bytes, const CollectiveGroup&, \
                                             const CollectiveLabels*);                                     \
  template CollectiveLineOf<N> collective_line(const N&, program::Collective, const CollectiveGroup&,      \
                                               const CollectiveLabels*);
ASSAY_INSTANTIATE(Plain)
ASSAY_INSTANTIATE(Traced)
#undef ASSAY_INSTANTIATE

}  // namespace assay::collective

#include "assay/cost/collectives.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "assay/base/text.h"

namespace assay {
namespace {

constexpr std::pair<CollectiveKind, std::string_view> names[] = {
    {CollectiveKind::all_gather, "all-gather"}, {CollectiveKind::reduce_scatter, "reduce-scatter"},
    {CollectiveKind::all_reduce, "all-reduce"}, {CollectiveKind::all_to_all, "all-to-all"},
    {CollectiveKind::permute, "permute"},       {CollectiveKind::broadcast, "broadcast"},
    {CollectiveKind::reduce, "reduce"}};

/// The axis is closed and both of its directions are used.
bool both_ways(const CollectiveGroup& group, const CollectiveGroup::TorusAxis& axis) {
  return axis.ring && !group.one_way;
}

bool all_rings(const CollectiveGroup& group) {
  return std::all_of(group.axes.begin(), group.axes.end(), [](const auto& axis) { return axis.ring; });
}

/// One-way link bandwidths that feed one chip at the narrowest place: both directions of a ring, one end of a line.
double ports(const CollectiveGroup& group) {
  double n = 0;
  for (const auto& axis : group.axes) n += both_ways(group, axis) ? 2.0 : 1.0;
  return n;
}

/// One chip sends or receives the whole array.
bool rooted(CollectiveKind kind) { return kind == CollectiveKind::broadcast || kind == CollectiveKind::reduce; }

/// How often the array crosses: an all-reduce is a reduce-scatter and an all-gather.
double passes(CollectiveKind kind) { return kind == CollectiveKind::all_reduce ? 2.0 : 1.0; }

bool in_network(CollectiveKind kind, const CollectiveGroup::TreeLevel& level) {
  return level.reduces && (kind == CollectiveKind::all_reduce || kind == CollectiveKind::reduce);
}

/// Share of the array that a chip of a torus receives over its ports. A closed ring takes floor(n/2) hops of a shard
/// both ways, which for an even ring is as if the whole array moved; on a line, or one way round, all but the own shard
/// arrive.
double torus_share(const CollectiveGroup& group) {
  const double n = group.devices;
  if (group.axes.size() == 1 && both_ways(group, group.axes[0])) return 2.0 * std::floor(n / 2.0) / n;
  return all_rings(group) && !group.one_way ? 1.0 : (n - 1.0) / n;
}

template <class N>
using Time = typename N::template Number<Dim{.sec = 1}>;

template <class N>
struct Terms {
  Time<N> exact, approximate;
};

template <class N>
Terms<N> torus_terms(const N& num, CollectiveKind kind, Bytes bytes, const CollectiveGroup& group) {
  const auto array = num.given("array", bytes, "one group's bytes");
  const auto link = num.given("link bandwidth", group.link);
  if (kind == CollectiveKind::permute) {
    const auto time = num.named("bandwidth", array / link);
    return {time, time};
  }
  if (kind == CollectiveKind::all_to_all) {
    // Half of each half's bytes cross the middle of an axis, a quarter of the array each way.
    // One way round, a piece takes (n - 1) / 2 hops on average, so a link carries (n - 1) / 2n of the array.
    std::optional<Time<N>> worst, rough;
    for (const auto& axis : group.axes) {
      const bool round = group.one_way && axis.ring;
      const auto share = round
                             ? num.given("share over a link", 0.5 * (axis.size - 1.0) / axis.size,
                                         "mean distance one way round, over n")
                             : num.given("share that crosses", 0.25, "each half sends half of its bytes to the other");
      const auto links =
          num.given("links across", group.devices / axis.size * (both_ways(group, axis) && axis.size > 2 ? 2.0 : 1.0),
                    "middle of the axis, one way");
      const auto time = num.named("axis", share * array / (links * link));
      const auto about = round ? num.given("share over a link", 0.5, "n large") * array / (links * link) : time;
      worst = worst ? max(*worst, time) : time;
      rough = rough ? max(*rough, about) : about;
    }
    return {num.named("bandwidth", *worst), *rough};
  }
  const auto share = num.given("share received", rooted(kind) ? 1.0 : torus_share(group), "of the array, by each chip");
  const auto width = num.given("ports", ports(group), "links into one chip, one way");
  const auto count = num.given("passes", passes(kind), "reduce-scatter and all-gather make an all-reduce");
  const auto whole = array / (width * link);
  if (kind == CollectiveKind::all_reduce)
    return {num.named("bandwidth", count * (share * whole)), num.named("approximate", count * whole)};
  return {num.named("bandwidth", share * whole),
          num.named("approximate", num.given("whole array", 1.0, "n large") * whole)};
}

/// Share of the array that crosses into one child of a level, all passes counted, and the same for many participants.
struct Crossing {
  double exact, many;
};

Crossing crossing(CollectiveKind kind, const CollectiveGroup& group, const CollectiveGroup::TreeLevel& level) {
  if (kind == CollectiveKind::all_to_all) {
    const double part = level.lanes / (group.devices * group.inner);  // of the array below one child
    return {part * (1.0 - part), part};
  }
  const bool whole = in_network(kind, level) || rooted(kind) || kind == CollectiveKind::permute;
  const double factor = in_network(kind, level) ? 1.0 : passes(kind);
  return {factor * (whole ? 1.0 : (level.groups - 1.0) / level.groups), factor};
}

template <class N>
Terms<N> tree_terms(const N& num, CollectiveKind kind, Bytes bytes, const CollectiveGroup& group) {
  const auto array = num.given("array", bytes, "one copy");
  std::optional<Time<N>> worst, rough;
  for (const auto& level : group.levels) {
    if (level.groups <= 1.0) continue;
    const auto chip = num.given("bandwidth per chip", level.chip_bandwidth);
    const auto lanes = num.given("chips side by side", level.lanes, level.name);
    const auto stream = lanes * chip;
    const Crossing share = crossing(kind, group, level);
    const auto into_child = num.given("share into one child", share.exact,
                                      in_network(kind, level) ? "the switches add" : "what it does not hold yet");
    const auto time = num.named(level.name, into_child * array / stream);
    const auto about = num.given("passes", share.many, "n large") * array / stream;
    worst = worst ? max(*worst, time) : time;
    rough = rough ? max(*rough, about) : about;
  }
  if (!worst) {
    const auto none = num.given("no level crossed", Seconds(0.0), "one participant");
    return {none, none};
  }
  return {num.named("bandwidth", *worst), num.named("approximate", *rough)};
}

}  // namespace

std::string_view name(CollectiveKind kind) {
  for (const auto& [entry, text] : names)
    if (entry == kind) return text;
  return "";
}

Result<CollectiveKind> parse_collective(std::string_view text, std::string_view where) {
  std::vector<std::string> known;
  for (const auto& [kind, word] : names) {
    if (word == text) return kind;
    known.emplace_back(word);
  }
  return fail(std::string(where), fmt::format("unknown collective {}", in_quotes(text)), suggestion(text, known),
              Error::Kind::usage);
}

Result<CollectiveGroup> make_group(const Cluster& cluster, const std::vector<std::string>& axes, double inner,
                                   std::string_view where) {
  CollectiveGroup group;
  group.hop_latency = {Seconds(0), "not in the catalogue", "", {}};
  const auto& up = cluster.chip.network.scale_up;
  if (up && up->hop_latency) group.hop_latency = *up->hop_latency;
  if (cluster.torus) {
    group.link = up->link_bandwidth;
    std::vector<std::string> known;
    for (const Axis& axis : cluster.torus->axes) known.push_back(axis.name);
    if (cluster.slices > 1) known.emplace_back("slices");
    const std::vector<std::string> wanted =
        axes.empty() ? std::vector<std::string>(known.begin(),
                                                known.begin() + static_cast<std::ptrdiff_t>(cluster.torus->axes.size()))
                     : axes;
    for (const std::string& axis : wanted) {
      const auto found = std::find(known.begin(), known.end(), axis);
      if (found == known.end())
        return fail(std::string(where), fmt::format("{} has no axis {}", cluster.text, in_quotes(axis)),
                    "its axes are " + join(known, ", "), Error::Kind::usage);
      if (std::count(wanted.begin(), wanted.end(), axis) > 1)
        return fail(std::string(where), fmt::format("axis {} is named twice", axis), "", Error::Kind::usage);
      if (axis == "slices") {
        if (wanted.size() > 1)
          return fail(std::string(where), "slices are joined by another network than the torus axes",
                      "ask for them one after the other", Error::Kind::usage);
        const Level& dcn = cluster.levels.front();
        group.levels.push_back({static_cast<double>(cluster.slices),
                                std::max(inner, 1.0),
                                {dcn.chip_bandwidth, dcn.source, "", {}},
                                false,
                                "dcn"});
        group.devices = static_cast<double>(cluster.slices);
        group.inner = std::max(inner, 1.0);
        group.hop_latency = {Seconds(0), "not in the catalogue", "", {}};
        return group;
      }
      const Axis& physical = cluster.torus->axes[static_cast<std::size_t>(found - known.begin())];
      if (physical.size == 1) continue;
      group.axes.push_back({static_cast<double>(physical.size), physical.ring});
      group.devices *= static_cast<double>(physical.size);
    }
    return group;
  }
  if (!axes.empty())
    return fail(std::string(where), fmt::format("{} is not a torus, so it has no axes", cluster.text),
                "leave --axes out: the collective runs over all chips, or over those that --sharded-by leaves",
                Error::Kind::usage);
  const double chips = static_cast<double>(cluster.chips());
  if (inner > chips || std::fmod(chips, inner) != 0.0)
    return fail("--sharded-by", fmt::format("{} chips do not divide by {}", cluster.chips(), inner), "",
                Error::Kind::usage);
  group.devices = chips / inner;
  group.inner = inner;
  double below = 1.0;
  for (const Level& level : cluster.levels) {
    const double unit = static_cast<double>(level.chips), lanes = std::max(inner, below);
    group.levels.push_back({std::max(1.0, unit / lanes),
                            lanes,
                            {level.chip_bandwidth, level.source, "", {}},
                            level.in_network_reduction,
                            level.name});
    below = unit;
  }
  if (group.levels.empty()) group.levels.push_back({1.0, 1.0, {BytesPerSecond(1.0), "unused", "", {}}, false, "chip"});
  return group;
}

double collective_hops(CollectiveKind kind, const CollectiveGroup& group) {
  if (kind == CollectiveKind::permute) return 1.0;
  double hops = 0.0;
  if (group.torus()) {
    for (const auto& axis : group.axes) hops += both_ways(group, axis) ? std::floor(axis.size / 2.0) : axis.size - 1.0;
    return hops * passes(kind);
  }
  for (const auto& level : group.levels) hops += level.groups > 1.0 ? 2.0 : 0.0;
  return std::max(hops - 1.0, 0.0);
}

template <class N>
CollectiveCost<N> collective_cost(const N& num, CollectiveKind kind, Bytes bytes, const CollectiveGroup& group) {
  const bool alone = group.torus() && group.axes.empty();
  if (alone) {
    const auto none = num.given("no axis", Seconds(0.0), "one participant");
    return {none, none, none, none, none};
  }
  const Terms<N> terms = group.torus() ? torus_terms(num, kind, bytes, group) : tree_terms(num, kind, bytes, group);
  const auto hops = num.given("hops", collective_hops(kind, group), "longest chain");
  const auto latency = num.named("latency", hops * num.given("hop latency", group.hop_latency));
  return {terms.exact, latency, num.named("lower bound", max(terms.exact, latency)),
          num.named("upper bound", terms.exact + latency), terms.approximate};
}

double share_into_child(CollectiveKind kind, const CollectiveGroup& group, const CollectiveGroup::TreeLevel& level) {
  return crossing(kind, group, level).exact;
}

Bytes busiest_link(CollectiveKind kind, Bytes bytes, const CollectiveGroup& group) {
  if (group.torus()) return collective_cost(Plain{}, kind, bytes, group).bandwidth * group.link.value;
  Bytes most(0);
  for (const auto& level : group.levels)
    if (level.groups > 1.0) most = std::max(most, crossing(kind, group, level).exact / level.lanes * bytes);
  return most;
}

std::string algorithm(CollectiveKind kind, const CollectiveGroup& group) {
  if (group.devices <= 1.0) return "nothing to do";
  if (!group.torus()) {
    for (const auto& level : group.levels)
      if (level.groups > 1.0 && in_network(kind, level)) return "tree with in-network reduction";
    return "tree, all levels at once";
  }
  if (kind == CollectiveKind::permute) return "one hop";
  if (kind == CollectiveKind::all_to_all)
    return group.one_way ? "one way round each ring" : "shortest paths, all links";
  const std::string base = group.axes.size() > 1 ? fmt::format("{} axes side by side, ", group.axes.size()) : "";
  return base + (!all_rings(group) ? "lines" : group.one_way ? "one-directional rings" : "bidirectional rings");
}

#define ASSAY_INSTANTIATE(N) \
  template CollectiveCost<N> collective_cost(const N&, CollectiveKind, Bytes, const CollectiveGroup&);
ASSAY_INSTANTIATE(Plain)
ASSAY_INSTANTIATE(Traced)
#undef ASSAY_INSTANTIATE

}  // namespace assay

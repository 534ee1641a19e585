#include "assay/estimate/collective_models.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>

namespace assay::estimate {
namespace {

/// Keys of the curves in a calibration file, in the order of hardware::collective_curves; then of hardware::Fabric.
constexpr std::string_view curve_keys[] = {"all_gather", "reduce_scatter", "all_reduce", "all_to_all"};
constexpr std::string_view fabric_keys[] = {"infiniband", "efa", "tcpxo"};

/// Writes the form of one kind of collective over one group.
template <class N>
class CollectiveFormer {
 public:
  CollectiveFormer(const N& num, const hardware::CollectiveCalibration& fit, program::Collective kind,
                   const network::CollectiveGroup& group, const CollectiveSoftware& software)
      : num_(num), fit_(fit), kind_(kind), group_(group), software_(software), curve_(curve_of(fit, kind)) {}

  CollectiveForm<N> form() const {
    if (group_.devices <= 1.0) return {};
    const auto latency = given("latency of a collective", curve_.latency, "latency");
    if (!group_.axes.empty()) {
      const auto cost = network::collective_cost(num_, kind_, 1_B, group_, software_.labels);
      const auto per_byte =
          num_.named("time of a byte",
                     cost.bandwidth / given("share of the bandwidth", curve_.share, "share") / num_.constant(1_B));
      return {num_.named("latency", latency + cost.latency), per_byte, num_.named("filling", filled(per_byte))};
    }
    const Levels levels = crossed();
    Time starts = latency;
    Rate inside{};
    Time fill{};
    if (levels.node) {
      inside = num_.named("in a node", in_node(*levels.node));
      starts =
          starts + num_.named("members", num_.given("other members", levels.members - 1.0, "of the group in a node") *
                                             given("each", curve_.member, "member"));
      fill = filled(inside);
    }
    if (levels.nodes <= 1.0) return {num_.named("latency", starts), inside, num_.named("filling", fill)};
    const hardware::AcrossCurve across = fit_.across(software_.fabric);
    const auto rate = num_.named("bandwidth between nodes",
                                 given_across("share of the interfaces", across.share, "share") * outward(levels));
    const auto between = num_.named("between nodes", between_nodes(levels, rate));
    starts = starts + rounds(across, levels.nodes) * given_across("latency between nodes", across.latency, "latency");
    const auto chunk = given_across("chunk between nodes", across.chunk, "chunk") / rate;
    fill = fill + num_.constant(2.0) * sqrt(between * num_.constant(1_B) * chunk);
    return {num_.named("latency", starts), num_.named("time of a byte", max(inside, between)),
            num_.named("filling", fill)};
  }

 private:
  using Time = NumberOf<N, Seconds>;
  using Rate = NumberOf<N, SecondsPerByte>;
  using Bandwidth = NumberOf<N, BytesPerSecond>;
  using Level = network::CollectiveGroup::TreeLevel;

  /// What of a tree the group crosses.
  struct Levels {
    const Level* node = nullptr;
    double members = 1, nodes = 1;
    double lanes = 1;                  ///< chips of a node whose interfaces work for the group
    const Level* narrowest = nullptr;  ///< above the node
  };
  Levels crossed() const {
    Levels out;
    for (const Level& level : group_.levels) {
      if (level.groups <= 1.0) continue;
      if (level.level == 0) {
        out.node = &level;
        out.members = level.groups;
        continue;
      }
      out.nodes *= level.groups;
      if (!out.narrowest) out.lanes = std::max(1.0, network::lanes_used(kind_, group_, level));
      if (!out.narrowest || level.chip_bandwidth < out.narrowest->chip_bandwidth) out.narrowest = &level;
    }
    return out;
  }

  /// How often a collective pays the latency between nodes. Trees double the nodes that they reach with each step. In
  /// NCCL's own model (src/graph/tuning.cc) a ring crosses to another node once for each, and an all-reduce goes around
  /// twice, or up and down a tree whose steps take twice as long under the protocol Simple. Two nodes gather in one.
  NumberOf<N, double> rounds(const hardware::AcrossCurve& across, double nodes) const {
    const double doublings = std::log2(nodes);
    if (!across.simple || program::is_exchange(kind_))
      return num_.given("doublings of nodes", doublings, "of the group");
    const double around = nodes / 2.0;
    return num_.given("rounds over nodes",
                      kind_ == program::Collective::all_reduce ? std::min(2.0 * around, 2.0 * doublings) : around,
                      "steps of a ring or a tree, relative to a gather over two nodes");
  }

  /// Time of a byte between chips of one node.
  Rate in_node(const Level& node) const {
    const double n = node.groups;
    double received = program::received_of_array(kind_, n);
    // The array covers all devices, and data for another node goes first to the chip at the same position there.
    if (program::is_exchange(kind_))
      received = (n - 1.0) / (n * group_.devices) * group_.imbalance * group_.routing.sent_share(group_.devices);
    const auto width = wide(std::max(1.0, network::lanes_used(kind_, group_, node)), node);
    const auto slower =
        num_.constant(1.0) + given("cost of small groups", curve_.pair, "pair") / num_.given("members", n, "in a node");
    const auto ring =
        num_.named("bandwidth of rings", given("share of the bandwidth", curve_.share, "share") * width / slower);
    const auto by_ring = num_.given("share received", received, "of the array, by each chip") / ring;
    if (kind_ != program::Collective::all_reduce || !node.reduces || fit_.in_network == 0.0 ||
        software_.algorithm == CollectiveAlgorithm::ring)
      return by_ring;
    const auto added =
        num_.given("share reduced by switches", fit_.in_network, software_.sources, "collective.in_network") * width;
    return min(num_.named("by rings", by_ring), num_.named("by switches", num_.constant(1.0) / added));
  }

  /// Time of a byte between nodes.
  Rate between_nodes(const Levels& levels, const Bandwidth& rate) const {
    double received = program::received_of_array(kind_, group_.devices);
    if (program::is_exchange(kind_)) {  // the part of a node's bytes that leaves it
      const double own = levels.members / group_.devices;
      received = own * (1.0 - own) * group_.imbalance * group_.routing.sent_share(levels.nodes);
    }
    const auto between = num_.given("share that arrives", received, "of the array, in each node") / rate;
    // Two nodes exchange their partial sums. More nodes forward each byte twice, in trees and rings.
    if (kind_ != program::Collective::all_reduce || software_.algorithm != CollectiveAlgorithm::automatic ||
        levels.nodes != 2.0)
      return between;
    Rate added{};
    if (fit_.tree && levels.members > 1.0)
      added = num_.constant(1.0) / num_.given("chains of chips", *fit_.tree, software_.sources, "collective.tree");
    return min(between, max(num_.constant(1.0) / rate, added));
  }

  /// Pipelining of one byte: chunks are pipelined, and this part of their latency remains at the best chunk size.
  Time filled(const Rate& per_byte) const {
    return num_.constant(2.0) * sqrt(per_byte * num_.constant(1_B) * given("chunk", curve_.chunk, "chunk"));
  }

  Bandwidth wide(double lanes, const Level& level) const {
    const network::CollectiveLabels* labels = software_.labels;
    return num_.times("chips in parallel", lanes, "for one copy of the array",
                      num_.given("bandwidth per chip", level.chip_bandwidth,
                                 labels ? std::string_view(labels->levels[level.level].source) : ""));
  }
  Bandwidth outward(const Levels& levels) const { return wide(levels.lanes, *levels.narrowest); }

  template <class Q>
  auto given(std::string_view name, Q number, std::string_view key) const {
    return keyed(name, number, curve_keys[static_cast<std::size_t>(program::facts(kind_).measured_as)], key);
  }
  template <class Q>
  auto given_across(std::string_view name, Q number, std::string_view key) const {
    return keyed(name, number, fabric_keys[static_cast<std::size_t>(software_.fabric)], key);
  }
  template <class Q>
  auto keyed(std::string_view name, Q number, std::string_view table, std::string_view key) const {
    if constexpr (N::traced)
      return num_.given(name, number, software_.sources, fmt::format("collective.{}.{}", table, key));
    else
      return number;
  }

  const N& num_;
  const hardware::CollectiveCalibration& fit_;
  program::Collective kind_;
  const network::CollectiveGroup& group_;
  const CollectiveSoftware& software_;
  const hardware::CollectiveCurve& curve_;
};

}  // namespace

template <class N>
CollectiveForm<N> collective_form(const N& num, const hardware::CollectiveCalibration& fit, program::Collective kind,
                                  const network::CollectiveGroup& group, const CollectiveSoftware& software) {
  return CollectiveFormer<N>(num, fit, kind, group, software).form();
}

template <class N>
CollectiveForm<N> uncalibrated_form(const N& num, const hardware::Chip& chip, program::Collective kind,
                                    const network::CollectiveGroup& group, const network::CollectiveLabels* labels) {
  const auto cost = network::collective_cost(num, kind, 1_B, group, labels);
  const hardware::Efficiency& reached = chip.efficiency;
  CollectiveForm<N> form{cost.latency, cost.bandwidth / num.constant(1_B), {}};
  if (reached.network) form.per_byte = form.per_byte / num.given("share of the bandwidth", *reached.network);
  if (reached.latency && group.devices > 1.0)
    form.latency = num.named("latency", form.latency + num.given("latency of a collective", *reached.latency));
  form.per_byte = num.named("time of a byte", form.per_byte);
  return form;
}

#define ASSAY_INSTANTIATE(N)                                                                                        \
  template CollectiveForm<N> collective_form(const N&, const hardware::CollectiveCalibration&, program::Collective, \
                                             const network::CollectiveGroup&, const CollectiveSoftware&);           \
  template CollectiveForm<N> uncalibrated_form(const N&, const hardware::Chip&, program::Collective,                \
                                               const network::CollectiveGroup&, const network::CollectiveLabels*);
ASSAY_INSTANTIATE(Plain)
ASSAY_INSTANTIATE(Traced)
#undef ASSAY_INSTANTIATE

}  // namespace assay::estimate

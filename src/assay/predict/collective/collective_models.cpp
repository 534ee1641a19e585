#include "assay/predict/collective/collective_models.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "assay/predict/collective/core_turns.h"

namespace assay::collective {
namespace {

/// Keys of the curves in a calibration file, in the order of hardware::collective_curves.
constexpr std::string_view curve_keys[] = {"all_gather", "reduce_scatter", "all_reduce", "all_to_all"};
constexpr std::string_view library_source = "the library's own model (steps/collectives.toml)";

/// Arrays from 1 KiB to 16 GiB, by which ways are compared.
constexpr Bytes smallest_array = 1_KiB;
constexpr std::size_t array_sizes = 25;  ///< each twice the one before
template <class N>
CollectiveWay<Plain> plain_way(const CollectiveWay<N>& way) {
  return {Seconds(way.latency.value()), SecondsPerByte(way.per_byte.value()), Seconds(way.pipeline.value())};
}

/// Writes the form of one kind of collective over one group.
template <class N>
class CollectiveFormer {
 public:
  CollectiveFormer(const N& num, const hardware::CollectiveCalibration& fit, program::Collective kind,
                   const collective::CollectiveGroup& group, const CollectiveSoftware& software)
      : num_(num), fit_(fit), kind_(kind), group_(group), software_(software), curve_(curve_of(fit, kind)) {}

  CollectiveForm<N> form() const {
    if (group_.devices <= 1.0) return {};
    const auto latency = given("latency of a collective", curve_.latency, "latency");
    if (!group_.axes.empty()) {
      const auto line = collective::collective_line(num_, kind_, group_, software_.labels);
      const auto per_byte =
          num_.named("time per byte", line.rate / given("share of the bandwidth", curve_.share, "share"));
      return CollectiveForm<N>({num_.named("latency", latency + line.floor), per_byte, {}},
                               num_.named("filling", filled(per_byte)));
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
      if (!program::is_one_to_one(kind_)) fill = filled(inside);  // one hop is no pipeline
    }
    if (levels.nodes <= 1.0) {
      if (const double turns = fit_.cores ? core_turns(levels.members, *fit_.cores) : 1.0; turns > 1.0) {
        const auto taken = num_.given("turns", turns, "of members that share cores");
        starts = taken * starts;
        inside = taken * inside;
        fill = taken * fill;
      }
      return CollectiveForm<N>({num_.named("latency", starts), inside, {}}, num_.named("filling", fill));
    }
    if (program::is_exchange(kind_) || program::is_one_to_one(kind_)) return exchanged(levels, starts, inside, fill);
    return best_of(ways(levels));
  }

 private:
  using Time = NumberOf<N, Seconds>;
  using Rate = NumberOf<N, SecondsPerByte>;
  using Bandwidth = NumberOf<N, BytesPerSecond>;
  using Level = collective::CollectiveGroup::TreeLevel;

  /// The levels of a tree that the group crosses.
  struct Levels {
    const Level* node = nullptr;
    double members = 1, nodes = 1;
    double lanes = 1;                  ///< chips of a node whose interfaces work for the group
    const Level* narrowest = nullptr;  ///< narrowest level above the node
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
      if (!out.narrowest) out.lanes = std::max(1.0, collective::lanes_used(kind_, group_, level));
      if (!out.narrowest || level.chip_bandwidth < out.narrowest->chip_bandwidth) out.narrowest = &level;
    }
    return out;
  }

  /// An exchange across nodes: data for other nodes leave after a step for every doubling of the nodes.
  CollectiveForm<N> exchanged(const Levels& levels, const Time& starts, const Rate& inside, const Time& fill) const {
    const auto doublings = num_.given("doublings of nodes", std::log2(levels.nodes), "of the group");
    const auto between = num_.named("between nodes", between_nodes(levels, interfaces(levels)));
    CollectiveForm<N> form(
        {num_.named("latency", starts + doublings * step_between(fit_.protocols.simple.ring, true)),
         num_.named("time per byte", max(inside, between)), num_.named("filling between nodes", doublings * chunk())},
        num_.named("filling", fill));
    return form;
  }

  struct Protocol {
    const hardware::CollectiveProtocol* numbers;
    std::string_view name;
    bool is_simple;
  };
  /// What the library may choose from: rings and trees under three protocols, and switches.
  struct Ways {
    std::array<CollectiveWay<N>, 7> all{};
    std::size_t count = 0;

    void add(const CollectiveWay<N>& way) { all[count++] = way; }
  };
  Ways ways(const Levels& levels) const {
    const hardware::CollectiveProtocols& library = fit_.protocols;
    const hardware::FabricProtocols runs = fit_.across(software_.fabric).runs;
    const bool reduces = kind_ == program::Collective::all_reduce && software_.algorithm != CollectiveAlgorithm::ring;
    Ways ways;
    for (const Protocol& protocol : {Protocol{&library.ll, "LL", false}, Protocol{&library.ll128, "LL128", false},
                                     Protocol{&library.simple, "Simple", true}}) {
      if ((protocol.numbers == &library.ll && !runs.ll) || (protocol.numbers == &library.ll128 && !runs.ll128))
        continue;
      ways.add(ring(levels, protocol));
      if (reduces) ways.add(tree(levels, protocol));
    }
    if (reduces && levels.node && levels.node->reduces && fit_.in_network > 0.0 && runs.switches)
      ways.add(switched(levels));
    return ways;
  }

  /// Keeps the way for the longest arrays, the one that starts first, and those that gain most in between.
  CollectiveForm<N> best_of(const Ways& ways) const {
    std::array<CollectiveWay<Plain>, std::tuple_size_v<decltype(ways.all)>> storage{};
    std::transform(ways.all.begin(), ways.all.end(), storage.begin(), plain_way<N>);
    std::array<std::array<double, array_sizes>, storage.size()> seconds{};  // by way, then size
    for (std::size_t i = 0; i < ways.count; ++i) {
      Bytes size = smallest_array;
      for (double& time : seconds[i]) {
        time = way_time(Plain{}, storage[i], size, 1.0).value();
        size *= 2.0;
      }
    }
    const auto fastest = [&](std::size_t size) {
      std::size_t best = 0;
      for (std::size_t i = 1; i < ways.count; ++i)
        if (seconds[i][size] < seconds[best][size]) best = i;
      return best;
    };
    std::array<double, array_sizes> known;
    known.fill(HUGE_VAL);
    const auto take = [&](std::size_t way) {
      for (std::size_t k = 0; k < known.size(); ++k) known[k] = std::min(known[k], seconds[way][k]);
    };
    const auto gain = [&](std::size_t way) {
      double sum = 0;
      for (std::size_t k = 0; k < known.size(); ++k)
        if (seconds[way][k] < known[k]) sum += std::log(known[k] / seconds[way][k]);
      return sum;
    };
    CollectiveForm<N> form;
    const std::size_t bulk = fastest(array_sizes - 1);
    form.bulk() = ways.all[bulk];
    take(bulk);
    while (form.quicker_ways < form.quicker.size()) {
      std::size_t best = form.quicker_ways == 0 ? fastest(0) : 0;
      double most = gain(best);
      for (std::size_t i = 0; form.quicker_ways > 0 && i < ways.count; ++i)
        if (const double more = gain(i); more > most) {
          best = i;
          most = more;
        }
      if (!(most > 0.0)) break;
      form.quicker[form.quicker_ways++] = ways.all[best];
      take(best);
    }
    return form;
  }

  /// Every chip passes on to the next, around all nodes; an all-reduce goes around twice.
  CollectiveWay<N> ring(const Levels& levels, const Protocol& protocol) const {
    const hardware::AlgorithmSteps& steps = protocol.numbers->ring;
    const double rounds = kind_ == program::Collective::all_reduce ? 2.0 : 1.0;
    const double between = rounds * (levels.nodes - 1.0), inside = rounds * (group_.devices - 1.0) - between;
    // Without other chips in a node nothing hides a step between nodes: it takes that of a tree.
    const hardware::AlgorithmSteps& crossing = levels.members > 1.0 ? steps : protocol.numbers->tree;
    auto latency = library("base of a ring", steps.base) +
                   library("steps in nodes", inside) *
                       library("a step in a node", std::max(steps.inside, protocol.numbers->post)) +
                   library("steps between nodes", between) * step_between(crossing, protocol.is_simple);
    if (protocol.is_simple && rounds > 1.0)
      latency = library("longer with a part for every chip", fit_.protocols.plateau) * latency;
    const double share = program::received_of_array(kind_, group_.devices);
    auto rate = received(share) / (library("share of data", steps.share) * interfaces(levels));
    if (levels.node) rate = max(rate, in_node_ring(*levels.node) / library("share of data", steps.share));
    rate = bounded(rate, received(share), levels, protocol);
    return {named("latency of a ring under {}", protocol, latency), named("a byte in a ring", protocol, rate), {}};
  }

  /// Chains of the chips of a node, and a tree between nodes: up and down. Two nodes exchange their sums at once.
  CollectiveWay<N> tree(const Levels& levels, const Protocol& protocol) const {
    const hardware::AlgorithmSteps& steps = protocol.numbers->tree;
    const double chain = 2.0 * (levels.members - 1.0), climb = 2.0 * std::log2(levels.nodes);
    const auto latency = library("base of a tree", steps.base) +
                         library("steps in nodes", chain) * library("a step in a node", steps.inside) +
                         library("steps between nodes", climb) * step_between(steps, protocol.is_simple);
    const auto up_and_down = num_.given("times that a byte passes", levels.nodes == 2.0 ? 1.0 : 2.0, "up and down");
    auto rate = up_and_down / (library("share of a tree", fit_.protocols.tree_share) * interfaces(levels));
    if (levels.node) rate = max(rate, num_.constant(2.0) / ring_bandwidth(*levels.node));
    if (fit_.tree && levels.members > 1.0)
      rate = max(rate,
                 num_.constant(1.0) / num_.given("chains of chips", *fit_.tree, software_.sources, "collective.tree"));
    rate = bounded(rate / library("share of data", steps.share), num_.constant(2.0), levels, protocol);
    return filled_way(
        {named("latency of a tree under {}", protocol, latency), named("a byte in a tree", protocol, rate),
         num_.named("filling a tree", library("hops", chain + climb) * chunk())},
        protocol.is_simple);
  }

  /// Switches add in a node, a tree between nodes.
  CollectiveWay<N> switched(const Levels& levels) const {
    const hardware::CollectiveProtocols& library_model = fit_.protocols;
    const double climb = 2.0 * std::log2(levels.nodes);
    const hardware::AlgorithmSteps steps{Seconds(0), library_model.switches_inside, library_model.switches_between,
                                         1.0};
    const auto latency =
        library("switches of a node", steps.inside) + library("steps between nodes", climb) * step_between(steps, true);
    const auto up_and_down =
        num_.given("times that a byte passes",
                   levels.nodes == 2.0 ? 1.0 : program::received_of_array(kind_, group_.devices), "up and down");
    const auto added =
        library("share between nodes", library_model.switches_share) *
        num_.given("share reduced by switches", fit_.in_network, software_.sources, "collective.in_network") *
        in_node_width(*levels.node);
    const auto rate = max(num_.constant(1.0) / added, up_and_down / interfaces(levels));
    return filled_way({num_.named("latency of switches and a tree", latency), num_.named("a byte by switches", rate),
                       num_.named("filling", library("hops", climb + 2.0) * chunk())},
                      true);
  }

  /// With chunks of a fixed size, short arrays wait until the pipeline is full, too.
  CollectiveWay<N> filled_way(CollectiveWay<N> way, bool is_simple) const {
    if (!is_simple || !fit_.across(software_.fabric).runs.fixed_chunks) return way;
    way.latency = way.latency + way.pipeline;
    way.pipeline = {};
    return way;
  }

  /// Flags among the data leave a protocol with a part of the bandwidth.
  Rate bounded(const Rate& rate, const NumberOf<N, double>& passed, const Levels& levels,
               const Protocol& protocol) const {
    const auto& most = levels.nodes <= 2.0 ? protocol.numbers->two_nodes : protocol.numbers->more_nodes;
    if (!most) return rate;
    return max(rate, passed / library("most that the protocol carries", *most));
  }
  Time step_between(const hardware::AlgorithmSteps& steps, bool is_simple) const {
    const hardware::AcrossCurve across = fit_.across(software_.fabric);
    const auto added = given_across("what the fabric adds", across.latency, "latency");
    const auto step = library("a step between nodes", steps.between) + added;
    return is_simple && across.runs.flushes ? step + added : step;
  }
  Time chunk() const { return keyed("chunk", fit_.chunk.value_or(Seconds(0)), "chunk", ""); }
  Bandwidth interfaces(const Levels& levels) const {
    return num_.named("bandwidth between nodes",
                      library("share of the interfaces", fit_.protocols.interfaces) * outward(levels));
  }
  NumberOf<N, double> received(double share) const {
    return num_.given("share received", share, "of the array, by each chip");
  }
  template <class Q>
  auto library(std::string_view name, Q number) const {
    return num_.given(name, number, library_source);
  }
  template <class Q>
  Q named(std::string_view format, const Protocol& protocol, const Q& number) const {
    if constexpr (N::traced)
      return num_.named(fmt::format(fmt::runtime(format), protocol.name), number);
    else
      return number;
  }

  /// Time per byte between chips of one node: by rings here, and the best way below.
  Rate in_node_ring(const Level& node) const {
    const double n = node.groups;
    double received = program::received_of_array(kind_, n);
    // The array covers all devices, and data for another node goes first to the chip at the same position there.
    if (program::is_exchange(kind_))
      received = (n - 1.0) / (n * group_.devices) * group_.imbalance * group_.routing.sent_share(group_.devices);
    return this->received(received) / ring_bandwidth(node);
  }
  Rate in_node(const Level& node) const {
    const auto by_ring = in_node_ring(node);
    if (kind_ != program::Collective::all_reduce || !node.reduces || fit_.in_network == 0.0 ||
        software_.algorithm == CollectiveAlgorithm::ring)
      return by_ring;
    const auto added =
        num_.given("share reduced by switches", fit_.in_network, software_.sources, "collective.in_network") *
        in_node_width(node);
    return min(num_.named("by rings", by_ring), num_.named("by switches", num_.constant(1.0) / added));
  }
  Bandwidth in_node_width(const Level& node) const {
    return wide(std::max(1.0, collective::lanes_used(kind_, group_, node)), node);
  }
  Bandwidth ring_bandwidth(const Level& node) const {
    // Processes also copy their own arrays, of which they receive (n - 1) / n: what is copied beyond goes by n - 1.
    const auto size = fit_.cores ? num_.given("other members", node.groups - 1.0, "of the group in a node")
                                 : num_.given("members", node.groups, "in a node");
    if (program::is_one_to_one(kind_))
      return num_.named("bandwidth", given("share of the bandwidth", curve_.share, "share") * in_node_width(node));
    const auto slower = num_.constant(1.0) + given("cost of small groups", curve_.pair, "pair") / size;
    return num_.named("bandwidth of rings",
                      given("share of the bandwidth", curve_.share, "share") * in_node_width(node) / slower);
  }

  /// Time per byte between nodes, where each byte goes straight to its destination.
  Rate between_nodes(const Levels& levels, const Bandwidth& rate) const {
    double received = program::received_of_array(kind_, group_.devices);
    if (program::is_exchange(kind_)) {  // the part of a node's bytes that leaves it
      const double own = levels.members / group_.devices;
      received = own * (1.0 - own) * group_.imbalance * group_.routing.sent_share(levels.nodes);
    }
    return num_.given("share that arrives", received, "of the array, in each node") / rate;
  }

  /// Pipelining of one byte: chunks are pipelined, and this part of their latency remains at the best chunk size.
  Time filled(const Rate& per_byte) const {
    return num_.constant(2.0) * sqrt(per_byte * num_.constant(1_B) * given("chunk", curve_.chunk, "chunk"));
  }

  Bandwidth wide(double lanes, const Level& level) const {
    const collective::CollectiveLabels* labels = software_.labels;
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
    return keyed(name, number, hardware::fabric_keys[static_cast<std::size_t>(software_.fabric)], key);
  }
  template <class Q>
  auto keyed(std::string_view name, Q number, std::string_view table, std::string_view key) const {
    if constexpr (N::traced)
      return num_.given(name, number, software_.sources,
                        fmt::format("collective.{}{}{}", table, key.empty() ? "" : ".", key));
    else
      return number;
  }

  const N& num_;
  const hardware::CollectiveCalibration& fit_;
  program::Collective kind_;
  const collective::CollectiveGroup& group_;
  const CollectiveSoftware& software_;
  const hardware::CollectiveCurve& curve_;
};

bool never_slower_way(const CollectiveWay<Plain>& a, const CollectiveWay<Plain>& b) {
  return a.latency <= b.latency && a.per_byte <= b.per_byte && a.pipeline <= b.pipeline;
}
void lower_way(CollectiveWay<Plain>& least, const CollectiveWay<Plain>& other) {
  least = {std::min(least.latency, other.latency), std::min(least.per_byte, other.per_byte),
           std::min(least.pipeline, other.pipeline)};
}

}  // namespace

bool never_slower(const CollectiveForm<Plain>& a, const CollectiveForm<Plain>& b) {
  if (a.quicker_ways != b.quicker_ways || a.fill > b.fill || !never_slower_way(a.bulk(), b.bulk())) return false;
  for (std::size_t i = 0; i < a.quicker_ways; ++i)
    if (!never_slower_way(a.quicker[i], b.quicker[i])) return false;
  return true;
}

void lower_to(CollectiveForm<Plain>& least, const CollectiveForm<Plain>& other) {
  lower_way(least.bulk(), other.bulk());
  least.fill = std::min(least.fill, other.fill);
  for (std::size_t i = 0; i < other.quicker_ways; ++i)
    if (i < least.quicker_ways)
      lower_way(least.quicker[i], other.quicker[i]);
    else
      least.quicker[least.quicker_ways++] = other.quicker[i];
}

template <class N>
CollectiveForm<N> collective_form(const N& num, const hardware::CollectiveCalibration& fit, program::Collective kind,
                                  const collective::CollectiveGroup& group, const CollectiveSoftware& software) {
  return CollectiveFormer<N>(num, fit, kind, group, software).form();
}

template <class N>
CollectiveForm<N> uncalibrated_form(const N& num, const hardware::Chip& chip, program::Collective kind,
                                    const collective::CollectiveGroup& group,
                                    const collective::CollectiveLabels* labels) {
  const auto line = collective::collective_line(num, kind, group, labels);
  const hardware::Efficiency& reached = chip.efficiency;
  CollectiveForm<N> form({line.floor, line.rate, {}});
  if (reached.network) form.per_byte = form.per_byte / num.given("share of the bandwidth", *reached.network);
  if (reached.latency && group.devices > 1.0)
    form.latency = num.named("latency", form.latency + num.given("latency of a collective", *reached.latency));
  form.per_byte = num.named("time per byte", form.per_byte);
  return form;
}

#define ASSAY_INSTANTIATE(N)                                                                                        \
  template CollectiveForm<N> collective_form(const N&, const hardware::CollectiveCalibration&, program::Collective, \
                                             const collective::CollectiveGroup&, const CollectiveSoftware&);        \
  template CollectiveForm<N> uncalibrated_form(const N&, const hardware::Chip&, program::Collective,                \
                                               const collective::CollectiveGroup&,                                  \
                                               const collective::CollectiveLabels*);
ASSAY_INSTANTIATE(Plain)
ASSAY_INSTANTIATE(Traced)
#undef ASSAY_INSTANTIATE

}  // namespace assay::collective

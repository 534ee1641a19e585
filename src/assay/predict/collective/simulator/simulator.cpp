#include "assay/predict/collective/simulator/simulator.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <string_view>

#include "assay/base/result.h"
#include "assay/predict/collective/simulator/schedules.h"

namespace assay::collective {
namespace {

bool one_per_role(program::Collective kind) { return is_rooted(kind) || is_one_to_one(kind); }

/// A ragged all-to-all is scheduled as an all-to-all whose first device receives more.
program::Collective schedule_of(program::Collective kind) {
  return kind == program::Collective::ragged_all_to_all ? program::Collective::all_to_all : kind;
}
SimulationOptions options_of(program::Collective kind, const CollectiveGroup& group, const SimulationOptions& options) {
  SimulationOptions used = options;
  if (kind == program::Collective::ragged_all_to_all) used.skew = group.imbalance - 1.0;
  if (group.torus() && (used.skew != 0.0 || kind == program::Collective::point_to_point)) used.use_symmetry = false;
  return used;
}

std::int64_t between(double value, std::int64_t low, std::int64_t high) {
  return static_cast<std::int64_t>(std::clamp(std::ceil(value), static_cast<double>(low), static_cast<double>(high)));
}

/// Approximate hops of all messages from one chip in an all-to-all; exact on closed rings.
double mean_hops(const CollectiveGroup& group) {
  double hops = 0;
  for (const auto& axis : group.axes) hops += axis.ring ? axis.size / 4.0 : axis.size / 3.0;
  return hops;
}

/// Transfers with one chunk per shard.
double torus_transfers(program::Collective kind, const CollectiveGroup& group, const SimulationOptions& options) {
  double positions = 1;
  for (const auto& axis : group.axes)
    positions *= axis.ring && axis.size > 2.0 && options.use_symmetry ? 1.0 : axis.size;
  const auto k = static_cast<double>(group.axes.size());
  const bool ties = std::any_of(group.axes.begin(), group.axes.end(), [](const auto& axis) {
    return axis.ring && axis.size > 2.0 && std::fmod(axis.size, 2.0) == 0.0;
  });
  const double parts = ties && (k > 1.0 || options.split_ties) ? 2.0 * k : k;
  if (kind == program::Collective::permute) return positions;
  if (kind == program::Collective::point_to_point) return collective_hops(kind, group);
  if (kind == program::Collective::all_to_all)
    return positions * (group.devices - 1.0) * (ties ? 2.0 : 1.0) * k * mean_hops(group);
  return positions * (group.devices - 1.0) * parts * facts(kind).passes;
}

bool switches_add(program::Collective kind, const CollectiveGroup& group) {
  return kind == program::Collective::all_reduce &&
         std::any_of(group.levels.begin(), group.levels.end(),
                     [](const auto& level) { return level.reduces && level.groups > 1.0; });
}

/// Transfers of a tree with one chunk per shard: up and down, at most through all levels.
double tree_transfers(program::Collective kind, const CollectiveGroup& group, const SimulationOptions& options) {
  const auto hops = 2.0 * static_cast<double>(group.levels.size());
  if (one_per_role(kind) || switches_add(kind, group)) return 4.0 * hops + 4.0 * group.levels.front().groups;
  const double positions = options.use_symmetry && options.skew == 0.0 ? 1.0 : group.devices;
  return positions * group.devices * hops * facts(kind).passes;
}

/// Enough chunks that filling and draining the pipeline costs less than 1 %. A ring in lockstep needs no chunking;
/// it only hides latency there. A branch of d hops takes d chunks to fill, so 128 d of them cost 1/128.
std::int64_t chosen_chunks(program::Collective kind, const CollectiveGroup& group, const SimulationOptions& options) {
  if (options.chunks > 0) return options.chunks;
  if (kind == program::Collective::point_to_point && group.torus())
    return between(128.0 * collective_hops(kind, group), 1, 100000);
  if (group.torus())
    return kind == program::Collective::permute ? 1 : between(1e5 / torus_transfers(kind, group, options), 1, 64);
  if (one_per_role(kind) || switches_add(kind, group)) return 1000;
  // Messages that one chip sends over its narrower port; a few of them fill the path through all levels.
  double local = group.levels.front().groups, upper = group.devices / local;
  return between(1000.0 / ((upper > 1.0 ? upper : local) - 1.0), 1, 1000);
}

std::int64_t rooted_chunks(const RootedTorus& torus, const SimulationOptions& options) {
  if (options.chunks > 0) return options.chunks;
  return between(std::min(128.0 * static_cast<double>(torus.depth), 4e6 / static_cast<double>(torus.edges())), 1,
                 100000);
}

Simulation summary(const LinkNetwork& network, const std::vector<std::string>& names, const TransferGraph& graph,
                   std::int64_t chunks) {
  const NetworkOutcome outcome = run_transfers(network, graph);
  Simulation result;
  result.time = outcome.time;
  result.events = outcome.transfers;
  result.chunks = chunks;
  result.chips = network.devices;
  for (std::size_t i = 0; i < network.size(); ++i) {
    const double load = outcome.time > Seconds() ? outcome.link_busy[i] / outcome.time : 0.0;
    result.links.push_back({names[i], outcome.link_bytes[i], load});
    result.busiest_link = std::max(result.busiest_link, result.links.back().bytes);
    result.mean_load += load / static_cast<double>(network.size());
  }
  result.delivered = outcome.delivered;
  return result;
}

std::string torus_algorithm(program::Collective kind, const CollectiveGroup& group, const SimulationOptions& options) {
  const bool closed = std::all_of(group.axes.begin(), group.axes.end(), [](const auto& axis) { return axis.ring; });
  const std::size_t k = group.axes.size();
  if (kind == program::Collective::permute) return "shift by one";
  if (kind == program::Collective::point_to_point) return "one way, axis by axis";
  if (is_rooted(kind)) return fmt::format("{} edge-disjoint trees", closed ? 2 * k : k);
  const std::string orders = k > 1 ? fmt::format(", {} parts in rotated orders of the axes", k) : "";
  if (kind == program::Collective::all_to_all) return "shortest paths, axis by axis" + orders;
  const bool open = std::none_of(group.axes.begin(), group.axes.end(), [](const auto& axis) { return axis.ring; });
  const std::string_view rings = options.both_directions ? "bidirectional rings" : "one-way rings";
  const std::string base = open ? "lines" : closed ? std::string(rings) : fmt::format("lines and {}", rings);
  return base + orders;
}

std::string tree_algorithm(program::Collective kind, const CollectiveGroup& group) {
  const auto adds = [](const auto& level) { return level.reduces && level.groups > 1.0; };
  if (kind == program::Collective::reduce && std::any_of(group.levels.begin(), group.levels.end(), adds))
    return "reduced in the switches";
  if (switches_add(kind, group)) return "reduced in the switches";
  if (kind == program::Collective::broadcast) return "copied by the switches";
  if (kind == program::Collective::permute) return "shift by one";
  if (kind == program::Collective::point_to_point) return "up and down the levels";
  return kind == program::Collective::all_to_all ? "direct exchange"
                                                 : "direct exchange in nodes and along rails, pipelined";
}

Simulation on_tree(std::span<const SimulatedCollective> collectives, const CollectiveGroup& group,
                   const SimulationOptions& options) {
  const program::Collective kind = collectives.front().kind;
  const bool roles = one_per_role(kind), adds = switches_add(kind, group);
  const bool one = adds || (options.use_symmetry && options.skew == 0.0);
  const TreeLinks tree(group, roles ? tree_roles : one ? 1 : 0);
  TransferGraph graph;
  std::int64_t chunks = 1;
  for (const SimulatedCollective& each : collectives) {
    chunks = chosen_chunks(each.kind, group, options);
    if (one_per_role(each.kind) != roles || switches_add(each.kind, group) != adds)
      throw InternalError("these collectives cannot be simulated together");
    if (tree.stages.empty()) continue;
    if (roles)
      add_tree_rooted(graph, tree, each.kind, each.bytes, chunks);
    else if (adds)
      add_tree_in_network(graph, tree, each.bytes, chunks);
    else
      add_tree_collective(graph, tree, each, options, chunks);
  }
  Simulation result = summary(tree.network, tree.names, graph, chunks);
  result.algorithm = tree_algorithm(kind, group);
  return result;
}

Simulation on_torus(std::span<const SimulatedCollective> collectives, const CollectiveGroup& group,
                    const SimulationOptions& options) {
  const program::Collective kind = collectives.front().kind;
  const SimulationOptions used = options_of(kind, group, options);
  TransferGraph graph;
  std::int64_t chunks = 1;
  Simulation result;
  if (is_rooted(kind)) {
    RootedTorus torus(group, !used.use_symmetry);
    chunks = rooted_chunks(torus, used);
    for (const SimulatedCollective& each : collectives) {
      if (!is_rooted(each.kind) || !each.axes.empty())
        throw InternalError("these collectives cannot be simulated together");
      torus.add(graph, each.kind, each.bytes, chunks);
    }
    result = summary(torus.network, torus.names, graph, chunks);
  } else {
    const TorusLinks torus(group, used.use_symmetry);
    for (const SimulatedCollective& each : collectives) {
      chunks = chosen_chunks(each.kind, group, used);
      add_torus_collective(graph, torus, each, used, chunks);
    }
    result = summary(torus.network, torus.names, graph, chunks);
  }
  result.algorithm = torus_algorithm(kind, group, options);
  return result;
}

}  // namespace

double simulation_events(program::Collective kind, const CollectiveGroup& group, const SimulationOptions& options) {
  const SimulationOptions used = options_of(kind, group, options);
  kind = schedule_of(kind);
  const auto chunks = static_cast<double>(chosen_chunks(kind, group, used));
  if (!group.torus()) return chunks * tree_transfers(kind, group, used);
  return is_rooted(kind) ? std::max(4e6, group.devices) : chunks * torus_transfers(kind, group, used);
}

Simulation simulate_together(std::span<const SimulatedCollective> collectives, const CollectiveGroup& group,
                             const SimulationOptions& options) {
  if (group.mixed()) throw InternalError("slices and torus axes cannot be simulated together");
  if (collectives.empty() || (group.torus() && group.axes.empty())) return {};
  return group.torus() ? on_torus(collectives, group, options) : on_tree(collectives, group, options);
}

Simulation simulate_collective(program::Collective kind, Bytes bytes, const CollectiveGroup& group,
                               const SimulationOptions& options) {
  const SimulatedCollective each{schedule_of(kind), bytes, {}};
  return simulate_together({&each, 1}, group, options_of(kind, group, options));
}

}  // namespace assay::collective

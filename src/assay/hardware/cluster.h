// A cluster: the chip, how many of them, and how they are connected. Parsed from the CLUSTER grammar:
//   CHIP | CHIP:N | CHIP:AxB[xC][_twisted] | S*CHIP:... | @file.toml[:SHAPE]
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "assay/base/result.h"
#include "assay/hardware/catalogue.h"
#include "assay/hardware/chip.h"
#include "assay/hardware/topology.h"

namespace assay::hardware {

/// One level of a switched network as this cluster uses it.
struct Level {
  std::string name;
  std::int64_t degree = 1;         ///< children in one unit
  std::int64_t chips = 1;          ///< chips below one unit
  std::int64_t units = 1;          ///< units of this level in the cluster
  BytesPerSecond child_bandwidth;  ///< one way, from one child into the unit
  BytesPerSecond chip_bandwidth;   ///< one way, that bandwidth's share per chip
  std::int64_t switches = 0;       ///< in the whole cluster; 0 if the catalogue does not say
  bool in_network_reduction = false;
  std::string source;

  BytesPerSecond unit_bandwidth() const { return static_cast<double>(degree) * child_bandwidth; }
};

struct Cluster {
  std::string text;  ///< in the grammar, normalised
  Chip chip;
  std::int64_t slices = 1;
  std::optional<Torus> torus;  ///< the torus of one slice
  std::vector<Level> levels;   ///< from the chip upwards; a multi-slice torus has the data-centre network here
  std::int64_t chips_per_slice = 1;
  std::int64_t chips_per_node = 1;  ///< chips of a scale-up domain; for a torus, of a host
  std::vector<std::string> notes;

  std::int64_t chips() const { return slices * chips_per_slice; }
};

/// Reads the CLUSTER grammar against a catalogue; `where` names the flag in errors.
Result<Cluster> parse_cluster(std::string_view text, const Catalogue& catalogue, std::string_view where,
                              const std::vector<Override>& overrides = {});

/// The counts of chips from one to another that are built, at most so many of them: any within a node, whole nodes
/// beyond it, and slices of a torus.
std::vector<std::int64_t> cluster_sizes(const Chip& chip, std::int64_t fewest, std::int64_t most, std::size_t enough);

/// The most chips of the cluster that share a host.
std::int64_t chips_per_host(const Cluster& cluster);
std::int64_t host_count(const Cluster& cluster);
std::int64_t core_count(const Cluster& cluster);
std::int64_t switch_count(const Cluster& cluster);
/// Two-way links between chips (torus), or from chips into their switches.
std::int64_t scale_up_links(const Cluster& cluster);
/// Longest shortest path in hops: links of a torus, switch crossings in a tree.
std::int64_t diameter(const Cluster& cluster);
/// Mean hops from a chip of a torus to all others; as for the diameter, the same position in another slice is one hop
/// away.
double mean_distance(const Cluster& cluster);
/// One-way bandwidth of all ports of one switch of a level; empty where the catalogue does not say.
std::optional<BytesPerSecond> switch_capacity(const Cluster& cluster, std::size_t level);
/// Cables between each switch of a level and each switch of the level below, where all pairs are joined: the top of a
/// fat tree whose lower switches send half of their ports up. Empty for other levels.
std::optional<std::int64_t> links_per_switch_pair(const Cluster& cluster, std::size_t level);
/// One-way bandwidth across the worst split of the cluster into two halves; empty for one chip.
std::optional<BytesPerSecond> bisection_bandwidth(const Cluster& cluster);
FlopsPerSecond total_rate(const Cluster& cluster, Dtype dtype);
Bytes total_memory(const Cluster& cluster);
BytesPerSecond total_memory_bandwidth(const Cluster& cluster);

}  // namespace assay::hardware

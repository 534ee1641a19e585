// A link-level simulator of collectives: explicit one-way links, chunks, first-come-first-served contention, latency
// per hop, and data that is forwarded only after it arrives. It checks the closed forms of
// predict/collective/collectives.h and shows where they are optimistic.
//
// The model. Each direction of a torus link is a separate link. On a switched network each participant has its own
// port into the lowest level (scale-up), and a share of every link above (its network card, its part of the
// uplinks), which carries everything that crosses that level or one above. A hop's latency is propagation: it delays a
// chunk and does not occupy the link. A chip adds and forwards at no cost. An axis of two chips is one link each way,
// closed or not.
//
// A group is simulated on torus axes or on the levels of a tree, not on both. If several groups interleave along an
// axis, each gets its share of every link; a test simulates them together on explicit links.
//
// Symmetry. If the axes are closed, every chip does the same thing at the same time, so one chip represents all chips
// of its axis; a test compares this with the simulation of every chip. Lines are simulated chip by chip.
#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "assay/base/units.h"
#include "assay/predict/collective/collectives.h"

namespace assay::collective {

struct SimulationOptions {
  bool both_directions = true;  ///< use both directions of a closed ring; otherwise all data goes in one
  /// On one even ring, send half of the farthest shard each way: (n - 1) / n of the time of the closed form, which
  /// sends whole shards. Several axes always do so, because otherwise their links would not be loaded equally.
  bool split_ties = false;
  /// All-reduce on a torus: gather reduced data while the rest is still being reduced, instead of one pass after the
  /// other. Faster if the passes load different links: on a line, the ends are busy in one pass and idle in the
  /// other.
  bool overlap_passes = false;
  bool use_symmetry = true;
  std::int64_t chunks = 0;  ///< per shard; 0: enough for a pipelining error below 1 %
  double skew = 0;          ///< all-to-all: the first device receives this share more than the mean, the others less
};

/// One of several concurrent collectives.
struct SimulatedCollective {
  program::Collective kind = program::Collective::all_gather;
  Bytes bytes;  ///< as in collective_cost: the array of one group
  std::vector<std::size_t>
      axes;  ///< indices of the group's torus axes; empty for all. Every line of them has its own array
};

struct Simulation {
  struct Link {
    std::string name;  ///< "axis 0+ from chip 3", "node from 0"
    Bytes bytes;
    double load = 0;  ///< share of the time it carries data
  };

  Seconds time;
  Bytes busiest_link;            ///< most bytes over one link, one way
  double mean_load = 0;          ///< mean over all existing links
  std::int64_t events = 0;       ///< chunks on links
  std::int64_t chunks = 1;       ///< per shard
  std::int64_t chips = 1;        ///< simulated individually; the rest follow by symmetry
  std::vector<Link> links;       ///< links of the simulated chips
  std::vector<Bytes> delivered;  ///< bytes meant for each simulated chip, without those it forwards
  std::string algorithm;
};

/// How many events a simulation would take; the caller sets the limit (a million take up to a second and 60
/// MB).
double simulation_events(program::Collective kind, const CollectiveGroup& group, const SimulationOptions& options = {});

Simulation simulate_collective(program::Collective kind, Bytes bytes, const CollectiveGroup& group,
                               const SimulationOptions& options = {});

/// Several collectives that start together on the same links.
Simulation simulate_together(std::span<const SimulatedCollective> collectives, const CollectiveGroup& group,
                             const SimulationOptions& options = {});

}  // namespace assay::collective

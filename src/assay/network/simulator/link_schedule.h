// A collective over time: which link carries what, and when.
#pragma once
#include <cstdint>
#include <optional>
#include <vector>

#include "assay/network/collectives.h"

namespace assay::network {

struct ScheduledLink {
  static constexpr std::int64_t every_chip = -1;

  std::size_t place = 0;           ///< axis of the group's torus, or level of the cluster
  int direction = 0;               ///< along an axis: 0 up, 1 down; at a level: 0 into the switches, 1 out of them
  std::int64_t chip = every_chip;  ///< at the sending end; at a level, the chip whose port it is
  bool tracks_origin = false;      ///< the data that sets out here is known by its chip
};

struct ScheduledTransfer {
  std::size_t link = 0;
  Seconds start, end;  ///< while it occupies the link; it arrives a hop's latency later
  Bytes bytes;
  int hop = 1;                         ///< links that its data has crossed, this one included
  std::optional<std::int64_t> origin;  ///< chip that its data comes from; nothing if not known or if several
};

/// All transfers of a collective, or those of the chips that stand for the others.
struct LinkSchedule {
  enum class Chips { all, one_for_all, one_per_role, deepest_branches };

  std::vector<ScheduledLink> links;
  std::vector<ScheduledTransfer> transfers;
  std::int64_t chunks = 1;  ///< that a shard is cut into; with a root, the array
  Chips chips = Chips::all;
};

/// The schedule by the rules of the simulator, with whole shards on a torus and few chunks elsewhere, so that it may
/// end a little later than simulate_collective. Nothing for slices and torus axes together, or if it has more than
/// about `most_transfers`.
std::optional<LinkSchedule> link_schedule(CollectiveKind kind, Bytes array, const CollectiveGroup& group,
                                          double most_transfers);

}  // namespace assay::network

// A collective over time: which link carries what, and when.
#pragma once
#include <cstdint>
#include <optional>
#include <vector>

#include "assay/predict/collective/collectives.h"

namespace assay::collective {

struct ScheduledLink {
  static constexpr std::int64_t every_chip = -1;

  std::size_t place = 0;           ///< axis of the group's torus, or level of the cluster
  int direction = 0;               ///< along an axis: 0 up, 1 down; at a level: 0 into the switches, 1 out of them
  std::int64_t chip = every_chip;  ///< at the sending end; at a level, the chip that owns the port
  bool tracks_origin = false;      ///< data that starts here is identified by its chip
};

struct ScheduledTransfer {
  std::size_t link = 0;
  Seconds start, end;  ///< while it occupies the link; it arrives a hop's latency later
  Bytes bytes;
  int hop = 1;                         ///< links that its data has crossed, this one included
  std::optional<std::int64_t> origin;  ///< chip where its data started; empty if unknown or if there are several
};

/// All transfers of a collective, or only those of the representative chips.
struct LinkSchedule {
  enum class Chips { all, one_for_all, one_per_role, deepest_branches };

  std::vector<ScheduledLink> links;
  std::vector<ScheduledTransfer> transfers;
  std::int64_t chunks = 1;  ///< per shard; with a root, per array
  Chips chips = Chips::all;
};

/// The schedule by the rules of the simulator, with whole shards on a torus and few chunks elsewhere, so it may end
/// slightly later than simulate_collective. Empty for slices and torus axes together, or if it has more than
/// about `most_transfers`.
std::optional<LinkSchedule> link_schedule(program::Collective kind, Bytes array, const CollectiveGroup& group,
                                          double most_transfers);

}  // namespace assay::collective

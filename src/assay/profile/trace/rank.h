// One rank of a run without its events: what is kept of each of thousands.
#pragma once
#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "assay/profile/trace/summary.h"

namespace assay::trace {

/// What a device does at a moment: computation before communication before copies, where several run at once.
enum class Doing : std::uint8_t { computation, communication, copies, late_host, idle };
inline constexpr std::size_t doing_kinds = 5;

/// One collective of a device.
struct CollectiveCall {
  std::uint32_t event = 0;  ///< in Trace::events
  Ticks duration = 0;
  /// Since the end of the last collective of its group, or since the first event of the profile.
  std::array<float, doing_kinds> seconds_before{};
};

/// Collectives of one kind in one group of ranks, in their order, which is that of all its ranks.
struct CollectiveSequence {
  std::string kind;                                   ///< all-reduce, ...; may be empty
  std::string group;                                  ///< equal on its ranks and on no others; empty: not known
  std::string kernel;                                 ///< where the group is not known
  std::string description;                            ///< of the group, as the framework has it
  std::int64_t devices = 0;                           ///< of the group; 0: not known
  std::optional<std::int64_t> first_rank, last_rank;  ///< of the group
  Bytes bytes;                                        ///< of the arrays of all calls; 0: not known
  Bytes moved;                                        ///< that one device receives of these; 0: not known
  std::vector<CollectiveCall> calls;
};

struct RankSummary {
  std::string file, device_name;
  std::optional<std::int64_t> rank, world_size;
  std::int64_t device = 0, unread = 0;
  DeviceTimes times;
  bool launched = false;  ///< the file has launches
  Seconds host_bound;
  std::vector<Seconds> steps;  ///< how long each takes; of many profiles alone
  std::vector<CategoryTime> categories;
  std::vector<CollectiveSequence> collectives;
};

RankSummary rank_summary(const Trace& trace, const Vocabulary& vocabulary, std::int64_t device,
                         const std::vector<PlacedEvent>& events);

}  // namespace assay::trace

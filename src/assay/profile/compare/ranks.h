// The ranks of a run beside each other: who is waited for, why, and what collectives cost without waiting.
#pragma once
#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "assay/profile/compare/measured.h"
#include "assay/profile/trace/rank.h"

namespace assay::compare {

/// A collective ends on all of its ranks at once, so the rank where it is shortest came last, and the others waited for
/// it as much longer as it lasted there. No clock has to be shared.
struct RankDelay {
  Seconds waits;  ///< for others, in all collectives
  Seconds held;   ///< how long it held up the others: the mean over those of each group
  /// What it did longer than the mean of the others before it came last; what is left began before the profile did.
  std::array<Seconds, trace::doing_kinds> causes{};
  Seconds unexplained;
};

/// Collectives of one kind and group, over all ranks that were given.
struct CollectiveDelay {
  Seconds moving;                      ///< of all calls, each where it is shortest
  Seconds waiting;                     ///< of all calls: the mean over the ranks
  Seconds skew, largest_skew;          ///< between the first and the last rank to come: the median and the largest call
  std::size_t ranks = 0;               ///< that were given; 1: waiting is not known
  std::vector<trace::Ticks> shortest;  ///< of each call
};

struct RankComparison {
  std::vector<RankDelay> ranks;                    ///< as given
  std::vector<std::vector<std::uint32_t>> groups;  ///< of each rank's sequences: in `collectives`
  std::vector<CollectiveDelay> collectives;
};
RankComparison compare_ranks(const std::vector<trace::RankSummary>& ranks);

/// The rank that holds up the others for much longer than the rest of them do, and for more than this time; nothing
/// where all wait for each other in turn.
std::optional<std::size_t> waited_for(const RankComparison& comparison, Seconds least);

/// How long the collectives of a rank wait for the last one, by their events.
Waits waits_of(const RankComparison& comparison, const std::vector<trace::RankSummary>& ranks, std::size_t rank);

}  // namespace assay::compare

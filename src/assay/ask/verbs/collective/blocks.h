// Who holds what before and after each hop of a collective.
#pragma once
#include <cstdint>
#include <optional>
#include <vector>

#include "assay/predict/collective/collectives.h"

namespace assay::verbs::collective_verb {

/// A part of an array on a device.
struct HeldBlock {
  std::int64_t block = 0;  ///< of a gathered or reduced array; the device it is meant for where data is exchanged
  std::vector<std::int64_t> from;  ///< devices whose data is in it: several where it is a sum
  friend bool operator==(const HeldBlock&, const HeldBlock&) = default;
};
/// What each device holds.
using HeldBlocks = std::vector<std::vector<HeldBlock>>;

/// By hop, the first one before any. Each hop is told along one ring or line; of several axes and of switches only
/// before and after. Empty for collectives with a root, and for groups too large to be looked at.
std::vector<HeldBlocks> collective_states(program::Collective kind, const collective::CollectiveGroup& group);

}  // namespace assay::verbs::collective_verb

// What the collectives of a pass move, and which products hide them, derived from the program.
#pragma once
#include <span>
#include <vector>

#include "assay/training/pass_time.h"

namespace assay::training {

/// Entries of the traffic of a pass with what they consist of: `blocks` are those of the pass and, for gathering new
/// weights, of the update.
std::vector<DerivedTraffic> derive_traffic(const Traced& num, const program::Program& program,
                                           std::span<const program::Block> blocks,
                                           std::span<const Traffic* const> entries);

}  // namespace assay::training

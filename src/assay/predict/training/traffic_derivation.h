// What the collectives of a pass move, and which products hide them, derived from the program.
#pragma once
#include <span>
#include <vector>

#include "assay/predict/training/pass_time.h"

namespace assay::training {

/// Blocks of a pass and, for gathering new weights, of the update.
struct PassBlocks {
  const program::Program& program;
  std::vector<program::Block> blocks;
};

/// Entries of the traffic of a pass with what they consist of: collectives of the strategy's program or, where devices
/// do not split its arrays evenly, of the program that the profile counted. `split` are the roles with several devices.
std::vector<DerivedTraffic> derive_traffic(const Traced& num, const PassBlocks& pass, const PassBlocks& counted,
                                           RoleSet split, std::span<const Traffic> entries);

}  // namespace assay::training

// What a profile says by itself that can be saved, whatever program it is of.
#pragma once
#include <string>
#include <utility>
#include <vector>

#include "assay/hardware/chip.h"
#include "assay/profile/compare/waterfall.h"

namespace assay::compare {

/// Time that a change saves, of all that was measured, and what it is saved from.
struct Saving {
  std::string id;  ///< in Vocabulary::remedies
  Seconds saved, least, most;
  std::string reason;
  std::vector<std::pair<GapKind, std::string>> items;  ///< of a difference, that it acts on
};

/// Savings that need no model: waiting for the host, kernels that one fused kernel would replace, products that stay
/// behind others of the profile or run in a wide format, exposed communication and copies. Without a chip, nothing is
/// held against its peaks.
std::vector<Saving> savings_of(const MeasuredStep& measured, const trace::Vocabulary& vocabulary,
                               const hardware::Chip* chip);

}  // namespace assay::compare

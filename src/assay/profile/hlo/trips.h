// How often a loop runs.
#pragma once
#include <optional>

#include "assay/profile/hlo/module.h"

namespace assay::hlo {

/// The trips of a while: what the compiler noted, else from its condition, where that compares a counter with a
/// constant. Nothing where it cannot be known.
std::optional<double> trip_count(const Module& module, const Computation& computation, const Instruction& loop);

}  // namespace assay::hlo

// Values that replace those of a chip file, and the figures that depend on them.
#pragma once
#include <functional>
#include <string>

#include "assay/base/toml.h"
#include "assay/hardware/chip.h"
#include "assay/hardware/chip_rules.h"

namespace assay::hardware {

/// Writes the value into the file's tree; the error lists the available keys.
Result<void> apply_override(Toml& root, const Override& change);

/// Whether a number with this source is stated anew, not taken from the chip that is changed.
using Stated = std::function<bool(const std::string& source)>;

/// Figures that follow from others, where those differ from `before`, the chip that is changed, unless they are stated
/// themselves: peaks from the number, size and clock of units; the tiles of a systolic array from its size; a chip's
/// scale-out bandwidth from its host's adapters; fabric levels from the ports below.
void derive_changed(Chip& chip, const Chip& before, const Stated& stated, const Toml& root, const ReportFault& report);

}  // namespace assay::hardware

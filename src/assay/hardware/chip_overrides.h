// Values that --set puts in place of a chip file's, and the figures that follow from them.
#pragma once
#include "assay/base/toml.h"
#include "assay/hardware/chip.h"
#include "assay/hardware/chip_rules.h"

namespace assay::hardware {

/// The source of a number that was set; numbers of a file have "FILE:LINE (KEY)".
inline constexpr const char* override_source = "--set";

/// Writes the value into the tree of the file, or says which keys there are.
Result<void> apply_override(Toml& root, const Override& change);

/// A chip's scale-out bandwidth is its share of the host's adapters, if these were set and the bandwidth was not.
void share_adapters(Chip& chip, const Toml& root, const ReportFault& report);

/// Fabric levels that were not set keep their ratio to the ports of the chips below; `before` is the chip as in its
/// file.
void scale_fabric(Chip& chip, const Chip& before);

}  // namespace assay::hardware

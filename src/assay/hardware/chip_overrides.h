// Values that --set substitutes in a chip file, and the figures that depend on them.
#pragma once
#include "assay/base/toml.h"
#include "assay/hardware/chip.h"
#include "assay/hardware/chip_rules.h"

namespace assay::hardware {

/// Writes the value into the file's tree; the error lists the available keys.
Result<void> apply_override(Toml& root, const Override& change);

/// A chip's scale-out bandwidth is its share of the host's adapters if those were set and the bandwidth was not.
void share_adapters(Chip& chip, const Toml& root, const ReportFault& report);

/// Fabric levels that were not set keep their ratio to the ports of the chips below; `before` is the chip as in its
/// file.
void scale_fabric(Chip& chip, const Chip& before);

}  // namespace assay::hardware

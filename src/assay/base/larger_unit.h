// What people count so much of something in where it is not the base unit.
#pragma once
#include <optional>

#include "assay/base/units.h"

namespace assay {

/// Hours and days from some on, and watt-hours (with a prefix) from a thousand on.
std::optional<UnitName> larger_unit(AnyQuantity quantity);

}  // namespace assay

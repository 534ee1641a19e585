// The interval of an estimate as an answer shows it.
#pragma once
#include <span>
#include <string_view>

#include "assay/ask/report/document.h"
#include "assay/predict/numbers/interval.h"

namespace assay::verbs {

/// Low and high end of the interval of a class, never below `lower`; its coverage, its source, and in which ways the
/// question is outside the measured range.
report::Members interval_members(AnyQuantity lower, AnyQuantity estimate, std::span<const numbers::Coordinate> at,
                                 std::string_view architecture, const numbers::IntervalBasis& basis);

/// The interval of an estimate that measurements lie around by a share of it, never below `lower`.
report::Members spread_interval(AnyQuantity lower, AnyQuantity estimate, double spread, const std::string& basis);

}  // namespace assay::verbs

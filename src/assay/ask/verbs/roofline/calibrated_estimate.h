// The calibrated estimate of a roofline request, and how the answer shows it.
#pragma once
#include <optional>
#include <string>

#include "assay/ask/report/document.h"
#include "assay/ask/verbs/roofline/query.h"
#include "assay/predict/kernel/measured/operation_estimate.h"

namespace assay::verbs::roofline_verb {

/// Nothing where the chip has no calibration for the operations, the work does not come from main memory on one chip,
/// or the user has set an efficiency; it is an error then to name a way of measuring.
Result<std::optional<kernel::OperationEstimate>> calibrated_estimate(const Request& request, const Context& context,
                                                                     const RooflineQuery& query);

/// The range of a time with this estimate, and the interval that contains four of five measurements.
report::Members estimate_range(const kernel::OperationEstimate& estimate, const roofline::Bound<Plain>& bound,
                               const roofline::Operation& operation);
/// The calibration and the parts of the time.
report::Members estimate_details(const kernel::OperationEstimate& estimate, const roofline::Operation& operation);
/// The calibration and the way of measuring, in words.
/// What padding would gain where rows of a product are odd; empty otherwise.
std::string padding_note(const kernel::OperationEstimate& estimate, const roofline::Operation& operation);
std::string estimate_note(const kernel::OperationEstimate& estimate, const RooflineQuery& query);

}  // namespace assay::verbs::roofline_verb

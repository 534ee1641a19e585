// Serving software, and how far whole steps are from their estimate.
#pragma once
#include "assay/ask/report/response.h"
#include "assay/ask/verbs/serve/query.h"

namespace assay::verbs::serve {

/// Sets what whole steps cost beyond their kernels, for the requested software or good software, which it returns.
Result<kernel::EngineSoftware> read_serving_software(const Request& request, const Context& context, ServeQuery& query);

/// The interval of four in five measured steps of this class, and in which ways the step extrapolates; empty if nothing
/// is known.
report::Members step_interval(const ServeQuery& query, const serving::ServingTime& time, bool prefill, double batch);
/// Notes what the intervals of a point are based on.
void note_intervals(const ServeQuery& query, const serving::ServingPoint& point, report::Response& response);

}  // namespace assay::verbs::serve

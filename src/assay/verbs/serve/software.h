// How the software that serves works, and how far whole steps lie from their estimate.
#pragma once
#include "assay/report/response.h"
#include "assay/verbs/serve/query.h"

namespace assay::verbs::serve {

/// Sets what whole steps cost beyond their kernels, for the software that the request names or good software.
Result<void> read_serving_software(const Request& request, const Context& context, ServeQuery& query);

/// The interval that four of five measured steps of the class of this prefill or decode step lie in, and in which ways
/// it lies outside of what was measured; empty where nothing is known.
report::Members step_interval(const ServeQuery& query, const serving::ServingTime& time, bool prefill, double batch);
/// What the intervals of a point rest on, for people.
void note_intervals(const ServeQuery& query, const serving::ServingPoint& point, report::Response& response);

}  // namespace assay::verbs::serve

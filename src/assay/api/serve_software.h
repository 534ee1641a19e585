// How the software that serves works, and how far whole steps lie from their estimate.
#pragma once
#include "assay/api/serve_query.h"
#include "assay/report/response.h"

namespace assay {

/// Sets what whole steps cost beyond their kernels, for the software that the request names or good software.
Result<void> read_serving_software(const Request& request, const Context& context, ServeQuery& query);

/// The range of a prefill's or a decode step's time; with the interval that four of five measured steps of its class
/// lie in, and in which ways the step lies outside of what was measured.
Members step_range(const ServeQuery& query, const ServingTime& time, bool prefill, double batch);

}  // namespace assay

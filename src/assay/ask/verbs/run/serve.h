// Serving as a kind of run.
#pragma once
#include "assay/ask/verbs/run/run.h"

namespace assay::verbs::run {

std::vector<OptionSpec> serving_options();
Result<report::Response> serve_answer(const Request& request, const Context& context);

}  // namespace assay::verbs::run

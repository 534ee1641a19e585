// `assay serve --emit`: the answered plan as something to run.
#pragma once
#include "assay/ask/launch/target.h"
#include "assay/ask/report/response.h"
#include "assay/ask/verbs/serve/query.h"

namespace assay::verbs::serve {

std::vector<OptionSpec> serve_launch_options();

/// The request with what the target of --emit takes for granted; the same where nothing is to be emitted.
Result<Request> to_run(const Request& request, const Context& context);

/// A point and its question as fields of a plan.
launch::Settings plan_of(const Request& request, const ServeQuery& query, const serving::ServingPoint& point);

/// The script of --emit, as the answer.
Result<void> add_launch(const Request& request, const Context& context, const ServeQuery& query,
                        const serving::ServingPoint& point, report::Response& response);

}  // namespace assay::verbs::serve

// `assay serve --emit` and `--improve`: the answered plan as something to run, and better plans next to it.
#pragma once
#include "assay/launch/target.h"
#include "assay/report/response.h"
#include "assay/verbs/serve/query.h"

namespace assay::verbs::serve {

std::vector<OptionSpec> serve_launch_options();

/// The request with what the target of --emit takes for granted; the same where nothing is to be emitted.
Result<Request> to_run(const Request& request, const Context& context);

/// A point and its question as fields of a plan.
launch::Settings plan_of(const Request& request, const ServeQuery& query, const serving::ServingPoint& point);

/// The script of --emit, as the answer.
Result<void> add_launch(const Request& request, const Context& context, const ServeQuery& query,
                        const serving::ServingPoint& point, report::Response& response);

/// Rows of plans that differ in one choice and produce more tokens, at the same batch or another one.
Result<report::Items> change_rows(const Request& request, const ServeQuery& query, const serving::ServingPoint& point);

}  // namespace assay::verbs::serve

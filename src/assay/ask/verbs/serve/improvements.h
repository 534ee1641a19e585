// What would be better than the answered point of `assay serve`: other plans for the same request, and other formats,
// batches and hardware for the same plan.
#pragma once
#include "assay/ask/report/document.h"
#include "assay/ask/verbs/serve/query.h"

namespace assay::verbs::serve {

/// Rows of plans that differ in one choice and produce more tokens, at the same batch or another one.
Result<report::Items> change_rows(const Request& request, const ServeQuery& query, const serving::ServingPoint& point);

/// Rows of what would help most: the plan of a point with narrower formats, twice the batch, faster chips and links, or
/// twice the chips. Each is priced as the point itself; those that help come first.
Result<report::Items> help_rows(const Request& request, const Context& context, const ServeQuery& query,
                                const serving::ServingPoint& point);

}  // namespace assay::verbs::serve

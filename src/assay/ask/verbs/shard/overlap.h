// assay shard --overlap: a product after its collective, and in chunks beside it.
#pragma once
#include "assay/ask/report/response.h"
#include "assay/ask/verbs/request.h"
#include "assay/ask/verbs/shard/query.h"

namespace assay::verbs::shard {

/// Adds `overlap`, and the timeline as the picture. The mesh is the plan's.
Result<void> add_overlap(const Request& request, const Query& query, const program::Mesh& mesh, const plan::Plan& plan,
                         report::Response& response);

}  // namespace assay::verbs::shard

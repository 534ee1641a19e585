// Pictures of serving: the front, the parts of a step against the batch, cost against latency, lengths of drafts.
#pragma once
#include <string_view>

#include "assay/ask/draw/chart/chart.h"
#include "assay/ask/verbs/serve/sections.h"
#include "assay/predict/search/serving/speculation.h"

namespace assay::verbs::serve {

/// Time per token and of a loop against the number of drafted tokens.
draw::Chart draft_chart(const ServeQuery& query, const serving::ServingPoint& point, const search::Speculation& found);

/// `what` is front, step or cost. `fronts` has all compared clusters and formats; empty if none.
Result<draw::Chart> serve_chart(const ServeQuery& query, const search::ServingSearch& found,
                                const serving::ServingPoint& point, std::string_view what,
                                const std::vector<Comparison::Front>& fronts);

}  // namespace assay::verbs::serve

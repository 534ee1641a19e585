// Pictures of serving: the front, the parts of a step against the batch, cost against latency.
#pragma once
#include <string_view>

#include "assay/draw/chart/chart.h"
#include "assay/verbs/serve/sections.h"

namespace assay::verbs::serve {

/// `what` is front, step or cost. `fronts` has all compared clusters and formats; empty if none.
Result<draw::Chart> serve_chart(const ServeQuery& query, const search::ServingSearch& found,
                                const serving::ServingPoint& point, std::string_view what,
                                const std::vector<Comparison::Front>& fronts);

}  // namespace assay::verbs::serve

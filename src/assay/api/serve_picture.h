// Pictures of serving: the front, the parts of a step against the batch, cost against latency.
#pragma once
#include <string_view>

#include "assay/api/serve_query.h"
#include "assay/report/chart.h"

namespace assay {

/// `what` is front, step or cost. `others` are fronts of further clusters with their names.
Result<Chart> serve_chart(const ServeQuery& query, const ServingSearch& found, const ServingPoint& point,
                          std::string_view what, const std::vector<std::pair<ServeQuery, ServingSearch>>& others);

}  // namespace assay

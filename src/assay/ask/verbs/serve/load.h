// The load: lengths and rate of requests, and how the server does under it.
#pragma once
#include "assay/ask/report/response.h"
#include "assay/ask/verbs/serve/query.h"
#include "assay/predict/serving/load/queueing.h"

namespace assay::verbs::serve {

/// Reads prompts, outputs, pages, rate and batch into the query.
Result<void> read_serve_load(const Request& request, ServeQuery& query);

/// Lengths at the mean and at percentiles, and the time to the first token of each.
Result<report::Items> lengths_list(const ServeQuery& query, const serving::ServingPoint& point);

/// The server of a point, as the queueing model sees it.
Result<serving::LoadedServer> server_under_load(const ServeQuery& query, const serving::ServingPoint& point);
/// The point of a search that serves the rate best, and how it does.
struct PointUnderLoad {
  serving::ServingPoint point;
  serving::LoadedTimes times;
  bool meets = false;   ///< keeps up with the rate, within the latency limits
  Hertz most_requests;  ///< within the latency limits
};
Result<PointUnderLoad> best_under_rate(const ServeQuery& query, const search::ServingSearch& found);
/// Times of the point at the given rate; the headline is that of the loaded server.
Result<report::Members> load_section(const ServeQuery& query, const serving::ServingPoint& point,
                                     report::Response& response);

}  // namespace assay::verbs::serve

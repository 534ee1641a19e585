// Requests as they come: how long they are, how often they arrive, and how the server does under that load.
#pragma once
#include "assay/report/response.h"
#include "assay/serving/load/queueing.h"
#include "assay/verbs/serve/query.h"

namespace assay::verbs::serve {

/// Reads prompts, outputs, pages, rate and batch into the query.
Result<void> read_serve_load(const Request& request, ServeQuery& query);

/// Lengths at the mean and at percentiles, and what a prompt of that length waits for.
Result<report::Items> lengths_list(const ServeQuery& query, const serving::ServingPoint& point);

/// The server of a point with its load, as queues see it.
Result<serving::LoadedServer> server_under_load(const ServeQuery& query, const serving::ServingPoint& point);
/// The point of the front whose requests are done first at the given rate, among those that meet the latencies if any
/// does.
Result<serving::ServingPoint> best_under_load(const ServeQuery& query, const search::ServingSearch& found,
                                              const serving::ServingPoint& otherwise);
/// What the given rate means for the point; says into the response where it is too much.
Result<report::Members> load_section(const ServeQuery& query, const serving::ServingPoint& point,
                                     report::Response& response);

}  // namespace assay::verbs::serve

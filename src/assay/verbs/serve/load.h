// Requests as they come: how long they are, how often they arrive, and how the server does under that load.
#pragma once
#include "assay/report/response.h"
#include "assay/serving/load/queueing.h"
#include "assay/verbs/serve/query.h"

namespace assay {

/// Reads prompts, outputs, pages, rate and batch into the query.
Result<void> read_serve_load(const Request& request, ServeQuery& query);

/// Lengths at the mean and at percentiles, and what a prompt of that length waits for.
Result<Items> lengths_list(const ServeQuery& query, const ServingPoint& point);

/// The server of a point with its load, as queues see it.
Result<LoadedServer> server_under_load(const ServeQuery& query, const ServingPoint& point);
/// The point of the front whose requests are done first at the given rate, among those that meet the latencies if any
/// does.
Result<ServingPoint> best_under_load(const ServeQuery& query, const ServingSearch& found,
                                     const ServingPoint& otherwise);
/// What the given rate means for the point; says into the response where it is too much.
Result<Members> load_section(const ServeQuery& query, const ServingPoint& point, Response& response);

}  // namespace assay

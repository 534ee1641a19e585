// The best point of a search for requests that arrive at a given rate.
#pragma once
#include "assay/predict/search/serving/search.h"
#include "assay/predict/serving/load/loaded_server.h"

namespace assay::search {

/// Whether the server keeps up, with the 99th percentiles of both latencies within the limits.
bool meets_limits(const serving::LoadedTimes& times, const ServingChoices& choices);

/// The point of the front with the least time to the last token at that rate of requests, among points that keep up
/// within the latency limits; else the one that serves the most requests within them. A given batch is kept.
Result<serving::ServingPoint> best_under_load(const serving::ServingQuestion& question,
                                              const hardware::Cluster& cluster, const ServingSearch& found,
                                              const ServingChoices& choices, Hertz rate);

}  // namespace assay::search

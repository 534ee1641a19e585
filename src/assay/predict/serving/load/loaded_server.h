// A point of the search as the queueing model sees it: step times as tables.
#pragma once
#include "assay/predict/serving/load/queueing.h"
#include "assay/predict/serving/point.h"

namespace assay::serving {

/// One replica of the point, with the requests of the question; its batch is the most it decodes at once. Prompts join
/// its decode steps (an encoder's go before them), unless some replicas only run prefill. Steps take as many tokens of
/// prompts as the steady state has, and `least_chunk` where their limit allows that.
Result<LoadedServer> loaded_server(const ServingQuestion& question, const hardware::Cluster& cluster,
                                   const ServingPoint& point, double least_chunk = 0.0);

/// The cache of a token over all chips of an engine of the point.
Result<Bytes> cache_of_token(const ServingQuestion& question, const hardware::Cluster& cluster,
                             const ServingPoint& point);

}  // namespace assay::serving

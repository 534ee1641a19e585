// A point of the search as the queueing model sees it: step times as tables.
#pragma once
#include <optional>

#include "assay/serving/load/queueing.h"
#include "assay/serving/point.h"

namespace assay::serving {

struct LoadChoices {
  std::optional<std::int64_t> chunk;            ///< prompt tokens added to a decode step
  std::optional<std::int64_t> prefill_servers;  ///< replicas that only run prefill
};

/// One replica of the point, with the requests of the question; its batch is the most it decodes at once.
Result<LoadedServer> loaded_server(const ServingQuestion& question, const hardware::Cluster& cluster,
                                   const ServingPoint& point, const LoadChoices& choices);

}  // namespace assay::serving

// The server of a point of the search as queues see it: the times of its steps as tables.
#pragma once
#include <optional>

#include "assay/serving/load/queueing.h"
#include "assay/serving/point.h"

namespace assay::serving {

struct LoadChoices {
  std::optional<std::int64_t> chunk;            ///< tokens of prompts that join a decode step
  std::optional<std::int64_t> prefill_servers;  ///< copies of the replica that only work on prompts
  double prefill_scale = 1, step_scale = 1;     ///< what was measured over what is estimated
};

/// One replica of the point. Requests are those of the question; its batch is the most that is decoded at once.
Result<LoadedServer> loaded_server(const ServingQuestion& question, const hardware::Cluster& cluster,
                                   const ServingPoint& point, const LoadChoices& choices);

}  // namespace assay::serving

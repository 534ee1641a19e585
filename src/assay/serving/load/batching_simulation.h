// Continuous batching played out request by request: arrivals, prompts, decode steps, pages. It shares no formula with
// queueing.h but the times of single steps.
#pragma once
#include <cstdint>

#include "assay/serving/load/queueing.h"

namespace assay::serving {

struct SimulatedLoad {
  std::int64_t requests = 20000;  ///< that are counted; a fifth as many before them are not
  std::uint64_t seed = 1;
};

/// `rate` requests per second of one replica. Where more arrive than leave, `stable` is false.
LoadedTimes simulate_batching(const LoadedServer& server, double rate, const SimulatedLoad& load);

}  // namespace assay::serving

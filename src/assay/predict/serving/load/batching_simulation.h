// A loaded server simulated request by request (replica.h). It shares only the times of single steps with queueing.h.
#pragma once
#include <cstdint>

#include "assay/predict/serving/load/queueing.h"

namespace assay::serving {

struct SimulatedLoad {
  std::int64_t requests = 20000;  ///< counted, after a warm-up of a fifth as many
  std::uint64_t seed = 1;
};

/// Requests of one replica. If more arrive than leave, `stable` is false.
LoadedTimes simulate_batching(const LoadedServer& server, Hertz rate, const SimulatedLoad& load);

}  // namespace assay::serving

// Replicas of a server: each serves its share of the requests on devices of its own, and all hear of all answers.
#pragma once
#include <vector>

#include "assay/engine/serving/server.h"

namespace assay::engine {

/// The strategy of one of the replicas that `data` counts.
lower::Parallelism replica_of(lower::Parallelism parallelism);

/// One of several replicas.
struct Replica {
  std::size_t number = 0, count = 1;
};
/// Every so many-th prompt.
std::vector<Prompt> own_prompts(const std::vector<Prompt>& all, const Replica& replica);

/// The reports of all replicas as one, in every process: requests in their order, counts of all, times of the longest.
/// Steps stay those of this one. `devices` is how many a replica has.
ServerReport joined_reports(Transport& all, std::size_t devices, const ServerReport& mine, std::size_t requests);

}  // namespace assay::engine

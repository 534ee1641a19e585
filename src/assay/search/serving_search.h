// The search for the best way to serve a model: strategies and batches, priced; the front of latency against
// throughput, and the cheapest point that meets given latencies.
#pragma once
#include <optional>
#include <vector>

#include "assay/schedule/serving.h"

namespace assay {

struct ServingQuestion {
  ServingSetup setup;
  std::int64_t prompt = 1, output = 1;
  double cached_prompt = 0;  ///< share of the prompt whose keys and values are there already
  double capacity = 0;       ///< bytes of one chip
};

/// What the user fixed; the rest is searched.
struct ServingChoices {
  std::optional<std::int64_t> tensor, second, pipeline, expert, data, batch;
  std::optional<CacheScheme> cache;
  std::optional<WeightScheme> weights;
  std::optional<double> first_token, per_token;  ///< seconds that a request may wait at most
};

struct ServingMemory {
  double weights = 0, cache = 0, workspace = 0;  ///< bytes on one chip
  double max_batch = 0;                          ///< sequences over all replicas
  double total() const { return weights + cache + workspace; }
};

struct ServingPoint {
  ServingStrategy strategy;
  double batch = 1;  ///< sequences over all replicas
  ServingTime decode, prefill;
  ServingMemory memory;

  double tokens_per_second() const { return batch / decode.estimate; }
};

struct ServingSearch {
  std::optional<ServingPoint> best;
  std::vector<ServingPoint> front;      ///< no other point has lower latency and more throughput; by latency
  std::optional<ServingPoint> closest;  ///< where nothing meets the wishes: the fastest, or the one that needs least
  bool fits = false;                    ///< something fits into memory
  std::int64_t points = 0;              ///< evaluated
};

Result<ServingSearch> search_serving(const ServingQuestion& question, const Cluster& cluster,
                                     const ServingChoices& choices);

/// The profiles of one strategy: a decode step in the middle of the output, the fullest cache, a prefill.
struct ServingProfiles {
  ServingProfile decode, prefill;
  double cache_at_end = 0;  ///< bytes of one chip per sequence when the output is complete
};
ServingProfiles serving_profiles(const ServingQuestion& question, const ServingStrategy& strategy);

ServingPoint serving_point(const ServingQuestion& question, const ServingStrategy& strategy,
                           const ServingProfiles& profiles, const StageLinks& links, double batch);

}  // namespace assay

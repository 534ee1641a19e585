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
  double weight_scale = 1;   ///< of the bytes of weights, where parameters are given instead of counted
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
  std::optional<ServingPoint> fastest_token, fastest_prompt;  ///< that fit: the floors of both latencies
};

Result<ServingSearch> search_serving(const ServingQuestion& question, const Cluster& cluster,
                                     const ServingChoices& choices);

/// All of one strategy that does not depend on the batch: the profile of a decode step in the middle of the output,
/// with the cache of a complete one, and a prefill.
struct ServingProfiles {
  ServingProfile decode, prefill;
  ServingTime first_token;  ///< of one prompt on each replica
};
ServingProfiles serving_profiles(const ServingQuestion& question, const ServingStrategy& strategy,
                                 const StageLinks& links);

/// Memory of a batch, and the largest batch that fits.
ServingMemory serving_memory(const ServingQuestion& question, const ServingProfiles& profiles, double batch);

/// A batch of a strategy; nothing is allocated.
ServingPoint serving_point(const ServingQuestion& question, const ServingStrategy& strategy,
                           const ServingProfiles& profiles, const StageLinks& links, double batch);

/// Tokens of a prompt that are not in the cache already.
std::int64_t fresh_prompt(const ServingQuestion& question);
/// Tokens that the average decode step looks back at.
std::int64_t decode_context(const ServingQuestion& question);

}  // namespace assay

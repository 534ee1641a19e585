// The search for the best way to serve a model: strategies and batches, priced; the front of latency against
// throughput, and the cheapest point that meets given latencies.
#pragma once
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "assay/predict/serving/known_profiles.h"

namespace assay::search {

/// Choices that the user fixed; the others are searched.
struct ServingChoices {
  std::optional<std::int64_t> tensor, second, pipeline, expert, data, batch;
  std::optional<std::int64_t> most_batch;  ///< upper limit where the batch is searched
  bool prompts_only = false;               ///< nothing is decoded: only `most_prompts` is searched, `batch` at once
  std::optional<lower::ExpertAxes> expert_over;
  std::optional<lower::CacheScheme> cache;
  bool cache_by_heads = false;  ///< with `cache`: only devices that would hold the same keys split it so
  std::optional<lower::WeightScheme> weights;
  std::optional<Seconds> first_token, per_token;  ///< limits on what a request may wait
  /// Why software cannot run a strategy on a cluster; an empty text: it can. None: every strategy is searched.
  std::function<std::string(const serving::ServingStrategy&, const hardware::Cluster&)> refuses = {};
};

/// A server that only works on prompts: as many at once as yield the most.
struct PrefillPoint {
  serving::ServingStrategy strategy;
  double prompts = 1;  ///< prompts at once, over all replicas
  serving::ServingTime time;
  Bytes memory;  ///< on one chip
  Hertz prompts_per_second() const { return prompts / time.estimate; }
};

struct ServingSearch {
  std::optional<serving::ServingPoint> best;
  std::vector<serving::ServingPoint> front;  ///< no other point has lower latency and more throughput; by latency
  std::optional<serving::ServingPoint>
      closest;                  ///< if nothing meets the limits: the nearest miss, or what needs least memory
  bool fits = false;            ///< something fits into memory
  std::int64_t strategies = 0;  ///< shardings, each with its best places on the cluster
  std::int64_t placements = 0;  ///< orders of the mesh axes that differ, over all shardings
  std::int64_t dropped = 0;     ///< placements that another one of the same sharding equals or beats everywhere
  std::int64_t points = 0;      ///< points evaluated
  std::optional<serving::ServingPoint> fastest_token, fastest_prompt;  ///< latency floors among points that fit
  std::optional<PrefillPoint> most_prompts;  ///< most prompts per second of a server without decoding, within the limit
};

/// What a search is asked. All but the best leave out batches beyond the smallest of each strategy, and strategies
/// whose floors say enough: a fraction of the time.
enum class ServingGoal : std::uint8_t {
  best,         ///< everything
  fits,         ///< whether anything fits
  meets,        ///< whether anything meets the limits
  first_token,  ///< the least time to the first token
  next_token    ///< the least time per token
};

/// Every division of the chips into replicas, tensor and pipeline parallelism, a second direction of weights and
/// experts; caches by heads, batch and sequence, and by heads and one of the others; every order of the mesh axes.
/// Weights that are split in two directions stay in place for decode steps; for prompts they stay in place or are
/// gathered. If nothing fits into the capacity, all of the chip's memory may be used. Searches of one question on
/// several clusters may share what is `known`.
Result<ServingSearch> search_serving(const serving::ServingQuestion& question, const hardware::Cluster& cluster,
                                     const ServingChoices& choices, ServingGoal goal = ServingGoal::best,
                                     serving::KnownProfiles* known = nullptr);

}  // namespace assay::search

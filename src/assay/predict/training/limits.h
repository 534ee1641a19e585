// What limits a training step, how far the next limit is, and how much of the peak it reaches.
#pragma once
#include <optional>
#include <string_view>
#include <vector>

#include "assay/predict/training/step.h"

namespace assay::training {

/// One thing that may limit a step.
struct StepLimit {
  std::string_view name;  ///< compute, memory, network, bubble, host or waiting
  Seconds time;
};

/// By time, the limiter first. Compute, memory and network (its busiest kind of axis) at ideal rates, including work
/// done once a step: the update's memory traffic, the reduction of gradients, the gathering of new weights. Bubble: on
/// ideal hardware. Waiting: exposed collectives, stage handover and overhead of the estimate, unless network bandwidth
/// causes them.
std::vector<StepLimit> step_limits(const TrainingCost& cost);

/// The name of the first limit.
std::string_view limiter_of(const TrainingCost& cost);

/// Where the limiter would change with microbatch, batch or tensor parallelism, at ideal rates. Arithmetic and traffic
/// scale with tokens and chips as the formulas say, so that no threshold depends on the value it is compared with.
/// Nothing where there is no such traffic.
struct LimitThresholds {
  std::optional<double> compute_over_weights_traffic, compute_over_tensor_traffic, compute_over_memory_traffic;
  std::optional<Tokens> microbatch_where_weights_traffic_limits;
  bool reduces_gradients = false;
  std::optional<Tokens> batch_where_gradients_limit;  ///< nothing: they limit a batch of any size
  std::optional<double> largest_tensor_parallelism;
  Bytes memory_left;
};
LimitThresholds limit_thresholds(const TrainingQuestion& question, std::int64_t sequence,
                                 const hardware::Cluster& cluster, const Strategy& strategy, const TrainingCost& cost);

/// FLOP of the model however it is sharded: without copies of keys, padding and recomputation.
Flops model_flops_per_sequence(const TrainingQuestion& question, std::int64_t sequence);
Flops model_flops_per_chip(const TrainingQuestion& question, std::int64_t sequence);

/// The format whose peak defines utilisation: the format of products, unless the rest runs in a faster one.
Dtype utilisation_format(const hardware::Chip& chip, Dtype products, Dtype others);

struct Utilisation {
  FlopsPerSecond useful;      ///< of the model, per chip
  double mfu = 0, hfu = 0;    ///< useful and executed FLOP over the peak
  TokensPerSecond rate;       ///< of all chips
  TokensPerSecond chip_rate;  ///< of one
};
Utilisation utilisation(const TrainingQuestion& question, std::int64_t sequence, const TrainingCost& cost,
                        FlopsPerSecond peak);

/// The part of a step on which another strategy loses most time.
struct SlowerPart {
  std::string_view name;
  Seconds time;  ///< lost; nothing is lost on any part where this is not above 0
};
SlowerPart slowest_difference(const TrainingCost& best, const TrainingCost& other);

}  // namespace assay::training

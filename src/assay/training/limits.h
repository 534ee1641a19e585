// What limits a training step, and how far the next limit is.
#pragma once
#include <optional>
#include <string_view>
#include <vector>

#include "assay/training/step.h"

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

}  // namespace assay::training

// What no fleet of a server can beat: the least time that its steps take for some traffic, without replaying it.
#pragma once
#include "assay/predict/serving/load/fleet.h"

namespace assay::serving {

/// Every step with n sequences and t computed tokens of prompts takes at least n x `per_token` + t x
/// `per_prompt`, and `further` for each token before one of those.
struct LeastTimes {
  Seconds per_token, per_prompt, further;
};
/// The pair in which a share of the least time per token is charged to tokens, and the rest to prompts; zeros
/// where some step leaves prompts nothing.
LeastTimes least_times(const ReplicaModel& model, double share);

/// The fewest replicas whose steps have the time for the traffic: all but the dearest requests that may be late, from
/// the first arrival until the last of them has to be served. 1 where the limits leave that open.
std::int64_t fewest_replicas(const FleetPlan& plan, const TrafficPlan& traffic);

}  // namespace assay::serving

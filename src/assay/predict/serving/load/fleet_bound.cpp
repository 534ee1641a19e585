#include "assay/predict/serving/load/fleet_bound.h"

#include <algorithm>
#include <cmath>
#include <unordered_set>
#include <vector>

#include "assay/base/index.h"

namespace assay::serving {
namespace {

/// The least times of all requests of some traffic, for each of several pairs.
struct Demand {
  std::vector<LeastTimes> times;
  std::vector<Quantiles> work;
  std::int64_t requests = 0;
  double last = 0;     ///< arrival
  double longest = 0;  ///< output

  /// Without the dearest requests.
  double least(std::size_t pair, std::int64_t left_out) const {
    return work[pair].sum() - work[pair].most_of(left_out);
  }
};

/// With every block computed once.
void add_traffic(const FleetPlan& plan, const TrafficPlan& of, Demand& demand) {
  std::unordered_set<std::int64_t> seen;
  Traffic traffic(of);
  while (traffic.next() != Traffic::never) {
    const FleetRequest request = traffic.take();
    std::size_t cached = 0;
    if (plan.prefixes && request.traced >= 0) {
      const std::int64_t from = request.copy * plan.prefixes->size();
      for (const int node : plan.prefixes->path(at(request.traced)))
        if (!seen.insert(from + node).second) ++cached;
    }
    const auto known = cached > 0 ? static_cast<double>(plan.prefixes->cached_tokens(at(request.traced), cached)) : 0.0;
    const auto prompt = static_cast<double>(request.prompt), output = static_cast<double>(request.output - 1);
    for (std::size_t i = 0; i < demand.times.size(); ++i) {
      const LeastTimes& times = demand.times[i];
      const Seconds time = (prompt - known) * times.per_prompt + output * times.per_token +
                           0.5 * (prompt * prompt - known * known) * times.further;
      demand.work[i].add(time.value());
    }
    ++demand.requests;
    demand.last = request.arrival;
    demand.longest = std::max(demand.longest, output);
  }
}

}  // namespace

LeastTimes least_times(const ReplicaModel& model, double share) {
  constexpr double context = 1.0;  // no sequence has less
  const Seconds further = model.server().further;
  double token = HUGE_VAL, prompt = HUGE_VAL;
  for (std::int64_t n = 1; n <= model.places(); ++n)
    token = std::min(token, (model.step(n).fixed + model.step(n).each * context) / static_cast<double>(n));
  token *= share;
  // Prices are straight between these numbers of tokens.
  for (const double part : {0.0, 1.0 / 16, 1.0 / 8, 1.0 / 4, 1.0 / 2, 1.0}) {
    const auto tokens =
        std::max<std::int64_t>(1, static_cast<std::int64_t>(part * static_cast<double>(model.budget())));
    for (std::int64_t n = 0; n <= model.places(); ++n) {
      const auto sequences = static_cast<double>(n), t = static_cast<double>(tokens);
      const Seconds first = model.server().mixed(sequences, context, t) - t * model.server().before * further;
      prompt = std::min(prompt, (first.value() - token * sequences) / t);
    }
  }
  if (prompt < 0.0) return {};
  return {Seconds(token), Seconds(prompt), further};
}

std::int64_t fewest_replicas(const FleetPlan& plan, const TrafficPlan& traffic) {
  const FleetLimits& limits = plan.limits;
  const bool chunked = plan.server->policy == BatchingPolicy::chunked;
  if (!limits.first_token || traffic.clients || !chunked) return 1;
  const ReplicaModel model(*plan.server, 0);
  constexpr double shares[] = {0.0, 0.25, 0.5, 0.75, 0.9, 1.0};
  Demand demand;
  for (const double share : shares) demand.times.push_back(least_times(model, share));
  demand.work.resize(demand.times.size());
  add_traffic(plan, traffic, demand);
  const auto left_out = static_cast<std::int64_t>((1.0 - limits.share) * static_cast<double>(demand.requests) + 1e-9);
  const double prompts_end = demand.last + limits.first_token->value();
  double most = demand.least(0, left_out) / prompts_end;
  if (limits.per_token) {
    const double end = prompts_end + demand.longest * limits.per_token->value();
    for (std::size_t i = 1; i < demand.times.size(); ++i) most = std::max(most, demand.least(i, left_out) / end);
  }
  constexpr double rounding = 0.999;  // tables are in whole tokens
  return std::max<std::int64_t>(1, static_cast<std::int64_t>(std::ceil(rounding * most)));
}

}  // namespace assay::serving
